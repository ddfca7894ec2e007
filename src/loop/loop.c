/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "join/join.h"
#include "loop/pace.h"
#include "worker/worker.h"

#include <filch/loop.h>
#include <filch/task.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Somebody asked for work, and still wants it. The first test is the one that fork makes. */
static inline bool is_wanted(filch_slot *f)
{
    return filch_fork_is_slow(f) && filch_is_wanted(f);
}

/* ---- for --------------------------------------------------------------------------------------- */

/* The same for all parts of a loop. */
typedef struct for_loop {
    filch_for_fn *body;
    void *context;
    filch_pace pace;
} for_loop;

static void run_part(filch_slot *f, for_loop *loop, size_t begin, size_t end);

FILCH_TASK(void, for_part, (for_loop *, loop), (size_t, begin), (size_t, end))
{
    run_part(FILCH_HERE, loop, begin, end);
}

/* Put the upper half of [begin, end) where thieves find it; returns where it begins. */
static size_t give_half(filch_slot **f, for_loop *loop, size_t begin, size_t end)
{
    size_t middle = begin + (end - begin) / 2;

    for_part_spawn(f, *f, loop, middle, end);
    filch_publish(*f);
    return middle;
}

static void run_part(filch_slot *f, for_loop *loop, size_t begin, size_t end)
{
    filch_slot *mark = f;
    size_t chunk = filch_pace_chunk(&loop->pace);

    /* An offer costs less than it takes an idle worker to ask. */
    if (end - begin > chunk)
        end = give_half(&f, loop, begin, end);
    while (begin < end) {
        if (end - begin > 1 && is_wanted(f))
            end = give_half(&f, loop, begin, end);
        size_t stop = end - begin > chunk ? begin + chunk : end;
        uint64_t start = filch_clock_ticks();
        loop->body(f, loop->context, begin, stop);
        chunk = filch_pace_learn(&loop->pace, stop - begin, filch_clock_ticks() - start);
        begin = stop;
    }
    filch_join(f, mark);
}

void filch_for(filch_slot *f, size_t begin, size_t end, filch_for_fn *body, void *context)
{
    if (begin >= end)
        return;
    filch_worker *worker = filch_strand_of(f)->worker;
    /* Nobody who could help: the loop is the serial one. */
    if (!worker || worker->pool->worker_count == 1) {
        body(f, context, begin, end);
        return;
    }
    for_loop loop = {.body = body, .context = context};
    filch_pace_recall(&loop.pace, worker->paces, (uintptr_t)body);
    run_part(f, &loop, begin, end);
    /* The strand may be on another worker now. */
    filch_pace_keep(&loop.pace, filch_strand_of(f)->worker->paces, (uintptr_t)body);
}

/* ---- reduce ------------------------------------------------------------------------------------ */

typedef struct reduction {
    const filch_reducer *reducer;
    void *context;
    size_t leaf; /* 0: split where somebody is idle */
    filch_pace pace;
    filch_atomic_u32 no_memory; /* 1: a fixed tree could not be completed */
} reduction;

/* Accumulators up to this size lie on the stack. */
#define SMALL_ACCUMULATOR 512

static void init_accumulator(const reduction *r, void *accumulator)
{
    if (r->reducer->init)
        r->reducer->init(accumulator, r->context);
    else
        memset(accumulator, 0, r->reducer->size);
}

static void reduce_part(filch_slot *f, reduction *r, void *accumulator, size_t begin, size_t end);
static void reduce_leaves(filch_slot *f, reduction *r, void *accumulator, size_t begin, size_t end);

FILCH_TASK(void, reduce_right, (reduction *, r), (void *, accumulator), (size_t, begin),
           (size_t, end))
{
    init_accumulator(r, accumulator);
    (r->leaf ? reduce_leaves : reduce_part)(FILCH_HERE, r, accumulator, begin, end);
}

