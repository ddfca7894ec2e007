/* SPDX-License-Identifier: MIT */
/*
 * What a thread of a pool can wait for beside its bed: events of the kernel, for src/io.
 *
 * A source belongs to one thread, or is that of several, and comes into being with the first operation that is started there; a pool without I/O has none. Its thread
 * asks it whenever it has nothing else to run, and now and then when it has; and sleeps in it instead of on its bed, if no other does so already. While nobody sleeps in it, since the thread runs a task for long, the
 * lookout looks after it (worker/lookout.h).
 *
 * Edges
 *   source-made        filch_worker_set_source -> filch_worker_source   carries the source.
 *   source-or-lookout  filch_worker_set_source, filch_source_show, filch_source_unwatch x filch_worker_source, filch_source_is_alone, filch_source_watch   worker/lookout.h
 */
#ifndef FILCH_WORKER_SOURCE_H
#define FILCH_WORKER_SOURCE_H

#include "worker/worker.h"

#include <time.h>

struct filch_source {
    int bell; /* an eventfd; once it is written to, `wait` returns */

    filch_atomic_u32
        pending; /* operations whose end is yet to come; a hint for others than its thread */
    filch_atomic_u32 is_watched; /* a thread waits in it, or is about to */

    /* By its thread: what has happened. Returns the strands that may go on, linked by link.next. Makes no system call unless one is needed. */
    filch_link *(*poll)(filch_source *source);

    /* By its thread, in bed, which watches it: the same, but return only when something has happened, the bell has rung, or time is up (NULL: never). */
    filch_link *(*wait)(filch_source *source, const struct timespec *timeout);

    /* By its thread, back from `wait`, when the bell was rung for it; NULL: nothing to do. */
    void (*hush)(filch_source *source);

    /* By the lookout: the same as poll, for a thread that has not come to its loop for a while. *is_near is set if it should come again soon. */
    filch_link *(*look)(filch_source *source, bool *is_near);
};

static inline filch_source *filch_worker_source(filch_worker *worker)
{
    /* acquire [source-made], seq_cst [source-or-lookout] */
    return filch_load_seq_cst(&worker->source);
}

/* By the worker's own thread. The source outlives the thread: whoever wakes it may ring the bell when it has ended. */
static inline void filch_worker_set_source(filch_worker *worker, filch_source *source)
{
    worker->seat.bell = source ? source->bell : -1;
    /* release [source-made], seq_cst [source-or-lookout] */
    filch_store_seq_cst(&worker->source, source);
}

/* Has something been started there that nobody would see the end of, if its thread computed for long? */
static inline bool filch_source_is_alone(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    /* seq_cst [source-or-lookout] */
    return source && filch_load_seq_cst(&source->pending) > 0 &&
           !filch_load_seq_cst(&source->is_watched);
}

/* By a worker's own thread, on its way to sleep: wait in it, until filch_source_unwatch. False: another does. */
static inline bool filch_source_watch(filch_source *source)
{
    uint32_t nobody = 0;
    /* seq_cst [source-or-lookout] */
    return filch_cas_seq_cst(&source->is_watched, &nobody, 1);
}

/* Who does not come back soon has to look after that whether the source is alone. */
static inline void filch_source_unwatch(filch_source *source)
{
    /* seq_cst [source-or-lookout] */
    filch_store_seq_cst(&source->is_watched, 0);
}

/* By the worker's own thread, before it asks for a lookout: who looks for one that is alone from here on sees what was started here, and that the thread does not watch it. */
static inline void filch_source_show(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    if (source)
        /* seq_cst [source-or-lookout]: it is changed by read-modify-writes only, which carry this on. */
        filch_fetch_add_seq_cst(&source->pending, 0);
}

#endif
