/* SPDX-License-Identifier: MIT */
/* Parts are joined without the macros, so checked builds must not count them as open forks. */
#define FILCH_CHECKED 0

#include "base/clock.h"
#include "fork/fork.h"
#include "loop/pace.h"
#include "strand/unwind.h"
#include "worker/worker.h"

#include <filch/loop.h>
#include <filch/task.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Waking a worker costs microseconds, so this much work must have accumulated first. */
#define WORTH_WAKING_NS 50000

enum offer {
    OFFER_NOT,     /* too little work is left, or too little to wake a worker for */
    OFFER_QUIETLY, /* wake no worker: the thief of the last offer may be about to look again */
    OFFER,
};

/*
 * Decide whether to offer half of [begin, end). While no worker sleeps, an offer costs next to
 * nothing. If a worker would have to be woken, enough work must have accumulated to make up for
 * that. It may accumulate over many short loops. Until then, if the last offer was taken, the loop
 * offers quietly. It does not even read the sleep word, which idle workers change all the time.
 */
static enum offer choose_offer(filch_frame *f, size_t begin, size_t end, size_t chunk)
{
    filch_worker *worker = filch_strand_of(f)->worker;
    filch_pool *pool = worker->pool;

    if (filch_pace_is_short(begin, end, chunk))
        return OFFER_NOT;
    if (chunk > 1) {
        worker->declined += (end - begin) / chunk;
        if (worker->declined < WORTH_WAKING_NS / FILCH_PACE_CHUNK_NS) {
            if (worker->is_offer_taken)
                return OFFER_QUIETLY;
            if (filch_pool_sleeper_count(pool) > 0 && filch_sleep_searcher_count(&pool->sleep) == 0)
                return OFFER_NOT;
        }
    }
    worker->declined = 0;
    return OFFER;
}

/* Unlike a fork, writing a part to its slot does not compare with the limits: offer_part publishes
 * it anyway. If no slot is left, there is no offer. */
static bool has_room(filch_frame *f)
{
    return f < filch_strand_of(f)->split.end;
}

