/* SPDX-License-Identifier: MIT */
/* Parts are joined without the macros, so checked builds must not count them as open forks. */
#define FILCH_CHECKED 0

#include "base/clock.h"
#include "base/fault.h"
#include "fork/fork.h"
#include "loop/pace.h"
#include "loop/rest.h"
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
    OFFER_FIRST, /* a part begins: this is not decided yet */
};

/*
 * Decide whether to offer half of [begin, end). While no worker sleeps, an offer costs next to
 * nothing. If a worker would have to be woken, enough work must have accumulated to make up for
 * that. It may accumulate over many short loops. Until then, a loop begins with a quiet offer if
 * the last offer was taken. It does not even read the sleep word, which idle workers change all the
 * time.
 */
static enum offer choose_offer(filch_frame *f, size_t begin, size_t end, size_t chunk,
                               bool is_first)
{
    filch_worker *worker = filch_strand_of(f)->worker;
    filch_pool *pool = worker->pool;

    if (filch_pace_is_short(begin, end, chunk))
        return OFFER_NOT;
    if (chunk > 1) {
        worker->declined += (end - begin) / chunk;
        if (worker->declined < WORTH_WAKING_NS / FILCH_PACE_CHUNK_NS) {
            if (is_first && worker->is_offer_taken)
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

/* ---- the calls of one part ------------------------------------------------------------------- */

typedef struct reduction {
    const filch_reducer *reducer;
    void *context;
    size_t leaf;                /* 0: split when a worker is idle */
    filch_atomic_u32 no_memory; /* 1: a fixed tree could not be completed */
} reduction;

/* Constant for all calls of the body in one part, but for `right`. */
typedef struct part {
    filch_for_fn *body; /* of filch_for; NULL for a reduction */
    void *context;      /* of filch_for; or the accumulator */
    reduction *r;       /* of a reduction */
    void *right;        /* the accumulator for the thief of the rest; NULL: none yet */
} part;

static void run_rest(filch_frame *f, filch_slot *task);

static void *allocate(size_t bytes)
{
    return filch_fault(FILCH_FAULT_MALLOC) ? NULL : malloc(bytes);
}

/* False: there is no memory for the accumulator. */
static bool has_right(part *p)
{
    if (!p->body && !p->right)
        p->right = allocate(p->r->reducer->size);
    return p->body || p->right;
}

/* Join the rest. True: it is the caller's again. False: a thief has completed it. */
static bool close_rest(filch_frame *f, const part *p)
{
    if (filch_join_known(f))
        return true;
    if (!p->body)
        p->r->reducer->merge(p->context, p->right, p->r->context);
    return false;
}

/*
 * A rest was opened, and a worker has asked. It may already have taken its second look, since a
 * moment ago there was no rest: so it must be woken now, [fork-or-look]. Offer half of the rest, or
 * publish all of it.
 */
static enum offer offer_new(filch_frame *f, size_t begin, size_t end, size_t chunk)
{
    if (!filch_pace_is_short(begin, end, chunk))
        return OFFER;
    filch_publish(f + 1);
    return OFFER_NOT;
}

/* How many of the iterations [begin, stop) the next call gets. */
static inline size_t next_of(size_t begin, size_t stop, size_t call)
{
    return call < stop - begin ? begin + call : stop;
}

/* What a call of the body needs, in registers. */
typedef struct callee {
    filch_for_fn *body;
    void (*add)(filch_frame *, void *, void *, size_t, size_t);
    void *context, *add_context;
} callee;

static inline __attribute__((always_inline)) void call_body(callee c, filch_frame *f, size_t begin,
                                                            size_t end)
{
    if (c.body)
        c.body(f, c.context, begin, end);
    else
        c.add(f, c.context, c.add_context, begin, end);
}

/*
 * Make the calls for [begin, end). Meanwhile the rest can be stolen from slot `f`. Returns where it
 * stopped: at the end; or earlier, to offer half of what is left, as *offer says. Unless *offer is
 * OFFER at first, the caller has just decided to wake no worker.
 */
static FILCH_NOT_INLINED size_t run_calls(filch_frame *f, part *p, size_t begin, size_t end,
                                          size_t *pace, enum offer *offer)
{
    const callee c = {p->body, p->body ? NULL : p->r->reducer->add, p->context,
                      p->body ? NULL : p->r->context};
    size_t chunk = *pace;
    bool is_open = false, may_open = filch_rest_fits(f), may_offer = *offer == OFFER;

    *offer = OFFER_NOT;
    while (begin < end) {
        size_t call = may_open ? filch_pace_call(chunk) : SIZE_MAX;
        size_t stop = filch_pace_stop(begin, end, chunk), first = begin;
        bool is_new = false;

        if (!is_open && next_of(begin, stop, call) < end && may_open && (may_open = has_right(p))) {
            filch_rest_open(f, p, begin, end, run_rest);
            is_open = is_new = true;
        }
        if (may_offer && is_wanted(f) && has_room(f))
            *offer = is_new ? offer_new(f, begin, end, chunk)
                            : choose_offer(f, begin, end, chunk, false);
        may_offer = true;
        if (*offer != OFFER_NOT)
            break;

        uint64_t start = filch_clock_ticks();
        do {
            /* Look for requests now and then. */
            size_t turn = next_of(begin, stop, filch_pace_turn(chunk));
            if (is_open)
                filch_rest_show(f);
            /* Nearly all calls are made here. Below are those at an end, or without a rest. */
            while (is_open && call < turn - begin && filch_rest_take(f, begin + call)) {
                call_body(c, f + 1, begin, begin + call);
                begin += call;
            }
            while (begin < turn) {
                size_t next = next_of(begin, turn, call);
                if (!is_open || (next < end && filch_rest_take(f, next))) {
                    call_body(c, f + is_open, begin, next);
                    begin = next;
                    continue;
                }
                /* This is the last call, or the rest is public. */
                bool is_last = next == end;
                size_t mine = is_last ? begin : filch_rest_settle(f, next);
                if (begin < mine)
                    call_body(c, f + 1, begin, mine);
                begin = mine;
                is_open = false;
                if (!close_rest(f, p)) {
                    begin = end;
                    goto done;
                }
                /* A new rest is opened above. */
                if (!is_last)
                    stop = turn = begin;
            }
            /* A thief has asked: read the clock now, then consider an offer. */
        } while (begin < stop && !filch_fork_is_slow(f));
        chunk = filch_pace_adapt(chunk, begin - first, filch_clock_ticks() - start);
    }
    if (is_open && !close_rest(f, p))
        begin = end;
done:
    FILCH_STOP_UNWIND();
    *pace = chunk;
    return begin;
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
static void run_part(filch_frame *f, filch_for_fn *body, void *context, size_t begin, size_t end,
                     size_t chunk)
{
    filch_frame *mark = f;
    part p = {.body = body, .context = context};

    chunk = filch_pace_recall(f, (uintptr_t)body, chunk);
    /* Offer the first half unasked: an offer costs less than an idle worker needs to ask. */
    enum offer offer = choose_offer(f, begin, end, chunk, true);
    do {
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
        begin = run_calls(f, &p, begin, end, &chunk, &offer);
    } while (begin < end);
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
        run_part(f, body, context, begin, end, FILCH_PACE_UNKNOWN);
    FILCH_STOP_UNWIND();
}

/* ---- reduce ---------------------------------------------------------------------------------- */

/* Accumulators up to this size are on the stack. */
#define SMALL_ACCUMULATOR 512

static void init_accumulator(const reduction *r, void *accumulator)
{
    if (r->reducer->init)
        r->reducer->init(accumulator, r->context);
    else
        memset(accumulator, 0, r->reducer->size);
}

/* Reduce [begin, end), and offer halves. The last offer is that of `offer`. */
static void reduce_part(filch_frame *f, reduction *r, void *accumulator, size_t begin, size_t end,
                        size_t chunk, enum offer offer);
static FILCH_NOT_INLINED void reduce_leaves(filch_frame *f, reduction *r, void *accumulator,
                                            size_t begin, size_t end);

FILCH_TASK(void, reduce_right, (reduction *, r), (void *, accumulator), (size_t, begin),
           (size_t, end), (size_t, chunk))
{
    init_accumulator(r, accumulator);
    if (r->leaf)
        reduce_leaves(FILCH_HERE, r, accumulator, begin, end);
    else
        reduce_part(FILCH_HERE, r, accumulator, begin, end, chunk, OFFER_FIRST);
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
    void *right = size <= sizeof small ? small : allocate(size);

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
        reduce_part(f + 1, r, accumulator, begin, middle, chunk, offer);
        if (!join_part(f))
            reduce_right_thunk(f, f);
    }
    r->reducer->merge(accumulator, right, r->context);
    FILCH_STOP_UNWIND();
    if (right != small)
        free(right);
    return true;
}

/* As run_calls, with an accumulator for the thief of the rest. */
static FILCH_NOT_INLINED size_t reduce_calls(filch_frame *f, reduction *r, void *accumulator,
                                             size_t begin, size_t end, size_t *pace,
                                             enum offer *offer)
{
    _Alignas(max_align_t) unsigned char small[SMALL_ACCUMULATOR];
    part p = {
        .context = accumulator, .r = r, .right = r->reducer->size <= sizeof small ? small : NULL};

    begin = run_calls(f, &p, begin, end, pace, offer);
    if (p.right != small)
        free(p.right);
    return begin;
}

static void reduce_part(filch_frame *f, reduction *r, void *accumulator, size_t begin, size_t end,
                        size_t chunk, enum offer offer)
{
    uintptr_t body = (uintptr_t)r->reducer->add;

    chunk = filch_pace_recall(f, body, chunk);
    if (offer == OFFER_FIRST)
        offer = choose_offer(f, begin, end, chunk, true);
    else
        begin = reduce_calls(f, r, accumulator, begin, end, &chunk, &offer);
    while (begin < end) {
        if (offer != OFFER_NOT && has_room(f)) {
            filch_pace_keep(f, body, chunk);
            if (reduce_halves(f, r, accumulator, begin, middle_of(begin, end, chunk), end, chunk,
                              offer))
                return;
            offer = OFFER_NOT; /* no memory: go on, and try again when a worker asks */
        }
        begin = reduce_calls(f, r, accumulator, begin, end, &chunk, &offer);
    }
    filch_pace_keep(f, body, chunk);
}

/* ---- the thief of a rest --------------------------------------------------------------------- */

/* Its iterations may be the long ones: the first call gets one of them. */
static void run_rest(filch_frame *f, filch_slot *task)
{
    const part *p = filch_rest_in(task)->of;
    size_t begin = filch_rest_start(task), end = filch_rest_in(task)->end;

    if (p->body) {
        run_part(f, p->body, p->context, begin, end, 1);
    } else {
        init_accumulator(p->r, p->right);
        reduce_part(f, p->r, p->right, begin, end, 1, OFFER_FIRST);
    }
}

/* ---- a fixed tree ---------------------------------------------------------------------------- */

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
        reduce_part(f, &r, result, begin, end, FILCH_PACE_UNKNOWN, OFFER_FIRST);
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
