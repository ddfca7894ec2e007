/* SPDX-License-Identifier: MIT */
/* Pipelines: every item passes every stage, in order if the stage asks for it, and within its
 * width. */
#include "watchdog.h"

#include <filch/channel.h>
#include <filch/pipeline.h>

/* Items are the numbers from 1. */
static void *item_of(uintptr_t number)
{
    return (void *)number;
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef struct source {
    uintptr_t made, last;
    bool ends_with_last; /* returns FILCH_PIPELINE_END with the last item, not after it */
    counter calls;
} source;

/* A stage of width 1. */
static int make(filch_frame *f TEST_UNUSED, void *context, void **item)
{
    source *s = context;
    CHECK(*item == NULL);
    counter_add(&s->calls, 1);
    if (s->made == s->last)
        return FILCH_PIPELINE_END;
    *item = item_of(++s->made);
    return s->ends_with_last && s->made == s->last ? FILCH_PIPELINE_END : 0;
}

/* Counts the calls of a stage that run at once. */
typedef struct stage_watch {
    counter inside, most, calls, sum;
    unsigned spins;
    uintptr_t fails_at; /* the item at which it returns -EIO */
} stage_watch;

static int pass(filch_frame *f, void *context, void **item)
{
    stage_watch *w = context;
    uint64_t inside;

    /* relaxed: only the count matters. */
    inside = filch_fetch_add_relaxed(&w->inside, 1) + 1;
    if (inside > counter_get(&w->most))
        counter_set(&w->most, inside);
    counter_add(&w->calls, 1);
    counter_add(&w->sum, (uintptr_t)*item);
    spin(w->spins);
    if (w->spins && (uintptr_t)*item % 3 == 0)
        filch_yield(f);
    counter_add(&w->inside, (uint64_t)-1);
    return (uintptr_t)*item == w->fails_at ? -EIO : 0;
}

/* A stage of width 1: plain data, which the pipeline must hand from call to call. */
typedef struct sink {
    uintptr_t count, sum, last;
    bool is_in_order;
} sink;

static int take(filch_frame *f, void *context, void **item)
{
    sink *s = context;
    uintptr_t number = (uintptr_t)*item;

    s->is_in_order &= number > s->last;
    s->last = number;
    if (number % 5 == 0)
        filch_yield(f);
    s->count++;
    s->sum += number;
    return 0;
}

static uintptr_t sum_to(uintptr_t n)
{
    return n * (n + 1) / 2;
}

/* ---- promises -------------------------------------------------------------------------------- */

TEST(every_item_goes_through_all_stages_and_leaves_in_order)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        for (unsigned token_limit = 0; token_limit < 10; token_limit++) {
            const uintptr_t n = 500;
            source from = {.last = n, .ends_with_last = token_limit % 2};
            stage_watch wide = {.spins = 100}, two = {.spins = 50}, ordered = {.spins = 20};
            sink to = {.is_in_order = true};
            const filch_stage stages[] = {
                {.fn = make, .context = &from, .width = 1},
                {.fn = pass, .context = &wide},
                {.fn = pass, .context = &two, .width = 2},
                {.fn = pass, .context = &ordered, .width = 2, .is_ordered = true},
                {.fn = take, .context = &to, .width = 1, .is_ordered = true},
            };
            const filch_pipeline_options options = {.size = sizeof options,
                                                    .token_limit = token_limit};

            int err = filch_pipeline_run(NULL, pool, stages, COUNT_OF(stages), &options);

            assert_int_equal(err, 0);
            assert_int_equal(counter_get(&wide.sum), sum_to(n));
            assert_int_equal(counter_get(&two.sum), sum_to(n));
            assert_int_equal(counter_get(&ordered.sum), sum_to(n));
            assert_int_equal(to.count, n);
            assert_int_equal(to.sum, sum_to(n));
            assert_true(to.is_in_order);
            assert_in_range(counter_get(&two.most), 1, 2);
            assert_in_range(counter_get(&ordered.most), 1, 2);
            if (token_limit)
                assert_in_range(counter_get(&wide.most), 1, token_limit);
            assert_int_equal(counter_get(&from.calls), from.ends_with_last ? n : n + 1);
        }
        watched_pool_destroy(pool);
    }
}

