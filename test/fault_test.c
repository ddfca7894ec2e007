/* SPDX-License-Identifier: MIT */
/*
 * Where there are no threads, no address space or no memory, a pool says so or does with less: it neither hangs
 * nor loses a task.
 *
 * What may hang runs in a child process with an alarm, so that the other tests run all the same.
 */
#include "child.h"

#include "base/fault.h"

#include <filch/channel.h>
#include <filch/pipeline.h>

#include <malloc.h>

#define NEVER UINT32_MAX

/* Per kind: how often it was asked for, and from which and until which time on it fails. */
static filch_atomic_u32 asked[3], first[3], last[3];

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: set before the threads that ask are started. */
    uint32_t n = filch_fetch_add_relaxed(&asked[kind], 1);
    return n >= filch_load_relaxed(&first[kind]) && n <= filch_load_relaxed(&last[kind]);
}

static void fail_between(enum filch_fault_kind kind, uint32_t from, uint32_t to)
{
    /* relaxed: as above. */
    filch_store_relaxed(&asked[kind], 0);
    filch_store_relaxed(&first[kind], from);
    filch_store_relaxed(&last[kind], to);
}

static void fail_from(enum filch_fault_kind kind, uint32_t from)
{
    fail_between(kind, from, NEVER);
}

static void fail_never(void)
{
    for (int kind = 0; kind < 3; kind++)
        fail_between((enum filch_fault_kind)kind, NEVER, NEVER);
}

static uint32_t times_asked(enum filch_fault_kind kind)
{
    /* relaxed: read when all is done. */
    return filch_load_relaxed(&asked[kind]);
}

/* ---- work -------------------------------------------------------------------------------------- */

FILCH_TASK(void, tree, (counter *, c), (int, depth))
{
    counter_add(c, 1);
    spin(100);
    if (depth == 0)
        return;
    FILCH_SPAWN(tree, c, depth - 1);
    FILCH_CALL(tree, c, depth - 1);
    FILCH_SYNC();
}

static void tree_of_depth_8(filch_slot *f, void *arg)
{
    tree_body(f, f, arg, 8);
}

#define TREE_8 ((1u << 9) - 1)

typedef struct work {
    unsigned workers;
    uint32_t from; /* the first that fails */
    filch_pool *pool;
    counter *c;
    latch *hold;
} work;

static void create_pool(work *w)
{
    filch_options options = {.size = sizeof options, .workers = w->workers};
    CHECK(filch_pool_create(&w->pool, &options) == 0);
}

static void count_and_submit(filch_slot *f, void *arg)
{
    work *w = arg;
    CHECK(filch_submit(w->pool, tree_of_depth_8, w->c) == 0);
    tree_of_depth_8(f, w->c);
}

static void *use(void *arg)
{
    work *w = arg;
    for (int i = 0; i < 10; i++) {
        CHECK(filch_run(w->pool, tree_of_depth_8, w->c) == 0);
        CHECK(filch_submit(w->pool, tree_of_depth_8, w->c) == 0);
        CHECK(filch_run(w->pool, count_and_submit, w) == 0);
    }
    return NULL;
}

/* By this thread alone, then by three at once. */
static void use_the_pool(work *w)
{
    counter c = {0};
    pthread_t threads[3];

    w->c = &c;
    use(w);
    CHECK(filch_pool_wait(w->pool) == 0);
    CHECK(counter_get(&c) == 40 * TREE_8);

    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, use, w) == 0);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(filch_pool_wait(w->pool) == 0);
    CHECK(counter_get(&c) == 160 * TREE_8);
}

static void assert_ends_well(void (*fn)(void *), work w, const char *what)
{
    ended c = run_in_child(fn, &w);

    watchdog_kick();
    if (has_ended_by(&c, SIGALRM))
        fail_msg("hangs: %s after %u, %u workers", what, w.from, w.workers);
    assert_exit_code(&c, 0);
}

/* ---- threads ----------------------------------------------------------------------------------- */

static void use_with_few_threads(void *arg)
{
    work *w = arg;

    fail_from(FILCH_FAULT_THREAD, w->from);
    create_pool(w);
    use_the_pool(w);
    CHECK(filch_pool_destroy(w->pool) == 0);
}

TEST(a_pool_works_with_as_few_threads_as_can_be_started)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t threads = 0; threads <= 3; threads++)
            assert_ends_well(use_with_few_threads, (work){.workers = workers, .from = threads},
                             "no thread");
}

