/* SPDX-License-Identifier: MIT */
/*
 * Options of pools, the environment, and the threads that result from them.
 */
#include "pool_support.h"

#include <filch/sync.h>

/* ---- options --------------------------------------------------------------------------------- */

TEST(a_pool_may_be_created_and_destroyed_without_work)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_pool_worker_count(pool), workers);
        watched_pool_destroy(pool);
    }
}

TEST(a_pool_needs_no_options)
{
    filch_pool *pool = watched_pool_create(NULL);

    assert_true(filch_pool_worker_count(pool) >= 1);
    assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
    watched_pool_destroy(pool);
}

TEST(zero_workers_are_the_default_number)
{
    filch_pool *with_default = watched_pool_create(NULL), *with_zero = watched_pool_of(0);

    assert_int_equal(filch_pool_worker_count(with_zero), filch_pool_worker_count(with_default));
    watched_pool_destroy(with_zero);
    watched_pool_destroy(with_default);
}

/* Options of another size, followed by memory that a newer header would take for options. */
typedef struct sized_options {
    union {
        filch_options options;
        unsigned char bytes[sizeof(filch_options) + 64];
    };
} sized_options;

static int create_with_size(size_t size, size_t non_zero_at)
{
    sized_options sized;
    filch_pool *pool = NULL;

    memset(&sized, 0, sizeof sized);
    sized.options.size = size;
    sized.options.workers = 3;
    if (non_zero_at)
        sized.bytes[non_zero_at] = 1;
    int err = filch_pool_create(&pool, &sized.options);
    if (err)
        return err;
    int workers = (int)filch_pool_worker_count(pool);
    assert_int_equal(filch_pool_destroy(pool), 0);
    return workers;
}

TEST(options_of_another_size_are_understood_if_they_can_be)
{
    size_t known = sizeof(filch_options);

    assert_int_equal(create_with_size(known, 0), 3);
    assert_int_equal(create_with_size(offsetof(filch_options, stack_bytes), 0), 3);
    assert_int_equal(create_with_size(known + 1, 0), 3);
    assert_int_equal(create_with_size(known + 64, 0), 3);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(create_with_size(known + 64, known + i), -E2BIG);
    assert_int_equal(create_with_size(known + 8, known + 8), 3);
    for (size_t size = 0; size < sizeof(size_t); size++)
        assert_int_equal(create_with_size(size, 0), -EINVAL);
}

TEST(options_that_end_before_a_member_leave_it_at_its_default)
{
    filch_options options = {.size = offsetof(filch_options, workers), .workers = 7};
    filch_pool *with_default = watched_pool_create(NULL), *pool = watched_pool_create(&options);

    assert_int_equal(filch_pool_worker_count(pool), filch_pool_worker_count(with_default));
    watched_pool_destroy(pool);
    watched_pool_destroy(with_default);
}

TEST(a_caller_with_another_layout_is_refused)
{
    filch_pool *pool = NULL;

    assert_int_equal(filch_pool_create_abi(&pool, NULL, FILCH_ABI + 1), -ENOEXEC);
    assert_int_equal(filch_pool_create_abi(&pool, NULL, 0), -ENOEXEC);
    assert_null(pool);
}

TEST(options_without_a_meaning_are_refused)
{
    const filch_options wrong[] = {
        {.size = sizeof wrong[0], .deque = (filch_deque_kind)77},
        {.size = sizeof wrong[0], .deque = (filch_deque_kind)-1},
        {.size = sizeof wrong[0], .victim = (filch_victim_policy)77},
        {.size = sizeof wrong[0], .victim = (filch_victim_policy)-1},
        {.size = sizeof wrong[0], .spin = (filch_spin_policy)77},
        {.size = sizeof wrong[0], .spin = (filch_spin_policy)-1},
        {.size = sizeof wrong[0], .stack_bytes = 1},
        {.size = sizeof wrong[0], .stack_bytes = SIZE_MAX},
    };
    filch_pool *pool = NULL;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(filch_pool_create(&pool, &wrong[i]), -EINVAL);
    assert_int_equal(filch_pool_create(NULL, NULL), -EINVAL);
    assert_null(pool);
}

TEST(a_stack_too_large_for_the_machine_is_a_lack_of_memory)
{
    filch_options options = {.size = sizeof options, .stack_bytes = PTRDIFF_MAX / 2};
    filch_pool *pool = NULL;

    assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
}

