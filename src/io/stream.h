/* SPDX-License-Identifier: MIT */
/*
 * A stream between its task and the reader of completions: the items that have come, and the wait
 * for them. This file does not depend on the kernel.
 *
 *                  arm                      the last completion
 *     at rest -------------> armed --------------------------------> at rest
 *                              |                                        ^
 *                              '-- 16 items wait --> armed, stopping ---'   and the end of `stop`,
 *                                                                           in any order
 *
 *   task     takes items. Waits only while the stream is armed, by the turn of its strand's wait.
 *            Arms the stream when it is at rest and no item is left.
 *   reader   puts an item for each completion, and ends the wait. The last completion puts the
 *            stream at rest. One reader at a time: it holds the lock of the ring.
 *
 * All these steps are under the lock of the stream. The reader's last touch of the stream is the
 * release of that lock. The task frees the stream only after it has found it at rest under the
 * lock.
 *
 * At rest means also that the request `stop`, if there was one, has completed. The task does not
 * wait for `stop` as for other operations (op.h): another task may have armed the stream.
 *
 * After the release of the lock the reader resumes the waiting strand, by its turn: a late resume
 * does no harm (strand/wait_word.h).
 */
#ifndef FILCH_IO_STREAM_H
#define FILCH_IO_STREAM_H

#include "base/lock.h"
#include "base/memory.h"
#include "io/op.h"

#include <filch/stream.h>

#define FILCH_NO_BUFFER UINT32_MAX

/* When this many items wait for the task, the request is cancelled. Items that the kernel already
 * has still come: up to all connections in the listener's queue. */
#ifndef FILCH_STREAM_AHEAD /* the model checker has fewer */
#define FILCH_STREAM_AHEAD 16
#endif

static inline filch_lock *filch_stream_lock(filch_stream *stream)
{
    return (filch_lock *)&stream->lock;
}

/* Under the lock: the number of items. */
static inline unsigned filch_stream_count(filch_stream *stream)
{
    /* relaxed: under the lock. */
    return filch_load_relaxed(&stream->count);
}

/* Under the lock. False: no memory. */
static inline bool filch_stream_grow(filch_stream *stream)
{
    unsigned count = filch_stream_count(stream);
    filch_stream_item *items = filch_calloc(2 * (size_t)stream->room, sizeof *items);

    if (!items)
        return false;
    for (unsigned i = 0; i < count; i++)
        items[i] = stream->items[(stream->first + i) % stream->room];
    if (stream->items != stream->few)
        free(stream->items);
    stream->items = items;
    stream->room *= 2;
    stream->first = 0;
    return true;
}

/* Under the lock: may a reader still touch the stream? */
static inline bool filch_stream_is_busy(const filch_stream *stream)
{
    return stream->is_armed || stream->has_stop;
}

/* By the reader, after a change: release the lock, and end the wait. Returns the strand to resume,
 * or NULL. After this call the stream may be gone. */
static inline filch_strand *filch_stream_leave(filch_stream *stream)
{
    filch_strand *waiter = stream->waiter;
    uint64_t turn = stream->turn;

    stream->waiter = NULL;
    filch_lock_release(filch_stream_lock(stream));
    return waiter && filch_wait_end(&waiter->wait, turn, 0) == FILCH_WAIT_RESUME ? waiter : NULL;
}

/* Instructions for a reader that has put an item. */
typedef struct filch_stream_news {
    filch_strand *strand; /* resume it; NULL: no strand */
    bool is_refused;      /* no memory to keep the item: dispose of it */
    bool is_to_stop;      /* submit stream->stop, which is in flight already */
} filch_stream_news;

/* By the reader. is_last: no item follows. */
static inline filch_stream_news filch_stream_put(filch_stream *stream, filch_stream_item item,
                                                 bool is_last)
{
    filch_stream_news news = {0};

    filch_lock_acquire(filch_stream_lock(stream));
    unsigned count = filch_stream_count(stream);
    /* After a lost item, refuse all others: bytes with a gap would be wrong. */
    if (!stream->has_lost && (count < stream->room || filch_stream_grow(stream))) {
        stream->items[(stream->first + count) % stream->room] = item;
        /* relaxed: under the lock; without it, a hint. */
        filch_store_relaxed(&stream->count, count + 1);
    } else {
        news.is_refused = true;
        stream->has_lost = true;
    }
    if (is_last)
        stream->is_armed = false;
    if (stream->is_armed && !stream->is_stopping &&
        (count + 1 >= FILCH_STREAM_AHEAD || stream->has_lost)) {
        news.is_to_stop = true;
        stream->is_stopping = stream->has_stop = true;
        filch_op_set_in_flight(&stream->stop);
    }
    news.strand = filch_stream_leave(stream);
    return news;
}

/* By the reader: the request that stops the stream has completed. Returns the strand to resume, or
 * NULL. */
static inline filch_strand *filch_stream_end_stop(filch_stream *stream)
{
    filch_lock_acquire(filch_stream_lock(stream));
    stream->has_stop = false;
    /* The kernel may not have found the stream's request. If more items come, it is stopped
     * again. */
    stream->is_stopping = false;
    return filch_stream_leave(stream);
}

/* By the task. False: there is no item. */
static inline bool filch_stream_take(filch_stream *stream, filch_stream_item *item)
{
    /* relaxed: a hint; before it waits the task looks again under the lock. */
    if (filch_load_relaxed(&stream->count) == 0)
        return false;
    filch_lock_acquire(filch_stream_lock(stream));
    *item = stream->items[stream->first];
    stream->first = (stream->first + 1) % stream->room;
    /* relaxed: under the lock. */
    filch_store_relaxed(&stream->count, filch_stream_count(stream) - 1);
    filch_lock_release(filch_stream_lock(stream));
    return true;
}

/* Does the task have to wait? */
typedef enum filch_stream_wait {
    FILCH_STREAM_WAITS, /* yes, until its turn is ended */
    FILCH_STREAM_HAS,   /* no: take an item */
    FILCH_STREAM_DRY,   /* no: the stream is at rest, and no item is left */
} filch_stream_wait;

/* By the task, whose strand has opened a wait with this turn. for_rest: wait until the stream is at
 * rest, not for an item. */
static inline filch_stream_wait filch_stream_await(filch_stream *stream, filch_strand *strand,
                                                   uint64_t turn, bool for_rest)
{
    filch_lock_acquire(filch_stream_lock(stream));
    filch_stream_wait wait = filch_stream_count(stream) > 0 && !for_rest ? FILCH_STREAM_HAS
                             : filch_stream_is_busy(stream)              ? FILCH_STREAM_WAITS
                                                                         : FILCH_STREAM_DRY;
    if (wait == FILCH_STREAM_WAITS) {
        stream->waiter = strand;
        stream->turn = turn;
    }
    filch_lock_release(filch_stream_lock(stream));
    return wait;
}

/* By the task, whose wait has ended for another reason. */
static inline void filch_stream_stop_waiting(filch_stream *stream)
{
    filch_lock_acquire(filch_stream_lock(stream));
    stream->waiter = NULL;
    filch_lock_release(filch_stream_lock(stream));
}

/* By the task: no reader touches the stream any more. */
static inline bool filch_stream_is_at_rest(filch_stream *stream)
{
    filch_lock_acquire(filch_stream_lock(stream));
    bool is_busy = filch_stream_is_busy(stream);
    filch_lock_release(filch_stream_lock(stream));
    return !is_busy;
}

#endif