/* [begin, middle) here and [middle, end) perhaps elsewhere. False: no memory for a second accumulator. */
static bool reduce_halves(filch_slot *f, reduction *r, void *accumulator, size_t begin,
                          size_t middle, size_t end)
{
    size_t size = r->reducer->size;
    _Alignas(max_align_t) unsigned char small[SMALL_ACCUMULATOR];
    void *right = size <= sizeof small ? small : malloc(size);
    filch_slot *filch_here = f;

    if (!right)
        return false;
    FILCH_FORK(upper, reduce_right, r, right, middle, end);
    if (!r->leaf)
        filch_publish(filch_here);
    (r->leaf ? reduce_leaves : reduce_part)(filch_here, r, accumulator, begin, middle);
    FILCH_JOIN(upper);
    r->reducer->merge(accumulator, right, r->context);
    if (right != small)
        free(right);
    return true;
}

static void reduce_part(filch_slot *f, reduction *r, void *accumulator, size_t begin, size_t end)
{
    size_t chunk = filch_pace_chunk(&r->pace);
    bool is_first = true;

    for (; begin < end; is_first = false) {
        bool offer = is_first ? end - begin > 2 * chunk : end - begin > 1 && is_wanted(f);
        if (offer && reduce_halves(f, r, accumulator, begin, begin + (end - begin) / 2, end))
            return;
        size_t stop = end - begin > chunk ? begin + chunk : end;
        uint64_t start = filch_clock_ticks();
        r->reducer->add(f, accumulator, r->context, begin, stop);
        chunk = filch_pace_learn(&r->pace, stop - begin, filch_clock_ticks() - start);
        begin = stop;
    }
}

/* The tree of a fixed reduction: cut at the largest power of two of leaves, so that its shape follows from the
 * number of leaves alone. */
static void reduce_leaves(filch_slot *f, reduction *r, void *accumulator, size_t begin, size_t end)
{
    size_t left = r->leaf;

    if (end - begin <= r->leaf) {
        r->reducer->add(f, accumulator, r->context, begin, end);
        return;
    }
    while (left < (end - begin + 1) / 2)
        left *= 2;
    if (!reduce_halves(f, r, accumulator, begin, begin + left, end))
        /* relaxed: carried to the caller by the joins. */
        filch_store_relaxed(&r->no_memory, 1);
}

void filch_reduce(filch_slot *f, size_t begin, size_t end, const filch_reducer *reducer,
                  void *context, void *result)
{
    reduction r = {.reducer = reducer, .context = context};
    filch_worker *worker = filch_strand_of(f)->worker;

    init_accumulator(&r, result);
    if (begin >= end)
        return;
    if (!worker || worker->pool->worker_count == 1) {
        reducer->add(f, result, context, begin, end);
        return;
    }
    filch_pace_recall(&r.pace, worker->paces, (uintptr_t)reducer->add);
    reduce_part(f, &r, result, begin, end);
    filch_pace_keep(&r.pace, filch_strand_of(f)->worker->paces, (uintptr_t)reducer->add);
}

int filch_reduce_fixed(filch_slot *f, size_t begin, size_t end, size_t leaf,
                       const filch_reducer *reducer, void *context, void *result)
{
    reduction r = {.reducer = reducer, .context = context, .leaf = leaf};

    init_accumulator(&r, result);
    if (begin >= end)
        return 0;
    if (r.leaf == 0)
        r.leaf = (end - begin - 1) / 1000 + 1;
    reduce_leaves(f, &r, result, begin, end);
    /* relaxed: all parts are joined. */
    return filch_load_relaxed(&r.no_memory) ? -ENOMEM : 0;
}

/* ---- invoke ------------------------------------------------------------------------------------ */

void filch_invoke(filch_slot *f, const filch_call *calls, size_t count)
{
    filch_slot *mark = f;

    if (count == 0)
        return;
    for (size_t i = count; i-- > 1;)
        f = filch_fork(f, calls[i].fn, calls[i].arg);
    calls[0].fn(f, calls[0].arg);
    filch_join(f, mark);
}
