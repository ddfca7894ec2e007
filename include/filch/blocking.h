/* SPDX-License-Identifier: MIT */
/*
 * Calls that can only block: the library makes them on separate threads, so that workers go on.
 *
 *     static int resolve(void *arg)
 *     {
 *         struct query *query = arg;
 *         return getaddrinfo(query->host, NULL, NULL, &query->list);
 *     }
 *
 *     int lookup(filch_frame *f, struct query *query)
 *     {
 *         return filch_blocking(f, FILCH_LANE_NAMES, resolve, query); // the task waits, its
 *     }                                                               // worker does not
 *
 * Each pool has such threads, in lanes:
 *
 *   - There are no such threads until the first call. A call starts a thread if all threads of its
 *     lane are busy, up to the limit of the lane. A thread ends after a second without calls.
 *   - Calls of one lane do not wait for calls of another: a slow name server delays no file.
 *   - The threads may use all CPUs of the pool, even if its workers are pinned.
 */
#ifndef FILCH_BLOCKING_H
#define FILCH_BLOCKING_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum filch_lane {
    FILCH_LANE_ANY,   /* everything else; up to 64 threads */
    FILCH_LANE_FILES, /* calls that wait for a disk; up to 16 */
    FILCH_LANE_NAMES, /* calls that look up names; up to 8 */
} filch_lane;

/*
 * Call fn(arg) on a thread of the lane and wait until it returns. Without a task (`f` is NULL), or
 * if the lane has no thread and none can be started, fn is called in the calling thread.
 *
 * `fn` has no frame. It must not wait for tasks of a pool that can only go on when this call
 * returns.
 *
 * Returns the result of fn, or
 *   -ECANCELED  the task was cancelled before a thread began the call; fn was not called. Once
 *               fn has begun, the task waits until it returns
 *   -EINVAL     there is no such lane, or fn is NULL
 */
FILCH_API int filch_blocking(filch_frame *f, filch_lane lane, int (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