#define PUT_PART(name)                                                                             \
    _Static_assert(name##_fits, "a part lies in its slot");                                        \
    static void name##_put(filch_frame *f, name##_args args)                                       \
    {                                                                                              \
        *(name##_args *)(void *)f->room = args;                                                    \
        filch_fork_fill(f, name##_thunk);                                                          \
    }

/* Publish the part just below `f`. */
static void offer_part(filch_frame *f, enum offer offer)
{
    if (offer == OFFER_QUIETLY)
        filch_publish_quietly(f);
    else
        filch_publish(f);
}

/* Join the part in slot `f`. True: it was stolen and is complete. False: the caller runs it. */
static bool join_part(filch_frame *f)
{
    bool is_stolen = filch_join_is_slow(f) && !filch_join_slow(f);
    filch_worker *worker = filch_strand_of(f)->worker;
    if (worker)
        worker->is_offer_taken = is_stolen;
    return is_stolen;
}

/* Has a thief asked for work, and are more workers idle than tasks are public? Fork makes the first
 * of these tests, too. */
static inline bool is_wanted(filch_frame *f)
{
    return filch_fork_is_slow(f) && filch_is_wanted(f);
}

/* Is there no other worker? Then the loop runs serially. */
static bool is_alone(filch_frame *f)
{
    const filch_worker *worker = filch_strand_of(f)->worker;
    return !worker || worker->pool->worker_count == 1;
}

/*
 * Where to cut [begin, end) in two. A thief starts about half a chunk later, so its part is half a
 * chunk shorter. If chunks are long enough, the cut is a multiple of 64 iterations from the
 * beginning. (A chunk is a power of two.) So two workers seldom write to the same cache line, and
 * vectors stay aligned. That made a loop over doubles 1.4 times faster.
 */
static size_t middle_of(size_t begin, size_t end, size_t chunk)
{
    size_t step = chunk < 64 ? chunk : 64;
    return begin + ((end - begin) / 2 + chunk / 4) / step * step;
}

/* ---- for ------------------------------------------------------------------------------------- */

static void run_part(filch_frame *f, filch_for_fn *body, void *context, size_t begin, size_t end,
                     size_t chunk);

/* The slot holds everything a thief needs: anything elsewhere is one more cache line to fetch from
 * the owner. */
FILCH_TASK(void, for_part, (filch_for_fn *, body), (void *, context), (size_t, begin),
           (size_t, end), (size_t, chunk))
{
    run_part(FILCH_HERE, body, context, begin, end, chunk);
}

PUT_PART(for_part)

/* Run a part, and offer halves of it. */
static FILCH_NOT_INLINED void run_part(filch_frame *f, filch_for_fn *body, void *context,
                                       size_t begin, size_t end, size_t chunk)
{
    filch_frame *mark = f;
    /* Offer the first half unasked: an offer costs less than an idle worker needs to ask. */
    bool is_first = true;

    chunk = filch_pace_recall(f, (uintptr_t)body, chunk);
    while (begin < end) {
        enum offer offer =
            is_first || is_wanted(f) ? choose_offer(f, begin, end, chunk) : OFFER_NOT;
        if (offer != OFFER_NOT) {
            size_t middle = middle_of(begin, end, chunk);
            /* A thief touched this word last, and the slot as well: fetch both at the same time. */
            __builtin_prefetch(&filch_strand_of(f)->split.word, 1);
            if (has_room(f)) {
                for_part_put(f, (for_part_args){body, context, middle, end, chunk});
                offer_part(++f, offer);
                end = middle;
            }
        }
        is_first = false;
        size_t stop = filch_pace_stop(begin, end, chunk);
        uint64_t start = filch_clock_ticks();
        body(f, context, begin, stop);
        FILCH_STOP_UNWIND();
        chunk = filch_pace_adapt(chunk, stop - begin, filch_clock_ticks() - start);
        begin = stop;
    }
    filch_pace_keep(f, (uintptr_t)body, chunk);
    while (f > mark) {
        f--;
        if (!join_part(f))
            for_part_thunk(f, f);
    }
}

/* Without a frame: the loop as a task of its own, run serially. */
typedef struct serial_for {
    size_t begin, end;
    filch_for_fn *body;
    void *context;
} serial_for;

static FILCH_NOT_INLINED void run_serial_for(filch_frame *f, void *arg)
{
    serial_for *loop = arg;
    loop->body(f, loop->context, loop->begin, loop->end);
    FILCH_STOP_UNWIND();
}

FILCH_NOT_INLINED void filch_for(filch_frame *f, size_t begin, size_t end, filch_for_fn *body,
                                 void *context)
{
    if (begin >= end)
        return;
    if (!f)
        filch_run_always(NULL, run_serial_for, &(serial_for){begin, end, body, context});
    else if (is_alone(f))
        body(f, context, begin, end);
    else
        run_part(f, body, context, begin, end, 1);
    FILCH_STOP_UNWIND();
}

/* ---- reduce ---------------------------------------------------------------------------------- */

typedef struct reduction {
    const filch_reducer *reducer;
    void *context;
    size_t leaf;                /* 0: split when a worker is idle */
    filch_atomic_u32 no_memory; /* 1: a fixed tree could not be completed */
} reduction;

/* Accumulators up to this size are on the stack. */
#define SMALL_ACCUMULATOR 512

static void init_accumulator(const reduction *r, void *accumulator)
{
    if (r->reducer->init)
        r->reducer->init(accumulator, r->context);
    else
        memset(accumulator, 0, r->reducer->size);
}

/* Reduce [begin, end) in chunks, and offer halves: the first unasked, if `is_first`. */
static FILCH_NOT_INLINED void reduce_part(filch_frame *f, reduction *r, void *accumulator,
                                          size_t begin, size_t end, size_t chunk, bool is_first);
static FILCH_NOT_INLINED void reduce_leaves(filch_frame *f, reduction *r, void *accumulator,
                                            size_t begin, size_t end);

FILCH_TASK(void, reduce_right, (reduction *, r), (void *, accumulator), (size_t, begin),
           (size_t, end), (size_t, chunk))
{
    init_accumulator(r, accumulator);
    if (r->leaf)
        reduce_leaves(FILCH_HERE, r, accumulator, begin, end);
    else
        reduce_part(FILCH_HERE, r, accumulator, begin, end, chunk, true);
}

PUT_PART(reduce_right)

/* Reduce [begin, middle) here, and [middle, end) perhaps elsewhere. False: no memory for a second
 * accumulator. */
static FILCH_NOT_INLINED bool reduce_halves(filch_frame *f, reduction *r, void *accumulator,
                                            size_t begin, size_t middle, size_t end, size_t chunk,
                                            enum offer offer)
{
    size_t size = r->reducer->size;
    _Alignas(max_align_t) unsigned char small[SMALL_ACCUMULATOR];
    void *right = size <= sizeof small ? small : malloc(size);

    if (!right)
        return false;
    if (r->leaf) {
        filch_slot *filch_here = f;
        FILCH_FORK(upper, reduce_right, r, right, middle, end, chunk);
        reduce_leaves(filch_here, r, accumulator, begin, middle);
        FILCH_JOIN(upper);
    } else {
        reduce_right_put(f, (reduce_right_args){r, right, middle, end, chunk});
        offer_part(f + 1, offer);
        reduce_part(f + 1, r, accumulator, begin, middle, chunk, false);
        if (!join_part(f))
            reduce_right_thunk(f, f);
    }
    r->reducer->merge(accumulator, right, r->context);
    FILCH_STOP_UNWIND();
    if (right != small)
        free(right);
    return true;
}

static FILCH_NOT_INLINED void reduce_part(filch_frame *f, reduction *r, void *accumulator,
                                          size_t begin, size_t end, size_t chunk, bool is_first)
{
    uintptr_t body = (uintptr_t)r->reducer->add;

    chunk = filch_pace_recall(f, body, chunk);
    while (begin < end) {
        enum offer offer =
            is_first || is_wanted(f) ? choose_offer(f, begin, end, chunk) : OFFER_NOT;
        if (offer != OFFER_NOT && has_room(f)) {
            filch_pace_keep(f, body, chunk);
            if (reduce_halves(f, r, accumulator, begin, middle_of(begin, end, chunk), end, chunk,
                              offer))
                return;
        }
        is_first = false;
        size_t stop = filch_pace_stop(begin, end, chunk);
        uint64_t start = filch_clock_ticks();
        r->reducer->add(f, accumulator, r->context, begin, stop);
        FILCH_STOP_UNWIND();
        chunk = filch_pace_adapt(chunk, stop - begin, filch_clock_ticks() - start);
        begin = stop;
    }
    filch_pace_keep(f, body, chunk);
}

/* The tree of a fixed reduction. Cut at the largest power of two of leaves, so that the number of
 * leaves alone determines the shape. */
static FILCH_NOT_INLINED void reduce_leaves(filch_frame *f, reduction *r, void *accumulator,
                                            size_t begin, size_t end)
{
    size_t left = r->leaf;

    if (end - begin <= r->leaf) {
        r->reducer->add(f, accumulator, r->context, begin, end);
        FILCH_STOP_UNWIND();
        return;
    }
    while (left < (end - begin + 1) / 2)
        left *= 2;
    if (!reduce_halves(f, r, accumulator, begin, begin + left, end, 0, OFFER_NOT))
        /* relaxed: carried to the caller by the joins. */
        filch_store_relaxed(&r->no_memory, 1);
}

/* Without a frame: as for filch_for. */
typedef struct serial_reduction {
    reduction *r;
    void *result;
    size_t begin, end;
} serial_reduction;

static FILCH_NOT_INLINED void run_serial_reduction(filch_frame *f, void *arg)
{
    serial_reduction *loop = arg;

    if (loop->r->leaf)
        reduce_leaves(f, loop->r, loop->result, loop->begin, loop->end);
    else
        loop->r->reducer->add(f, loop->result, loop->r->context, loop->begin, loop->end);
    FILCH_STOP_UNWIND();
}

FILCH_NOT_INLINED void filch_reduce(filch_frame *f, size_t begin, size_t end,
                                    const filch_reducer *reducer, void *context, void *result)
{
    reduction r = {.reducer = reducer, .context = context};

    init_accumulator(&r, result);
    if (begin >= end)
        return;
    if (!f)
        filch_run_always(NULL, run_serial_reduction, &(serial_reduction){&r, result, begin, end});
    else if (is_alone(f))
        reducer->add(f, result, context, begin, end);
    else
        reduce_part(f, &r, result, begin, end, 1, true);
    FILCH_STOP_UNWIND();
}

FILCH_NOT_INLINED int filch_reduce_fixed(filch_frame *f, size_t begin, size_t end, size_t leaf,
                                         const filch_reducer *reducer, void *context, void *result)
{
    reduction r = {.reducer = reducer, .context = context, .leaf = leaf};

    init_accumulator(&r, result);
    if (begin >= end)
        return 0;
    if (r.leaf == 0)
        r.leaf = (end - begin - 1) / 1000 + 1;
    if (f)
        reduce_leaves(f, &r, result, begin, end);
    else if (filch_run_serially(run_serial_reduction,
                                &(serial_reduction){&r, result, begin, end}) != 0)
        return -ENOMEM;
    FILCH_STOP_UNWIND();
    /* relaxed: all parts are joined. */
    return filch_load_relaxed(&r.no_memory) ? -ENOMEM : 0;
}

/* ---- invoke ---------------------------------------------------------------------------------- */

typedef struct serial_calls {
    const filch_call *calls;
    size_t count;
} serial_calls;

static void run_serial_calls(filch_frame *f, void *arg)
{
    serial_calls *all = arg;
    filch_invoke(f, all->calls, all->count);
}

FILCH_NOT_INLINED void filch_invoke(filch_frame *f, const filch_call *calls, size_t count)
{
    filch_frame *mark = f;

    if (count == 0)
        return;
    if (!f) {
        filch_run_always(NULL, run_serial_calls, &(serial_calls){calls, count});
        return;
    }
    for (size_t i = count; i-- > 1;)
        f = filch_fork(f, calls[i].fn, calls[i].arg);
    calls[0].fn(f, calls[0].arg);
    FILCH_STOP_UNWIND();
    filch_join(f, mark);
}