TEST(every_policy_runs_every_task)
{
    for (int victim = FILCH_VICTIM_LAST; victim <= FILCH_VICTIM_FIRST; victim++)
        for (int wait = FILCH_SPIN_BALANCED; wait <= FILCH_SPIN_POWER; wait++)
            FOR_EACH_COUNT(workers)
            {
                filch_options options = {.size = sizeof options,
                                         .workers = workers,
                                         .victim = (filch_victim_policy)victim,
                                         .spin = (filch_spin_policy)wait};
                filch_pool *pool = watched_pool_create(&options);
                assert_int_equal(FILCH_RUN(pool, fib, 18), 2584);
                watched_pool_destroy(pool);
            }
}

TEST(small_stacks_are_enough_for_small_tasks)
{
    filch_options options = {.size = sizeof options, .workers = 2, .stack_bytes = 64 << 10};
    filch_pool *pool = watched_pool_create(&options);

    assert_int_equal(FILCH_RUN(pool, fib, 18), 2584);
    watched_pool_destroy(pool);
}

TEST(ten_thousand_workers_become_a_thousand_that_work)
{
    filch_pool *pool = watched_pool_of(10000);
    counter c = {0};

    assert_int_equal(filch_pool_worker_count(pool), 1000);
    FILCH_RUN(pool, tree, &c, 12);
    assert_int_equal(counter_get(&c), (1u << 13) - 1);
    watched_pool_destroy(pool);
}

TEST(without_a_pool_every_call_is_an_error)
{
    filch_counters counters = {.size = sizeof counters};
    filch_pool *pool = watched_pool_of(2);
    counter c = {0};

    assert_int_equal(filch_pool_worker_count(NULL), 0);
    assert_int_equal(filch_run(NULL, count_one, &c), -EINVAL);
    assert_int_equal(filch_submit(NULL, count_one, &c), -EINVAL);
    assert_int_equal(filch_submit_copy(NULL, count_one, &c, sizeof c), -EINVAL);
    assert_int_equal(filch_submit_copy(pool, count_one, NULL, 1), -EINVAL);
    assert_int_equal(filch_submit_copy(pool, count_one, &c, SIZE_MAX), -ENOMEM);
    assert_int_equal(filch_pool_wait(NULL), -EINVAL);
    assert_int_equal(filch_pool_destroy(NULL), -EINVAL);
    assert_int_equal(filch_pool_counters(NULL, &counters), -EINVAL);
    assert_int_equal(filch_worker_counters(NULL, 0, &counters), -EINVAL);
    assert_int_equal(filch_run(pool, NULL, &c), -EINVAL);
    assert_int_equal(filch_submit(pool, NULL, &c), -EINVAL);
    counters.size = 0;
    assert_int_equal(filch_pool_counters(pool, &counters), -EINVAL);
    counters.size = sizeof counters;
    assert_int_equal(filch_pool_counters(pool, NULL), -EINVAL);
    assert_int_equal(filch_worker_counters(pool, 2, &counters), -EINVAL);
    assert_int_equal(counter_get(&c), 0);
    watched_pool_destroy(pool);
}

/* ---- the environment ------------------------------------------------------------------------- */

static void create_one(void *workers)
{
    filch_options options = {
        .size = sizeof options, .workers = *(unsigned *)workers, .name = "verbose"};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    fprintf(stderr, "it has %u\n", filch_pool_worker_count(pool));
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(FILCH_WORKERS_replaces_the_default_but_not_the_programs_choice)
{
    setenv("FILCH_WORKERS", "5", 1);
    ended by_default = run_in_child(create_one, &(unsigned){0});
    ended by_choice = run_in_child(create_one, &(unsigned){2});
    unsetenv("FILCH_WORKERS");

    assert_exit_code(&by_default, 0);
    assert_string_equal(by_default.text, "it has 5\n");
    assert_exit_code(&by_choice, 0);
    assert_string_equal(by_choice.text, "it has 2\n");
}

TEST(FILCH_VERBOSE_tells_how_the_number_of_workers_was_found)
{
    setenv("FILCH_VERBOSE", "1", 1);
    ended verbose = run_in_child(create_one, &(unsigned){3});
    setenv("FILCH_VERBOSE", "0", 1);
    ended quiet = run_in_child(create_one, &(unsigned){3});
    unsetenv("FILCH_VERBOSE");

    assert_exit_code(&verbose, 0);
    assert_non_null(strstr(verbose.text, "filch: pool 'verbose': 3 workers"));
    assert_string_equal(quiet.text, "it has 3\n");
}

static void run_on_one_cpu(void *arg TEST_UNUSED)
{
    cpu_set_t set;
    filch_pool *pool;

    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && found++)
            CPU_CLR(i, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);

    CHECK(filch_pool_create(&pool, NULL) == 0);
    CHECK(filch_pool_worker_count(pool) == 1);
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    CHECK(filch_pool_destroy(pool) == 0);

    filch_options options = {.size = sizeof options, .workers = 4, .pin = true};
    counter c = {0};
    CHECK(filch_pool_create(&pool, &options) == 0);
    for (unsigned i = 0; i < 100; i++)
        CHECK(filch_submit(pool, tree_of_depth_8, &c) == 0);
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(counter_get(&c) == 100 * TREE_8);
}

