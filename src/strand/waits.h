/* SPDX-License-Identifier: MIT */
/*
 * What a strand waits for: a kind, and the object. Only observers read them: filch_pool_dump and
 * scripts/gdb/filch.py. A wait stores them anyway, so that a hanging program can be understood
 * without being built again.
 */
#ifndef FILCH_STRAND_WAITS_H
#define FILCH_STRAND_WAITS_H

#include <stdint.h>

/* Each kind, its name in a dump, and how the object is printed:
 *   ADDRESS    the address of the object
 *   DEADLINE   a time of filch_clock_ns
 *   COUNT      a number of alternatives
 *   OPERATION  filch_waits_operation below
 *   NOTHING    there is no object */
#define FILCH_WAITS(X)                                                                             \
    X(CHILD, "a stolen task", ADDRESS)                                                             \
    X(JOB, "a filch_run", ADDRESS)                                                                 \
    X(SLEEP, "sleep", DEADLINE)                                                                    \
    X(FUTURE, "a future", ADDRESS)                                                                 \
    X(SCOPE, "the tasks of a scope", ADDRESS)                                                      \
    X(SCOPE_LIMIT, "the task limit of a scope", ADDRESS)                                           \
    X(SEND, "a channel, to send", ADDRESS)                                                         \
    X(RECEIVE, "a channel, to receive", ADDRESS)                                                   \
    X(SELECT, "select", COUNT)                                                                     \
    X(PIPELINE, "a stage of a pipeline", ADDRESS)                                                  \
    X(MUTEX, "a mutex", ADDRESS)                                                                   \
    X(READ_LOCK, "a lock, to read", ADDRESS)                                                       \
    X(WRITE_LOCK, "a lock, to write", ADDRESS)                                                     \
    X(CONDITION, "a condition", ADDRESS)                                                           \
    X(SEMAPHORE, "a semaphore", ADDRESS)                                                           \
    X(EVENT, "an event", ADDRESS)                                                                  \
    X(BARRIER, "a barrier", ADDRESS)                                                               \
    X(ONCE, "a call that is made once", ADDRESS)                                                   \
    X(CALL, "a call that blocks", NOTHING)                                                         \
    X(OPERATION, "", OPERATION)                                                                    \
    X(CANCELLATION, "cancelling an operation", OPERATION)                                          \
    X(BYTES, "a stream of bytes", OPERATION)                                                       \
    X(CONNECTIONS, "a stream of connections", OPERATION)

enum filch_waits {
    FILCH_WAITS_NOT, /* the strand does not wait */
#define FILCH_WAITS_KIND(KIND, name, object) FILCH_WAITS_##KIND,
    FILCH_WAITS(FILCH_WAITS_KIND)
#undef FILCH_WAITS_KIND
        FILCH_WAITS_COUNT
};

/* An operation as an object: its code and its descriptor. An address would not do, since the
 * operation may be gone before an observer reads it. */
#define filch_waits_operation(code, fd) ((const void *)((uintptr_t)(code) << 32 | (uint32_t)(fd)))

/* Bits of `state` in filch_mutex and filch_rwlock: src/wait/sync sets them, a dump reads them. */
#define FILCH_MUTEX_HELD ((uint32_t)1)
#define FILCH_RWLOCK_WRITER ((uint32_t)1 << 30) /* the bits below count readers */

#endif
