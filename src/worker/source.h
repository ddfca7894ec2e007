/* SPDX-License-Identifier: MIT */
/*
 * What a thread of a pool can wait for beside its bed: events of the kernel, for src/io.
 *
 * A source belongs to one thread, and comes into being with the first operation that is started there; a pool without I/O has none. Its thread
 * asks it whenever it has nothing else to run, and now and then when it has; and sleeps in it instead of on its bed. While the thread runs a task for long, the lookout looks after its
 * source (worker/lookout.h).
 *
 * Edges
 *   source-made        filch_worker_set_source -> filch_worker_source   carries the source.
 *   source-or-lookout  filch_worker_set_source, filch_source_show x filch_worker_source, filch_source_is_alone   worker/lookout.h
 */
#ifndef FILCH_WORKER_SOURCE_H
#define FILCH_WORKER_SOURCE_H

#include "worker/worker.h"

#include <time.h>

struct filch_source {
    int bell; /* an eventfd; once it is written to, `wait` returns */

    filch_atomic_u32 pending; /* operations whose end is yet to come; a hint for others than its thread */

    /* By its thread: what has happened. Returns the strands that may go on, linked by link.next. Makes no system call unless one is needed. */
    filch_link *(*poll)(filch_source *source);

    /* By its thread, in bed: the same, but return only when something has happened, the bell has rung, or time is up (NULL: never). False in *has_slept: it cannot
     * sleep here now, so do it in bed. */
    filch_link *(*wait)(filch_source *source, const struct timespec *timeout, bool *has_slept);

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
           /* relaxed: ordered by the load of pending, if that is what filch_source_show has shown, or newer. */
           filch_load_relaxed(&worker->seat.bed) != FILCH_BED_AWAY;
}

/* By the worker's own thread, before it asks for a lookout: who looks for one that is alone from here on sees what was started here, and that the thread is not away. */
static inline void filch_source_show(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    if (source)
        /* seq_cst [source-or-lookout]: it is changed by read-modify-writes only, which carry this on. */
        filch_fetch_add_seq_cst(&source->pending, 0);
}

#endif