TEST(on_one_cpu_one_worker_is_the_default_and_more_work_too)
{
    ended c = run_in_child(run_on_one_cpu, NULL);
    assert_exit_code(&c, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct hooks {
    counter started, stopped, index_sum;
} hooks;

static void on_start(void *context, unsigned worker_index)
{
    hooks *h = context;
    counter_add(&h->started, 1);
    counter_add(&h->index_sum, worker_index);
}

static void on_stop(void *context, unsigned worker_index)
{
    hooks *h = context;
    counter_add(&h->stopped, 1);
    counter_add(&h->index_sum, -(uint64_t)worker_index);
}

TEST(each_thread_calls_its_hooks_once)
{
    FOR_EACH_COUNT(workers)
    {
        hooks h;
        memset(&h, 0, sizeof h);
        filch_options options = {.size = sizeof options,
                                 .workers = workers,
                                 .on_start = on_start,
                                 .on_stop = on_stop,
                                 .hook_context = &h};
        filch_pool *pool = watched_pool_create(&options);
        counter c = {0};

        for (int i = 0; i < 20; i++)
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        watched_pool_destroy(pool);

        assert_in_range(counter_get(&h.started), 1, workers);
        assert_int_equal(counter_get(&h.stopped), counter_get(&h.started));
        assert_int_equal(counter_get(&h.index_sum), 0);
    }
}

typedef struct hook_work {
    filch_pool *pool;
    counter trees, runs;
} hook_work;

static void run_in_hook(void *context, unsigned worker_index TEST_UNUSED)
{
    hook_work *w = context;
    CHECK(filch_run(w->pool, tree_of_depth_8, &w->trees) == 0);
    counter_add(&w->runs, 1);
}

typedef struct hook_wait {
    counter started;
    latch ran;
} hook_wait;

static void first_waits_for_a_task(void *context, unsigned worker_index TEST_UNUSED)
{
    hook_wait *w = context;
    counter_add(&w->started, 1);
    if (counter_get(&w->started) == 1)
        latch_wait(&w->ran);
}

static void open_latch(filch_frame *f TEST_UNUSED, void *arg)
{
    latch_open(arg);
}

/* The submitting thread sees that a thread was started, and no reason to start another. */
TEST(a_hook_that_takes_long_does_not_keep_others_from_a_task)
{
    hook_wait w;
    memset(&w, 0, sizeof w);
    latch_init(&w.ran, 1);
    filch_options options = {.size = sizeof options,
                             .workers = 2,
                             .on_start = first_waits_for_a_task,
                             .hook_context = &w};
    filch_pool *pool = watched_pool_create(&options);

    assert_int_equal(filch_submit(pool, open_latch, &w.ran), 0);
    assert_int_equal(filch_pool_wait(pool), 0);

    watched_pool_destroy(pool);
    assert_int_equal(counter_get(&w.started), 2);
}

TEST(a_hook_that_starts_a_thread_may_run_tasks_of_the_pool)
{
    FOR_EACH_COUNT(workers)
    {
        hook_work w;
        memset(&w, 0, sizeof w);
        filch_options options = {.size = sizeof options,
                                 .workers = workers,
                                 .on_start = run_in_hook,
                                 .hook_context = &w};
        w.pool = watched_pool_create(&options);
        counter one_tree = {0}, c = {0};
        assert_int_equal(filch_run(w.pool, tree_of_depth_8, &one_tree), 0);

        for (int i = 0; i < 20; i++)
            assert_int_equal(filch_submit(w.pool, tree_of_depth_8, &c), 0);
        watched_pool_destroy(w.pool);

        assert_in_range(counter_get(&w.runs), 1, workers);
        assert_int_equal(counter_get(&w.trees), counter_get(&w.runs) * counter_get(&one_tree));
        assert_int_equal(counter_get(&c), 20 * counter_get(&one_tree));
    }
}

static void sleep_a_moment(filch_frame *f, void *arg TEST_UNUSED)
{
    CHECK(filch_sleep_ns(f, 1000000) == 0);
}

static void sleep_in_hook(void *context, unsigned worker_index TEST_UNUSED)
{
    hook_work *w = context;
    CHECK(filch_run(w->pool, sleep_a_moment, NULL) == 0);
    counter_add(&w->runs, 1);
}

/* The thread in the hook does not reach its loop, in which it would watch the timers. */
TEST(a_hook_may_run_a_task_that_sleeps)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        hook_work w;
        memset(&w, 0, sizeof w);
        filch_options options = {.size = sizeof options,
                                 .workers = workers,
                                 .on_start = sleep_in_hook,
                                 .hook_context = &w};
        w.pool = watched_pool_create(&options);
        for (int k = 0; k < 4; k++)
            assert_int_equal(filch_submit(w.pool, sleep_a_moment, NULL), 0);
        assert_int_equal(filch_pool_wait(w.pool), 0);
        watched_pool_destroy(w.pool);
        assert_in_range(counter_get(&w.runs), 1, workers);
    }
}

