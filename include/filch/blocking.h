/* SPDX-License-Identifier: MIT */
/*
 * Calls that can only block: run them on a thread that is there for it.
 *
 *     static int resolve(void *arg) { struct query *q = arg; return getaddrinfo(q->host, NULL, NULL, &q->list); }
 *     ...
 *     int result = filch_blocking(f, FILCH_LANE_NAMES, resolve, &query);   the task waits, its worker does not
 *
 * Each pool has such threads of its own: none until the first call, more as calls come while all are busy, up to a limit for each
 * lane, and fewer again after a second without calls. Calls of one lane do not wait for those of another: a slow name server holds up no file.
 * They may use all CPUs of the pool, also where its workers are pinned.
 */
#ifndef FILCH_BLOCKING_H
#define FILCH_BLOCKING_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum filch_lane {
    FILCH_LANE_ANY,   /* what the others are not for; up to 64 threads */
    FILCH_LANE_FILES, /* up to 16 */
    FILCH_LANE_NAMES, /* up to 8 */
    FILCH_LANE_COUNT,
} filch_lane;

/*
 * Call fn(arg) on another thread, and wait for its end. On a thread of its own (f is NULL), or where no thread can be had, it is called right here.
 *
 * Returns what fn does, or -ECANCELED: the task was cancelled before the call had begun, and it was not made. A call that has begun is waited for. -EINVAL:
 * there is no such lane, or fn is NULL. In fn there is no handle: it must not wait for tasks of a pool that needs this one to go on.
 */
FILCH_API int filch_blocking(filch_frame *f, filch_lane lane, int (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