TEST(a_pipeline_without_items_and_one_of_one_stage_come_to_their_end)
{
    filch_pool *pool = watched_pool_of(2);
    source none = {.last = 0}, some = {.last = 100};
    stage_watch later = {.spins = 0};
    const filch_stage empty[] = {{.fn = make, .context = &none, .width = 1},
                                 {.fn = pass, .context = &later, .is_ordered = true}};
    const filch_stage alone[] = {{.fn = make, .context = &some, .width = 1, .is_ordered = true}};

    assert_int_equal(filch_pipeline_run(NULL, pool, empty, 2, NULL), 0);
    assert_int_equal(filch_pipeline_run(NULL, pool, alone, 1, NULL), 0);

    assert_int_equal(counter_get(&later.calls), 0);
    assert_int_equal(some.made, 100);
    watched_pool_destroy(pool);
}

static int drop_odd(filch_frame *f TEST_UNUSED, void *context TEST_UNUSED, void **item)
{
    if ((uintptr_t)*item % 2)
        *item = NULL;
    return 0;
}

TEST(an_item_that_a_stage_drops_blocks_no_other)
{
    filch_pool *pool = watched_pool_of(3);
    source from = {.last = 1000};
    stage_watch wide = {.spins = 50};
    sink middle = {.is_in_order = true}, to = {.is_in_order = true};
    const filch_stage stages[] = {
        {.fn = make, .context = &from, .width = 1},
        {.fn = drop_odd},
        {.fn = take, .context = &middle, .width = 1, .is_ordered = true},
        {.fn = pass, .context = &wide},
        {.fn = take, .context = &to, .width = 1, .is_ordered = true},
    };

    assert_int_equal(filch_pipeline_run(NULL, pool, stages, COUNT_OF(stages), NULL), 0);

    assert_int_equal(middle.count, 500);
    assert_int_equal(to.count, 500);
    assert_int_equal(to.sum, 2 * sum_to(500));
    assert_true(middle.is_in_order && to.is_in_order);
    watched_pool_destroy(pool);
}

static int take_ten(filch_frame *f, void *context, void **item)
{
    sink *s = context;
    take(f, context, item);
    return s->count >= 10 ? FILCH_PIPELINE_END : 0;
}

TEST(a_later_stage_may_end_the_stream)
{
    filch_pool *pool = watched_pool_of(2);
    source from = {.last = UINTPTR_MAX};
    sink to = {.is_in_order = true};
    const filch_stage stages[] = {
        {.fn = make, .context = &from, .width = 1},
        {.fn = take_ten, .context = &to, .width = 1, .is_ordered = true},
    };
    const filch_pipeline_options options = {.size = sizeof options, .token_limit = 5};

    assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, &options), 0);

    assert_in_range(to.count, 10, 10 + 5);
    assert_int_equal(to.count, from.made);
    assert_true(to.is_in_order);
    watched_pool_destroy(pool);
}

/* Several calls make items at once. */
typedef struct shared_source {
    counter next;
    uint64_t last;
} shared_source;

static int make_shared(filch_frame *f TEST_UNUSED, void *context, void **item)
{
    shared_source *s = context;
    /* relaxed: only the number matters. */
    uint64_t number = filch_fetch_add_relaxed(&s->next, 1) + 1;
    if (number > s->last)
        return FILCH_PIPELINE_END;
    *item = item_of(number);
    return 0;
}

TEST(the_first_stage_may_be_wide)
{
    filch_pool *pool = watched_pool_of(4);

    for (unsigned width = 0; width < 4; width++) {
        shared_source from = {.last = 2000};
        sink to = {.count = 0};
        const filch_stage stages[] = {
            {.fn = make_shared, .context = &from, .width = width},
            {.fn = take, .context = &to, .width = 1, .is_ordered = true},
        };
        assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, NULL), 0);
        assert_int_equal(to.count, 2000);
        assert_int_equal(to.sum, sum_to(2000));
    }
    watched_pool_destroy(pool);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void discard(void *context, void *item)
{
    counter_add(context, (uintptr_t)item);
}

TEST(the_first_error_is_returned_and_items_in_flight_are_discarded)
{
    filch_pool *pool = watched_pool_of(3);

    for (uintptr_t fails_at = 1; fails_at < 60; fails_at++) {
        source from = {.last = UINTPTR_MAX};
        stage_watch wide = {.spins = 50, .fails_at = fails_at};
        sink to = {.is_in_order = true};
        counter discarded = {0};
        const filch_stage stages[] = {
            {.fn = make, .context = &from, .width = 1},
            {.fn = pass, .context = &wide},
            {.fn = take, .context = &to, .width = 1, .is_ordered = true},
        };
        const filch_pipeline_options options = {.size = sizeof options,
                                                .token_limit = 8,
                                                .discard = discard,
                                                .discard_context = &discarded};

        int err = filch_pipeline_run(NULL, pool, stages, 3, &options);

        assert_int_equal(err, -EIO);
        assert_true(to.is_in_order);
        assert_in_range(to.last, 0, fails_at - 1);
        assert_int_equal(to.sum + counter_get(&discarded), sum_to(from.made));
    }
    watched_pool_destroy(pool);
}

