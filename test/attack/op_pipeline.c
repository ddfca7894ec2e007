/* SPDX-License-Identifier: MIT */
/*
 * Pipelines, and calls that block.
 */
#include "attack.h"

#include <sched.h>

/* ---- pipelines ------------------------------------------------------------------------------- */

#define ITEMS_MAX 200

typedef struct line {
    actor a;
    unsigned count; /* of items to make */
    filch_atomic_u64 made, consumed, discarded, at_work;
    uint64_t last;     /* the item that the ordered stage had last */
    unsigned error_at; /* the item that fails; 0: none */
    actor actors[ITEMS_MAX + 1];
} line;

static int make_item(filch_frame *f, void *context, void **item)
{
    line *l = context;

    (void)f;
    CHECK(!*item);
    uint64_t n = get(&l->made);
    if (n == l->count)
        return FILCH_PIPELINE_END;
    add(&l->made, 1);
    *item = &l->actors[n + 1];
    return 0;
}

static int work_on_item(filch_frame *f, void *context, void **item)
{
    line *l = context;
    actor *a = *item;

    act(f, a);
    return l->error_at && a == &l->actors[l->error_at] ? -EDOM : 0;
}

/* In order, one at a time. */
static int count_item(filch_frame *f, void *context, void **item)
{
    line *l = context;
    uint64_t n = (uint64_t)((actor *)*item - l->actors);

    CHECK_EQUAL(get(&l->at_work), 0);
    add(&l->at_work, 1);
    CHECK_EQUAL(n, l->last + 1);
    l->last = n;
    if (one_in(&l->a, 8))
        filch_yield(f);
    add(&l->at_work, -1ull);
    return 0;
}

static int consume_item(filch_frame *f, void *context, void **item)
{
    line *l = context;

    (void)f;
    *item = NULL;
    add(&l->consumed, 1);
    return 0;
}

static void discard_item(void *context, void *item)
{
    line *l = context;

    CHECK(item);
    add(&l->discarded, 1);
}

void op_pipeline(filch_frame *f, actor *a)
{
    line *l = calloc(1, sizeof *l);
    filch_pipeline_options options = {.size = sizeof options,
                                      .token_limit = below(a, 6),
                                      .deadline_ns = one_in(a, 6) ? some_deadline(a) : 0,
                                      .discard = discard_item,
                                      .discard_context = l};

    l->count = sized(below(a, ITEMS_MAX));
    l->error_at = l->count > 0 && one_in(a, 6) ? 1 + below(a, l->count) : 0;
    l->a = *a;
    note(a, "items", l->count);
    note(a, "tokens", options.token_limit);
    note_if(a, options.deadline_ns, "deadline");
    if (l->error_at)
        note(a, "fails at", l->error_at);
    for (unsigned i = 0; i <= l->count; i++) {
        l->actors[i] = part_of(a, l->count + 1 - i);
        l->actors[i].is_cancellable = true;
        l->actors[i].is_shielded = false;
    }
    const filch_stage stages[] = {
        {.fn = make_item, .context = l, .width = 1},
        {.fn = work_on_item, .context = l, .width = below(a, 4)},
        {.fn = count_item, .context = l, .width = 1, .is_ordered = true},
        {.fn = consume_item, .context = l, .is_ordered = one_in(a, 2)},
    };
    filch_pool *pool = f && (a->is_inside || one_in(a, 2)) ? NULL : some_pool(a);
    if (f || !a->is_inside) {
        int err = filch_pipeline_run(f, pool, stages, COUNT_OF(stages), &options);
        if (err == 0) {
            CHECK_EQUAL(get(&l->consumed), l->count);
            CHECK_EQUAL(get(&l->discarded), 0);
        } else if (err == -EDOM) {
            CHECK(l->error_at > 0);
        } else {
            ok(f, a, err, options.deadline_ns ? MAY_TIME_OUT : 0);
        }
        CHECK_EQUAL(get(&l->consumed) + get(&l->discarded), get(&l->made));
    }
    free(l);
}

/* ---- calls that block ------------------------------------------------------------------------ */

typedef struct call {
    filch_atomic_u64 times;
    unsigned sleep_us;
    int result;
} call;

static int block(void *arg)
{
    call *c = arg;

    add(&c->times, 1);
    if (c->sleep_us)
        usleep(c->sleep_us);
    else
        sched_yield();
    return c->result;
}

void op_blocking(filch_frame *f, actor *a)
{
    static const filch_lane lanes[] = {FILCH_LANE_ANY, FILCH_LANE_FILES, FILCH_LANE_NAMES};
    call c = {.sleep_us = one_in(a, 2) ? below(a, 2000) : 0, .result = (int)below(a, 1000)};

    note(a, "us", c.sleep_us);
    int result = filch_blocking(f, lanes[below(a, COUNT_OF(lanes))], block, &c);

    if (ok(f, a, result, 0)) {
        CHECK_EQUAL(result, c.result);
        CHECK_EQUAL(get(&c.times), 1);
    } else {
        CHECK_EQUAL(get(&c.times), 0);
    }
}
