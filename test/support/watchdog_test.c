/* SPDX-License-Identifier: MIT */
/* The watchdog itself: the report of a test that hangs. */
#include "child.h"

#include <filch/task.h>

/*
 * A stolen task that never ends. It starts the watchdog only when its forker is suspended in the
 * join. So the short limit cannot pass before the hang that the report shows.
 */
static void never_end(filch_frame *f TEST_UNUSED, void *slot)
{
    /* relaxed: says only that the forker waits. */
    UNTIL(filch_load_relaxed(&((filch_slot *)slot)->state) & FILCH_TASK_AWAITED);
    watchdog.limit_seconds = 2;
    CHECK(watchdog_start(NULL) == 0);
    for (;;)
        pause();
}

static void wait_for_ever(filch_frame *f, void *pool)
{
    filch_frame *mark = f;
    filch_counters c = {.size = sizeof c};

    /* A strand publishes its first fork when another worker is idle. */
    f = filch_fork(f, never_end, f);
    do
        filch_pool_counters(pool, &c);
    while (c.stolen == 0);
    filch_join(f, mark);
}

static void hang(void *arg TEST_UNUSED)
{
    filch_pool *pool = watched_pool_of(2);
    filch_run(pool, wait_for_ever, pool);
}

TEST(a_test_that_hangs_reports_its_strands_and_counters)
{
#ifdef TEST_TSAN
    print_message("skipped: ThreadSanitizer lets no child of a fork() start threads\n");
    skip();
#endif
    ended c = run_in_child(hang, NULL);

    assert_true(has_ended_by(&c, SIGABRT));
    assert_non_null(strstr(c.text, "watchdog: no progress for 2 seconds"));
    assert_non_null(strstr(c.text, "2 workers: sleep word"));
    assert_non_null(strstr(c.text, "waits for the task stolen from its slot 0"));
    assert_non_null(strstr(c.text, "runs on worker"));
    assert_non_null(strstr(c.text, "stolen 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_test_that_hangs_reports_its_strands_and_counters),
    };
    return cmocka_run_group_tests_name("watchdog", tests, watchdog_start, watchdog_stop);
}
