/* SPDX-License-Identifier: MIT */
/*
 * A source of events, in which a pool's thread can wait instead of its bed. src/io has sources for
 * kernel events.
 *
 * A source belongs to one thread (io_uring), or is shared by all (epoll). The first operation that
 * is started on a worker makes it; a pool without I/O has none.
 *
 * - A thread in its loop polls its source when it has nothing else to run, and sometimes before.
 * - A thread that sleeps waits in its source instead of its bed, unless another thread does so.
 * - If no thread waits in it, because its thread runs a task for long, the lookout looks after it.
 *
 * README.md has the protocol, and the edge source-or-lookout.
 *
 * Edges
 *   source-made  filch_worker_set_source -> filch_worker_source   carries the source.
 */
#ifndef FILCH_WORKER_SOURCE_H
#define FILCH_WORKER_SOURCE_H

#include "worker/worker.h"

#include <time.h>

struct filch_source {
    int bell; /* an eventfd; a write to it makes `wait` return */

    filch_atomic_u32 pending;    /* operations in flight; a hint for threads other than its own */
    filch_atomic_u32 is_watched; /* a thread waits in it, or is about to */

    /* By its thread: reap completions. Returns the strands to resume, linked by link.next. Makes no
     * system call unless one is needed. If each poll needs a system call, most polls may do
     * nothing. A poll with `is_due`, in a fair round, always looks. */
    filch_link *(*poll)(filch_source *source, bool is_due);

    /* By the thread that watches it: the same, but block until an operation completes, the bell
     * rings or time is up (NULL: never). */
    filch_link *(*wait)(filch_source *source, const struct timespec *timeout);

    /* By the thread that watches it, after `wait`, if the thread was called: silence the bell that
     * rang for it. NULL: not needed. */
    void (*hush)(filch_source *source);

    /* By the lookout: the same as poll, for a thread that has not come to its loop for a while.
     * Sets *is_near if the lookout should look again soon. */
    filch_link *(*look)(filch_source *source, bool *is_near);
};

static inline filch_source *filch_worker_source(filch_worker *worker)
{
    /* acquire [source-made], seq_cst [source-or-lookout] */
    return filch_load_seq_cst(&worker->source);
}

/* By the worker's own thread. The source must outlive the thread: a waker may ring the bell after
 * the thread has ended. */
static inline void filch_worker_set_source(filch_worker *worker, filch_source *source)
{
    worker->seat.bell = source ? source->bell : -1;
    /* release [source-made], seq_cst [source-or-lookout] */
    filch_store_seq_cst(&worker->source, source);
}

/* Are operations in flight whose completion no thread would see while the worker's thread
 * computes? */
static inline bool filch_source_is_alone(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    /* seq_cst [source-or-lookout] */
    return source && filch_load_seq_cst(&source->pending) > 0 &&
           !filch_load_seq_cst(&source->is_watched);
}

/* By a worker's own thread, on its way to sleep: watch the source until filch_source_unwatch.
 * False: another thread watches it. */
static inline bool filch_source_watch(filch_source *source)
{
    uint32_t nobody = 0;
    /* seq_cst [source-or-lookout] */
    return filch_cas_seq_cst(&source->is_watched, &nobody, 1);
}

/* After this, a thread that will not poll soon must check whether the source is alone. */
static inline void filch_source_unwatch(filch_source *source)
{
    /* seq_cst [source-or-lookout] */
    filch_store_seq_cst(&source->is_watched, 0);
}

/* By the worker's own thread, before it looks for a lookout. A thread that checks this source later
 * sees the operations started here, and that this thread does not watch them. */
static inline void filch_source_show(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    if (source)
        /* seq_cst [source-or-lookout]: only read-modify-writes change `pending`, so later ones
         * carry this on. */
        filch_fetch_add_seq_cst(&source->pending, 0);
}

#endif
