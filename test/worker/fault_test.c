/* SPDX-License-Identifier: MIT */
/*
 * No threads can be started, or no address space is left: a pool returns an error or does with
 * less. It neither hangs nor loses a task. fault_memory_test.c lets allocations fail.
 *
 * Tests that might hang run in a child process, so that the other tests run all the same.
 */
#include "fault_support.h"

#include <unistd.h>

typedef struct work {
    unsigned workers;
    uint32_t from; /* the first call that fails */
    filch_pool *pool;
    counter *c;
    latch *hold;
} work;

static void create_pool(work *w)
{
    filch_options options = {.size = sizeof options, .workers = w->workers};
    CHECK(filch_pool_create(&w->pool, &options) == 0);
    watchdog_watch(w->pool);
}

static void count_and_submit(filch_frame *f, void *arg)
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
        child_kick();
    }
    return NULL;
}

/* Use the pool from this thread alone, then from three threads at once. */
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
        fail_msg("hangs: %s after %u, %u workers; it wrote: %s", what, w.from, w.workers, c.text);
    assert_exit_code(&c, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void use_with_few_threads(void *arg)
{
    work *w = arg;

    /* A pool with more than one worker also starts the keeper. */
    fail_from(FILCH_FAULT_THREAD, w->from + (w->workers > 1));
    create_pool(w);
    use_the_pool(w);
    CHECK(filch_pool_destroy(w->pool) == 0);
}

TEST(a_pool_works_with_as_few_threads_as_can_be_started)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t threads = 1; threads <= 3; threads++)
            assert_ends_well(use_with_few_threads, (work){.workers = workers, .from = threads},
                             "no thread");
}

TEST(a_pool_without_its_first_thread_is_not_created)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_options options = {
            .size = sizeof options, .workers = workers, .report_overflow = true};
        filch_pool *pool = NULL;

        fail_between(FILCH_FAULT_THREAD, 0, 0);
        assert_int_equal(filch_pool_create(&pool, &options), -EAGAIN);
        assert_null(pool);
        assert_int_equal(filch_pool_create(&pool, &options), 0);
        assert_int_equal(filch_pool_destroy(pool), 0);
    }
    fail_never();
}

/* How many threads of the pool have begun to work. */
static counter working;

static void count_start(void *context TEST_UNUSED, unsigned worker_index TEST_UNUSED)
{
    counter_add(&working, 1);
}

/* Keep the worker until all workers have a thread that runs such a task. */
static void await_all(filch_frame *f TEST_UNUSED, void *arg)
{
    work *w = arg;

    while (counter_get(&working) < w->workers)
        sched_yield();
    counter_add(w->c, 1);
}

/* The first attempts fail, as often as there are seats without a thread. */
static void start_later(void *arg)
{
    work *w = arg;
    filch_options options = {
        .size = sizeof options, .workers = w->workers, .on_start = count_start};
    counter c = {0};
    uint64_t submitted = 0;

    w->c = &c;
    fail_between(FILCH_FAULT_THREAD, 2, w->workers);
    CHECK(filch_pool_create(&w->pool, &options) == 0);
    watchdog_watch(w->pool);
    /* Each submit may start a thread, if the time for the next attempt has come. */
    for (; counter_get(&working) < w->workers; submitted++) {
        CHECK(filch_submit(w->pool, await_all, w) == 0);
        usleep(1000);
    }
    CHECK(filch_pool_destroy(w->pool) == 0);
    CHECK(counter_get(&c) == submitted);
}

TEST(a_thread_that_could_not_be_started_is_tried_again)
{
    for (unsigned workers = 2; workers <= 4; workers++)
        assert_ends_well(start_later, (work){.workers = workers, .from = 1}, "a passing failure");
}

/* A task that keeps its thread until another task has run. */
typedef struct keeping {
    filch_pool *pool;
    latch has_run; /* opened by the other task */
    uint32_t starts_that_fail;
    bool computes;
} keeping;

static void let_go(filch_frame *f TEST_UNUSED, void *arg)
{
    keeping *k = arg;
    latch_open(&k->has_run);
}