static int fail_at_once(filch_frame *f TEST_UNUSED, void *context, void **item TEST_UNUSED)
{
    return *(int *)context;
}

TEST(an_error_of_the_first_stage_is_returned)
{
    filch_pool *pool = watched_pool_of(2);
    int err = -ENOENT;
    stage_watch later = {.spins = 0};
    const filch_stage stages[] = {{.fn = fail_at_once, .context = &err, .width = 1},
                                  {.fn = pass, .context = &later}};

    assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, NULL), -ENOENT);

    assert_int_equal(counter_get(&later.calls), 0);
    watched_pool_destroy(pool);
}

/* A stage that waits for ever, until it is cancelled. */
static int wait_for_ever(filch_frame *f, void *context, void **item TEST_UNUSED)
{
    int value;
    return filch_channel_receive(f, context, &value);
}

typedef struct cancelled_run {
    filch_channel *channel;
    source from;
    counter discarded;
    int err;
} cancelled_run;

static int run_until_cancelled(filch_frame *f, void *arg)
{
    cancelled_run *c = arg;
    const filch_stage stages[] = {
        {.fn = make, .context = &c->from, .width = 1},
        {.fn = wait_for_ever, .context = c->channel},
    };
    const filch_pipeline_options options = {.size = sizeof options,
                                            .token_limit = 4,
                                            .discard = discard,
                                            .discard_context = &c->discarded};
    c->err = filch_pipeline_run(f, NULL, stages, 2, &options);
    return 0;
}

TEST(a_deadline_and_the_cancellation_of_the_caller_end_a_pipeline)
{
    filch_pool *pool = watched_pool_of(2);
    cancelled_run c = {.from = {.last = UINTPTR_MAX}};
    assert_int_equal(filch_channel_create(&c.channel, sizeof(int), 0), 0);
    filch_scope scope;
    assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
    assert_int_equal(filch_scope_spawn(NULL, &scope, run_until_cancelled, &c), 0);
    while (counter_get(&c.from.calls) < 4)
        sched_yield();
    filch_scope_cancel(&scope);
    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
    assert_int_equal(c.err, -ECANCELED);
    assert_int_equal(counter_get(&c.discarded), sum_to(c.from.made));

    const filch_stage stages[] = {{.fn = make, .context = &c.from, .width = 1},
                                  {.fn = wait_for_ever, .context = c.channel}};
    const filch_pipeline_options options = {.size = sizeof options,
                                            .deadline_ns = filch_after_ns(500000)};
    assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, &options), -ETIMEDOUT);

    filch_channel_destroy(c.channel);
    watched_pool_destroy(pool);
}

TEST(wrong_arguments_are_errors)
{
    filch_pool *pool = watched_pool_of(1);
    source from = {.last = 10};
    const filch_stage good[] = {{.fn = make, .context = &from, .width = 1}}, bad[] = {{.fn = NULL}};
    const filch_pipeline_options unset = {.size = 0};
    const struct {
        filch_pipeline_options options;
        int unknown;
    } newer = {.options = {.size = sizeof newer}, .unknown = 1};
    const filch_pipeline_options many = {.size = sizeof many, .token_limit = UINT_MAX};

    assert_int_equal(filch_pipeline_run(NULL, NULL, good, 1, NULL), -EINVAL);
    assert_int_equal(filch_pipeline_run(NULL, pool, NULL, 1, NULL), -EINVAL);
    assert_int_equal(filch_pipeline_run(NULL, pool, good, 0, NULL), -EINVAL);
    assert_int_equal(filch_pipeline_run(NULL, pool, bad, 1, NULL), -EINVAL);
    assert_int_equal(filch_pipeline_run(NULL, pool, good, 1, &unset), -EINVAL);
    assert_int_equal(filch_pipeline_run(NULL, pool, good, 1, &newer.options), -E2BIG);
    assert_int_equal(counter_get(&from.calls), 0);

    assert_int_equal(filch_pipeline_run(NULL, pool, good, 1, &many), 0);
    assert_int_equal(from.made, 10);
    watched_pool_destroy(pool);
}

