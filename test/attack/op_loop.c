/* SPDX-License-Identifier: MIT */
/*
 * Loops, reductions, sorts and parallel calls.
 */
#include "attack.h"

#include <malloc.h>

#define ITERATIONS_MAX 20000

/* ---- for ------------------------------------------------------------------------------------- */

typedef struct loop {
    unsigned char *visits; /* of each index */
    actor *a;
    size_t act_at;         /* the index at which the actor acts */
    filch_atomic_u64 gaps; /* parts that were merged and do not meet */
} loop;

static void visit(filch_frame *f, void *context, size_t begin, size_t end)
{
    loop *l = context;

    for (size_t i = begin; i < end; i++) {
        l->visits[i]++;
        if (i == l->act_at)
            act(f, l->a);
    }
}

void op_loop(filch_frame *f, actor *a)
{
    size_t count = sized(below(a, one_in(a, 2) ? 20 : ITERATIONS_MAX) + 1);
    actor inner = part_of(a, 1);
    loop l = {.visits = calloc(count, 1), .a = &inner, .act_at = below(a, (uint32_t)count)};

    note(a, "indices", count);
    filch_for(f, 0, count, visit, &l);
    for (size_t i = 0; i < count; i++)
        if (l.visits[i] != 1)
            FAIL("index %zu of %zu was visited %d times", i, count, l.visits[i]);
    free(l.visits);
}

/* ---- reduce ---------------------------------------------------------------------------------- */

/* A range of indices. Large accumulators are allocated. */
typedef struct range {
    size_t begin, end, sum;
    char padding[600];
} range;

static void add_range(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    range *r = accumulator;
    loop *l = context;

    if (r->end == 0)
        r->begin = begin;
    else
        CHECK_EQUAL(r->end, begin);
    r->end = end;
    for (size_t i = begin; i < end; i++) {
        r->sum += i;
        if (i == l->act_at)
            act(f, l->a);
    }
}

static void merge_ranges(void *left, const void *right, void *context)
{
    range *l = left;
    const range *r = right;

    if (r->end == 0)
        return;
    if (l->end == 0)
        l->begin = r->begin;
    else
        add(&((loop *)context)->gaps, l->end != r->begin);
    l->end = r->end;
    l->sum += r->sum;
}

void op_reduce(filch_frame *f, actor *a)
{
    filch_reducer reducer = {.size = one_in(a, 2) ? offsetof(range, padding) : sizeof(range),
                             .add = add_range,
                             .merge = merge_ranges};
    size_t count = sized(1 + below(a, ITERATIONS_MAX)), begin = 1, end = begin + count;
    actor inner = part_of(a, 1);
    loop l = {.a = &inner, .act_at = begin + below(a, (uint32_t)count)};
    range result;

    note(a, "indices", count);
    note(a, "bytes", reducer.size);
    if (one_in(a, 2))
        filch_reduce(f, begin, end, &reducer, &l, &result);
    else if (!ok(f, a, filch_reduce_fixed(f, begin, end, below(a, 100), &reducer, &l, &result), 0))
        return;
    CHECK_EQUAL(get(&l.gaps), 0);
    CHECK_EQUAL(result.begin, begin);
    CHECK_EQUAL(result.end, end);
    CHECK_EQUAL(result.sum, (begin + end - 1) * count / 2);
}

/* ---- sort ------------------------------------------------------------------------------------ */

typedef struct element {
    uint32_t key, place;
} element;

static int compare(const void *left, const void *right, void *context)
{
    const element *l = left, *r = right;

    (void)context;
    return (l->key > r->key) - (l->key < r->key);
}

void op_sort(filch_frame *f, actor *a)
{
    size_t count = sized(below(a, one_in(a, 3) ? 30000 : 300));
    uint32_t keys = 1 + below(a, 1000000);
    bool is_stable = one_in(a, 2), is_by_pool = one_in(a, 3) && !a->is_inside;
    element *elements = malloc((count + 1) * sizeof *elements);
    uint64_t sum = 0, keys_sum = 0;

    note(a, "elements", count);
    note(a, "keys", keys);
    note_if(a, is_stable, "stable");
    note_if(a, is_by_pool, "by pool");
    for (size_t i = 0; i < count; i++) {
        elements[i] = (element){below(a, keys), (uint32_t)i};
        sum += i;
        keys_sum += elements[i].key;
    }
    /* For any thread: "they abort if there is no memory" only where the task cannot run. */
    if (is_by_pool)
        (is_stable ? filch_pool_sort_stable : filch_pool_sort)(some_pool(a), elements, count,
                                                               sizeof *elements, compare, NULL);
    else
        (is_stable ? filch_sort_stable : filch_sort)(f, elements, count, sizeof *elements, compare,
                                                     NULL);
    for (size_t i = 0; i < count; i++) {
        sum -= elements[i].place;
        keys_sum -= elements[i].key;
        if (i == 0)
            continue;
        CHECK(elements[i - 1].key <= elements[i].key);
        CHECK(!is_stable || elements[i - 1].key < elements[i].key ||
              elements[i - 1].place < elements[i].place);
    }
    CHECK_EQUAL(sum, 0);
    CHECK_EQUAL(keys_sum, 0);
    free(elements);
}

/* ---- invoke ---------------------------------------------------------------------------------- */

static void act_invoked(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

void op_invoke(filch_frame *f, actor *a)
{
    filch_call calls[9];
    actor actors[COUNT_OF(calls)];
    unsigned count = sized(1 + below(a, COUNT_OF(calls)));

    note(a, "calls", count);
    for (unsigned i = 0; i < count; i++) {
        actors[i] = part_of(a, count - i);
        name_actor(&actors[i], "call", i + 1);
        calls[i] = (filch_call){act_invoked, &actors[i]};
        promise();
    }
    filch_invoke(f, calls, count);
}