static void keep_thread(filch_frame *f TEST_UNUSED, void *arg)
{
    keeping *k = arg;

    CHECK(filch_submit(k->pool, let_go, k) == 0);
    while (k->computes && !latch_is_open(&k->has_run))
        sched_yield();
    latch_wait(&k->has_run);
}

/* Only the keeper can start the thread that is missing: no other call uses the pool. */
static void wait_for_keeper(void *arg)
{
    keeping k = *(keeping *)arg;
    filch_options options = {.size = sizeof options, .workers = 3};

    latch_init(&k.has_run, 1);
    fail_between(FILCH_FAULT_THREAD, 2, 1 + k.starts_that_fail);
    CHECK(filch_pool_create(&k.pool, &options) == 0);
    watchdog_watch(k.pool);
    CHECK(filch_submit(k.pool, keep_thread, &k) == 0);
    CHECK(filch_pool_destroy(k.pool) == 0);
    CHECK(times_asked(FILCH_FAULT_THREAD) > 2 + k.starts_that_fail);
}

TEST(a_start_that_fails_is_tried_again_though_no_call_uses_the_pool)
{
    for (uint32_t count = 1; count <= 4; count++)
        for (int computes = 0; computes <= 1; computes++) {
            keeping k = {.starts_that_fail = count, .computes = computes != 0};
            ended c = run_in_child(wait_for_keeper, &k);

            watchdog_kick();
            assert_exit_code(&c, 0);
        }
}

/* The signals that the thread of the other worker blocks. */
static sigset_t blocked_there;

static void note_signals(filch_frame *f, void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, &blocked_there);
    let_go(f, arg);
}

static void keep_thread_for_note(filch_frame *f TEST_UNUSED, void *arg)
{
    keeping *k = arg;

    CHECK(filch_submit(k->pool, note_signals, k) == 0);
    latch_wait(&k->has_run);
}

static void note_signals_of_retried(void *arg)
{
    keeping k = *(keeping *)arg;
    filch_options options = {.size = sizeof options, .workers = 2};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    latch_init(&k.has_run, 1);
    fail_between(FILCH_FAULT_THREAD, 2, 1 + k.starts_that_fail);
    CHECK(filch_pool_create(&k.pool, &options) == 0);
    watchdog_watch(k.pool);
    CHECK(filch_submit(k.pool, keep_thread_for_note, &k) == 0);
    CHECK(filch_pool_destroy(k.pool) == 0);
    CHECK(sigismember(&blocked_there, SIGUSR2) == 1);
    CHECK(sigismember(&blocked_there, SIGUSR1) == 0);
    CHECK(sigismember(&blocked_there, SIGSEGV) == 0);
}

/* The keeper blocks all signals, and a thread inherits the signals that its creator blocks. */
TEST(a_thread_that_the_keeper_starts_blocks_the_signals_of_the_pools_creator)
{
    for (uint32_t count = 0; count <= 1; count++) {
        keeping k = {.starts_that_fail = count};
        ended c = run_in_child(note_signals_of_retried, &k);

        watchdog_kick();
        assert_exit_code(&c, 0);
    }
}

TEST(a_pool_without_the_keeper_is_not_created)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool = NULL, *one;
    counter c = {0};

    fail_between(FILCH_FAULT_THREAD, 0, 0);
    assert_int_equal(filch_pool_create(&pool, &options), -EAGAIN);
    assert_null(pool);
    /* With one worker there is no thread to be started later. */
    fail_between(FILCH_FAULT_THREAD, 1, NEVER);
    options.workers = 1;
    assert_int_equal(filch_pool_create(&one, &options), 0);
    options.workers = 2;
    assert_int_equal(filch_pool_create(&pool, &options), -EAGAIN);
    fail_never();
    assert_int_equal(filch_pool_create(&pool, &options), 0);
    assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
    assert_int_equal(filch_pool_destroy(one), 0);
    assert_int_equal(filch_pool_destroy(pool), 0);
    assert_int_equal(counter_get(&c), TREE_8);
}

/*
 * A new thread may run a task and fall asleep before pthread_create returns in its creator. The
 * next thread that needs a worker must wake it, and not start a second thread on the same seat.
 */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);