static void count_one(filch_slot *f TEST_UNUSED, void *arg)
{
    counter_add(arg, 1);
}

TEST(without_threads_a_submitted_task_has_been_run_on_return)
{
    fail_from(FILCH_FAULT_THREAD, 0);
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (unsigned i = 1; i <= 100; i++) {
            assert_int_equal(filch_submit(pool, count_one, &c), 0);
            assert_int_equal(counter_get(&c), i);
        }
        watched_pool_destroy(pool);
    }
    fail_never();
}

#define ROUNDS 2000

/* Wait until both have come `count` times, without the kernel, which would let one go long before the other. */
static void meet(counter *arrived, uint64_t count)
{
    counter_add(arrived, 1);
    for (unsigned i = 1; counter_get(arrived) < 2 * count; i++)
        if (i % 1000 == 0)
            sched_yield();
}

/* Away from what the threads read at the same time. */
static struct {
    counter arrived __attribute__((aligned(FILCH_CACHE_LINE)));
} at_start, at_end;

/* One task by each thread at about the same time, and then nobody comes by any more. */
static void *submit_in_rounds(void *arg)
{
    work *w = arg;
    filch_rng rng;

    filch_rng_seed(&rng, test_seed() + (uintptr_t)&rng);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        meet(&at_start.arrived, i);
        spin(filch_rng_below(&rng, 1500));
        CHECK(filch_submit(w->pool, count_one, w->c) == 0);
        meet(&at_end.arrived, i);
        CHECK(counter_get(w->c) >= 2 * i);
    }
    return NULL;
}

static void submit_without_threads(void *arg)
{
    work *w = arg;
    filch_options options = {.size = sizeof options, .workers = 1, .wait = FILCH_WAIT_POWER};
    counter c = {0};
    pthread_t threads[2];

    fail_from(FILCH_FAULT_THREAD, 0);
    CHECK(filch_pool_create(&w->pool, &options) == 0);
    w->c = &c;
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, submit_in_rounds, w) == 0);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(filch_pool_destroy(w->pool) == 0);
    CHECK(counter_get(&c) == COUNT_OF(threads) * ROUNDS);
}

TEST(without_threads_no_task_is_left_when_several_submit_at_once)
{
    assert_ends_well(submit_without_threads, (work){.workers = 1}, "no thread");
}

/*
 * The new thread may have worked and gone to sleep before its creator's call returns: then the next one to need
 * it wakes that thread, and does not start a second on the same seat.
 */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);

/* Whom the next call that creates a thread waits for. */
static FILCH_ATOMIC(latch *) hold_creator;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    int err = __real_pthread_create(thread, attr, main, arg);
    /* acq_rel: only one is held. */
    latch *hold = filch_exchange_acq_rel(&hold_creator, NULL);
    if (hold)
        latch_wait(hold);
    return err;
}

static counter starts_of_seat_0;

static void on_start(void *context TEST_UNUSED, unsigned worker_index)
{
    counter_add(&starts_of_seat_0, worker_index == 0);
}

static void *submit_one(void *arg)
{
    work *w = arg;
    /* relaxed: for this thread itself, which is about to create one. */
    filch_store_relaxed(&hold_creator, w->hold);
    CHECK(filch_submit(w->pool, count_one, w->c) == 0);
    return NULL;
}

static void start_slowly(void *arg)
{
    work *w = arg;
    filch_options options = {
        .size = sizeof options, .workers = 1, .wait = FILCH_WAIT_POWER, .on_start = on_start};
    counter c = {0};
    latch hold;
    pthread_t creator;
    filch_counters counters;

    latch_init(&hold, 1);
    CHECK(filch_pool_create(&w->pool, &options) == 0);
    w->c = &c;
    w->hold = &hold;
    CHECK(__real_pthread_create(&creator, NULL, submit_one, w) == 0);
    /* Its task is complete, and the thread about to sleep: its seat is free. */
    do {
        sched_yield();
        CHECK(filch_pool_counters(w->pool, &counters) == 0);
    } while (counters.sleeps == 0);

    CHECK(filch_submit(w->pool, count_one, &c) == 0);
    while (counter_get(&c) < 2)
        sched_yield();

    latch_open(&hold);
    CHECK(pthread_join(creator, NULL) == 0);
    CHECK(filch_pool_destroy(w->pool) == 0);
    CHECK(counter_get(&c) == 2);
    CHECK(counter_get(&starts_of_seat_0) == 1);
}