typedef struct thread_facts {
    char name[16];
    int cpu_count;
    latch is_done;
} thread_facts;

static void find_facts(filch_frame *f TEST_UNUSED, void *arg)
{
    thread_facts *facts = arg;
    cpu_set_t set;

    CHECK(pthread_getname_np(pthread_self(), facts->name, sizeof facts->name) == 0);
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    facts->cpu_count = CPU_COUNT(&set);
    latch_open(&facts->is_done);
}

static thread_facts facts_of(const char *name, bool pin, unsigned workers)
{
    filch_options options = {.size = sizeof options, .workers = workers, .name = name, .pin = pin};
    filch_pool *pool = watched_pool_create(&options);
    thread_facts facts;

    latch_init(&facts.is_done, 1);
    assert_int_equal(filch_submit(pool, find_facts, &facts), 0);
    latch_wait(&facts.is_done);
    watched_pool_destroy(pool);
    return facts;
}

TEST(threads_bear_the_name_of_the_pool_and_their_number)
{
    assert_string_equal(facts_of(NULL, false, 1).name, "filch/0");
    assert_string_equal(facts_of("named", false, 1).name, "named/0");
    assert_string_equal(facts_of("a name of more than 15 characters", false, 1).name,
                        "a name of mor/0");
    assert_string_equal(facts_of("", false, 1).name, "/0");
}

TEST(the_name_is_copied)
{
    char name[] = "before";
    filch_options options = {.size = sizeof options, .workers = 1, .name = name};
    filch_pool *pool = watched_pool_create(&options);
    thread_facts facts;

    strcpy(name, "after");
    latch_init(&facts.is_done, 1);
    assert_int_equal(filch_submit(pool, find_facts, &facts), 0);
    latch_wait(&facts.is_done);

    assert_string_equal(facts.name, "before/0");
    watched_pool_destroy(pool);
}

TEST(a_pinned_thread_has_one_cpu_and_the_callers_keeps_its_own)
{
    cpu_set_t before, after;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof before, &before), 0);

    assert_int_equal(facts_of(NULL, true, 1).cpu_count, 1);
    assert_int_equal(facts_of(NULL, true, 64).cpu_count, 1);

    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_may_be_created_and_destroyed_without_work),
        cmocka_unit_test(a_pool_needs_no_options),
        cmocka_unit_test(zero_workers_are_the_default_number),
        cmocka_unit_test(options_of_another_size_are_understood_if_they_can_be),
        cmocka_unit_test(options_that_end_before_a_member_leave_it_at_its_default),
        cmocka_unit_test(a_caller_with_another_layout_is_refused),
        cmocka_unit_test(options_without_a_meaning_are_refused),
        cmocka_unit_test(a_stack_too_large_for_the_machine_is_a_lack_of_memory),
        cmocka_unit_test(every_policy_runs_every_task),
        cmocka_unit_test(small_stacks_are_enough_for_small_tasks),
        cmocka_unit_test(ten_thousand_workers_become_a_thousand_that_work),
        cmocka_unit_test(without_a_pool_every_call_is_an_error),
        cmocka_unit_test(FILCH_WORKERS_replaces_the_default_but_not_the_programs_choice),
        cmocka_unit_test(FILCH_VERBOSE_tells_how_the_number_of_workers_was_found),
        cmocka_unit_test(on_one_cpu_one_worker_is_the_default_and_more_work_too),
        cmocka_unit_test(each_thread_calls_its_hooks_once),
        cmocka_unit_test(a_hook_that_takes_long_does_not_keep_others_from_a_task),
        cmocka_unit_test(a_hook_that_starts_a_thread_may_run_tasks_of_the_pool),
        cmocka_unit_test(a_hook_may_run_a_task_that_sleeps),
        cmocka_unit_test(threads_bear_the_name_of_the_pool_and_their_number),
        cmocka_unit_test(the_name_is_copied),
        cmocka_unit_test(a_pinned_thread_has_one_cpu_and_the_callers_keeps_its_own),
    };
    return cmocka_run_group_tests_name("pool_options", tests, watchdog_start, watchdog_stop);
}