/* The next call of pthread_create waits for this latch before it returns. */
static FILCH_ATOMIC(latch *) hold_creator;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    int err = __real_pthread_create(thread, attr, main, arg);
    /* acq_rel: only one call is held. */
    latch *hold = filch_exchange_acq_rel(&hold_creator, NULL);
    if (hold)
        latch_wait(hold);
    return err;
}

static counter starts_of_seat_1;

static void on_start(void *context TEST_UNUSED, unsigned worker_index)
{
    counter_add(&starts_of_seat_1, worker_index == 1);
}

static void *submit_one(void *arg)
{
    work *w = arg;
    /* relaxed: this thread itself calls pthread_create next. */
    filch_store_relaxed(&hold_creator, w->hold);
    CHECK(filch_submit(w->pool, count_one, w->c) == 0);
    return NULL;
}

static latch is_busy, may_end;

static void keep_worker(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    latch_open(&is_busy);
    latch_wait(&may_end);
}

static void start_slowly(void *arg)
{
    work *w = arg;
    filch_options options = {
        .size = sizeof options, .workers = 2, .spin = FILCH_SPIN_POWER, .on_start = on_start};
    counter c = {0};
    latch hold;
    pthread_t creator;
    filch_counters counters = {.size = sizeof counters};

    latch_init(&hold, 1);
    latch_init(&is_busy, 1);
    latch_init(&may_end, 1);
    CHECK(filch_pool_create(&w->pool, &options) == 0);
    w->c = &c;
    w->hold = &hold;
    /* The thread of seat 0 has work for long, so that a thread is started for seat 1. */
    CHECK(filch_submit(w->pool, keep_worker, NULL) == 0);
    latch_wait(&is_busy);
    CHECK(__real_pthread_create(&creator, NULL, submit_one, w) == 0);
    /* The new thread has run its task and is about to sleep: its seat is free. */
    do {
        sched_yield();
        CHECK(filch_pool_counters(w->pool, &counters) == 0);
    } while (counters.sleeps == 0);

    CHECK(filch_submit(w->pool, count_one, &c) == 0);
    while (counter_get(&c) < 2)
        sched_yield();

    latch_open(&hold);
    latch_open(&may_end);
    CHECK(pthread_join(creator, NULL) == 0);
    CHECK(filch_pool_destroy(w->pool) == 0);
    CHECK(counter_get(&c) == 2);
    CHECK(counter_get(&starts_of_seat_1) == 1);
}

TEST(a_seat_never_gets_a_second_thread)
{
    assert_ends_well(start_slowly, (work){.workers = 1}, "a slow start");
}

/* ---- address space --------------------------------------------------------------------------- */

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
    work *w = arg;

    fail_from(FILCH_FAULT_THREAD, 1 + (w->workers > 1));
    use_with_few_strands(w);
}

TEST(a_lack_of_strands_and_threads_costs_parallelism_only)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (uint32_t strands = 0; strands <= 3; strands++)
            assert_ends_well(use_with_few_strands_and_threads,
                             (work){.workers = workers, .from = strands}, "no strand");
}

/* A filch_run inside of a filch_run needs a second strand. */
static void run_inside(filch_frame *f TEST_UNUSED, void *arg)
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
    for (int i = 0; i < 10; i++) {
        CHECK(filch_run(w->pool, run_inside, w) == 0);
        child_kick();
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_works_with_as_few_threads_as_can_be_started),
        cmocka_unit_test(a_pool_without_its_first_thread_is_not_created),
        cmocka_unit_test(a_thread_that_could_not_be_started_is_tried_again),
        cmocka_unit_test(a_start_that_fails_is_tried_again_though_no_call_uses_the_pool),
        cmocka_unit_test(a_thread_that_the_keeper_starts_blocks_the_signals_of_the_pools_creator),
        cmocka_unit_test(a_pool_without_the_keeper_is_not_created),
        cmocka_unit_test(a_seat_never_gets_a_second_thread),
        cmocka_unit_test(a_pool_without_its_first_strand_is_not_created),
        cmocka_unit_test(a_lack_of_strands_costs_parallelism_only),
        cmocka_unit_test(a_lack_of_strands_and_threads_costs_parallelism_only),
        cmocka_unit_test(a_run_inside_of_a_run_without_a_strand_ends),
    };
    fail_never();
    return cmocka_run_group_tests_name("fault", tests, watchdog_start, watchdog_stop);
}