TEST(a_seat_never_gets_a_second_thread)
{
    assert_ends_well(start_slowly, (work){.workers = 1}, "a slow start");
}

/* ---- address space ----------------------------------------------------------------------------- */

TEST(a_pool_without_its_first_strand_is_not_created)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool = NULL;
    uint32_t needed;

    fail_from(FILCH_FAULT_MAP, NEVER);
    assert_int_equal(filch_pool_create(&pool, &options), 0);
    needed = times_asked(FILCH_FAULT_MAP);
    assert_int_equal(filch_pool_destroy(pool), 0);
    pool = NULL;

    for (uint32_t i = 0; i < needed; i++) {
        fail_from(FILCH_FAULT_MAP, i);
        assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
        fail_between(FILCH_FAULT_MAP, i, i);
        assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
    }
    assert_null(pool);
    fail_never();
}

static void use_with_few_strands(void *arg)
{
    work *w = arg;

    create_pool(w);
    fail_from(FILCH_FAULT_MAP, w->from);
    use_the_pool(w);
    CHECK(filch_pool_destroy(w->pool) == 0);
}

TEST(a_lack_of_strands_costs_parallelism_only)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t strands = 0; strands <= 5; strands++)
            assert_ends_well(use_with_few_strands, (work){.workers = workers, .from = strands},
                             "no strand");
}

static void use_with_few_strands_and_threads(void *arg)
{
    fail_from(FILCH_FAULT_THREAD, 1);
    use_with_few_strands(arg);
}

TEST(a_lack_of_strands_and_threads_costs_parallelism_only)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t strands = 0; strands <= 3; strands++)
            assert_ends_well(use_with_few_strands_and_threads,
                             (work){.workers = workers, .from = strands}, "no strand");
}

/* A run inside of a run needs a second strand. */
static void run_inside(filch_slot *f TEST_UNUSED, void *arg)
{
    work *w = arg;
    uint64_t before = counter_get(w->c);
    int err = filch_run(w->pool, tree_of_depth_8, w->c);

    CHECK(err == 0 || err == -ENOMEM);
    CHECK(counter_get(w->c) - before == (err ? 0 : TREE_8));
}

static void nest_with_few_strands(void *arg)
{
    work *w = arg;
    counter c = {0};

    create_pool(w);
    fail_from(FILCH_FAULT_MAP, w->from);
    w->c = &c;
    for (int i = 0; i < 10; i++)
        CHECK(filch_run(w->pool, run_inside, w) == 0);
    CHECK(filch_submit(w->pool, run_inside, w) == 0);
    CHECK(filch_pool_destroy(w->pool) == 0);
}

TEST(a_run_inside_of_a_run_without_a_strand_ends)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t strands = 0; strands <= 2; strands++)
            assert_ends_well(nest_with_few_strands, (work){.workers = workers, .from = strands},
                             "no strand for a nested run");
}

/* ---- memory ------------------------------------------------------------------------------------ */

TEST(a_pool_for_which_memory_is_missing_is_not_created)
{
    filch_options options = {.size = sizeof options, .workers = 3, .report_overflow = true};
    filch_pool *pool = NULL;
    uint32_t needed;

    fail_from(FILCH_FAULT_MALLOC, NEVER);
    assert_int_equal(filch_pool_create(&pool, &options), 0);
    needed = times_asked(FILCH_FAULT_MALLOC);
    assert_int_equal(filch_pool_destroy(pool), 0);
    pool = NULL;
    assert_true(needed >= 3);

    for (uint32_t i = 0; i < needed; i++) {
        fail_between(FILCH_FAULT_MALLOC, i, i);
        assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
        assert_null(pool);
    }
    fail_never();
}

TEST(a_task_for_which_memory_is_missing_is_not_submitted)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        fail_from(FILCH_FAULT_MALLOC, 0);
        assert_int_equal(filch_submit(pool, count_one, &c), -ENOMEM);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&c), 0);

        /* Others do not need it. */
        assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
        assert_int_equal(counter_get(&c), TREE_8);
        fail_never();
        assert_int_equal(filch_submit(pool, count_one, &c), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&c), TREE_8 + 1);
        watched_pool_destroy(pool);
    }
}

/* ---- channels and pipelines -------------------------------------------------------------------- */

/* Sanitizers have books of their own, and tell of a leak at the end. */
static size_t bytes_in_use(void)
{
    return TEST_SLOWNESS > 1 ? 0 : mallinfo2().uordblks;
}