/* ---- stages that wait, pipelines in pipelines ------------------------------------------------ */

static int run_inner(filch_frame *f, void *context, void **item)
{
    source from = {.last = (uintptr_t)*item % 7};
    sink to = {.is_in_order = true};
    const filch_stage stages[] = {
        {.fn = make, .context = &from, .width = 1},
        {.fn = take, .context = &to, .width = 1, .is_ordered = true},
    };
    CHECK(filch_pipeline_run(f, NULL, stages, 2, NULL) == 0);
    CHECK(to.sum == sum_to((uintptr_t)*item % 7) && to.is_in_order);
    counter_add(context, to.count);
    return 0;
}

TEST(a_stage_may_run_a_pipeline)
{
    filch_pool *pool = watched_pool_of(2);
    source from = {.last = 70};
    counter inner = {0};
    sink to = {.is_in_order = true};
    const filch_stage stages[] = {
        {.fn = make, .context = &from, .width = 1},
        {.fn = run_inner, .context = &inner},
        {.fn = take, .context = &to, .width = 1, .is_ordered = true},
    };

    assert_int_equal(filch_pipeline_run(NULL, pool, stages, 3, NULL), 0);

    assert_int_equal(counter_get(&inner), 10 * sum_to(6));
    assert_true(to.is_in_order && to.count == 70);
    watched_pool_destroy(pool);
}

/* Random pipelines, with all kinds of stages. */
TEST(all_items_arrive_for_all_kinds_of_stages)
{
    const uint64_t end_ns = filch_after_ns((uint64_t)(test_seconds() * 1e9));
    filch_rng rng;
    filch_rng_seed(&rng, test_seed());

    do {
        filch_pool *pool = watched_pool_of(1 + filch_rng_below(&rng, 8));
        for (int round = 0; round < 10; round++) {
            source from = {.last = 1 + filch_rng_below(&rng, 3000 / TEST_SLOWNESS)};
            stage_watch watches[4];
            sink to = {.is_in_order = true};
            filch_stage stages[6] = {{.fn = make, .context = &from, .width = 1}};
            unsigned count = 1, between = filch_rng_below(&rng, 5);
            for (unsigned i = 0; i < between; i++) {
                watches[i] = (stage_watch){.spins = filch_rng_below(&rng, 500)};
                stages[count++] = (filch_stage){.fn = pass,
                                                .context = &watches[i],
                                                .width = filch_rng_below(&rng, 4),
                                                .is_ordered = filch_rng_below(&rng, 2)};
            }
            bool is_ordered = filch_rng_below(&rng, 2);
            stages[count++] =
                (filch_stage){.fn = take, .context = &to, .width = 1, .is_ordered = is_ordered};
            const filch_pipeline_options options = {.size = sizeof options,
                                                    .token_limit = filch_rng_below(&rng, 40)};

            CHECK(filch_pipeline_run(NULL, pool, stages, count, &options) == 0);

            CHECK(to.count == from.last && to.sum == sum_to(from.last));
            CHECK(!is_ordered || to.is_in_order);
            for (unsigned i = 0; i < between; i++) {
                unsigned width = stages[1 + i].width;
                CHECK(counter_get(&watches[i].sum) == to.sum);
                CHECK(width == 0 || counter_get(&watches[i].most) <= width);
            }
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    } while (filch_now_ns() < end_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_goes_through_all_stages_and_leaves_in_order),
        cmocka_unit_test(a_pipeline_without_items_and_one_of_one_stage_come_to_their_end),
        cmocka_unit_test(an_item_that_a_stage_drops_blocks_no_other),
        cmocka_unit_test(a_later_stage_may_end_the_stream),
        cmocka_unit_test(the_first_stage_may_be_wide),
        cmocka_unit_test(the_first_error_is_returned_and_items_in_flight_are_discarded),
        cmocka_unit_test(an_error_of_the_first_stage_is_returned),
        cmocka_unit_test(a_deadline_and_the_cancellation_of_the_caller_end_a_pipeline),
        cmocka_unit_test(wrong_arguments_are_errors),
        cmocka_unit_test(a_stage_may_run_a_pipeline),
        cmocka_unit_test(all_items_arrive_for_all_kinds_of_stages),
    };
    return cmocka_run_group_tests_name("pipeline", tests, watchdog_start, watchdog_stop);
}