TEST(a_channel_for_which_memory_is_missing_is_not_created)
{
    filch_channel *channel = NULL;
    int value = 1;
    size_t before = bytes_in_use();

    fail_from(FILCH_FAULT_MALLOC, 0);
    for (size_t capacity = 0; capacity < 3; capacity++) {
        assert_int_equal(filch_channel_create(&channel, sizeof value, capacity), -ENOMEM);
        assert_null(channel);
    }
    assert_int_equal(bytes_in_use(), before);

    /* One that is there needs no more. */
    fail_never();
    assert_int_equal(filch_channel_create(&channel, sizeof value, 1), 0);
    fail_from(FILCH_FAULT_MALLOC, 0);
    assert_int_equal(filch_channel_send(NULL, channel, &value), 0);
    assert_int_equal(filch_channel_send_until(NULL, channel, &value, filch_now_ns()), -ETIMEDOUT);
    assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
    filch_channel_destroy(channel);
    assert_int_equal(bytes_in_use(), before);
    fail_never();
}

#define ITEMS 50

static int make_item(filch_slot *f, void *made, void **item)
{
    (void)f;
    *item = made;
    counter_add(made, 1);
    return counter_get(made) < ITEMS ? 0 : FILCH_PIPELINE_END;
}

static int use_item(filch_slot *f, void *used, void **item)
{
    (void)f;
    (void)item;
    counter_add(used, 1);
    return 0;
}

TEST(a_pipeline_for_which_memory_is_missing_calls_no_stage_and_with_little_it_has_fewer_tokens)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        counter made = {0}, used = {0};
        const filch_stage stages[] = {{make_item, &made, 1, false}, {use_item, &used, 0, true}};
        size_t before = 0;

        /* The pipeline itself, and its first token. What malloc keeps for the next time counts as in use, so a little does not count. */
        for (uint32_t i = 0; i < 100; i++) {
            if (i == 20)
                before = bytes_in_use();
            fail_from(FILCH_FAULT_MALLOC, i % 2);
            assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, NULL), -ENOMEM);
            assert_int_equal(counter_get(&made), 0);
        }
        assert_true(bytes_in_use() < before + 4096);
        for (uint32_t i = 2; i < 6; i++) {
            counter_set(&made, 0);
            counter_set(&used, 0);
            fail_from(FILCH_FAULT_MALLOC, i);
            int err = filch_pipeline_run(NULL, pool, stages, 2, NULL);
            /* Threads that start and strands ask for memory, too; a token without a strand is an error. */
            assert_true(err == 0 || err == -ENOMEM);
            assert_true(err || counter_get(&made) == ITEMS);
            assert_true(err || counter_get(&used) == ITEMS);
        }
        fail_never();
        watched_pool_destroy(pool);
    }
}

TEST(a_pool_works_without_memory_for_signal_stacks)
{
    filch_options options = {.size = sizeof options, .workers = 3, .report_overflow = true};
    filch_pool *pool = watched_pool_create(&options);
    counter c = {0};

    fail_from(FILCH_FAULT_MALLOC, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
    fail_never();

    assert_int_equal(counter_get(&c), 10 * TREE_8);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_works_with_as_few_threads_as_can_be_started),
        cmocka_unit_test(without_threads_a_submitted_task_has_been_run_on_return),
        cmocka_unit_test(without_threads_no_task_is_left_when_several_submit_at_once),
        cmocka_unit_test(a_seat_never_gets_a_second_thread),
        cmocka_unit_test(a_pool_without_its_first_strand_is_not_created),
        cmocka_unit_test(a_lack_of_strands_costs_parallelism_only),
        cmocka_unit_test(a_lack_of_strands_and_threads_costs_parallelism_only),
        cmocka_unit_test(a_run_inside_of_a_run_without_a_strand_ends),
        cmocka_unit_test(a_pool_for_which_memory_is_missing_is_not_created),
        cmocka_unit_test(a_task_for_which_memory_is_missing_is_not_submitted),
        cmocka_unit_test(a_channel_for_which_memory_is_missing_is_not_created),
        cmocka_unit_test(
            a_pipeline_for_which_memory_is_missing_calls_no_stage_and_with_little_it_has_fewer_tokens),
        cmocka_unit_test(a_pool_works_without_memory_for_signal_stacks),
    };
    fail_never();
    return cmocka_run_group_tests_name("fault", tests, watchdog_start, watchdog_stop);
}
