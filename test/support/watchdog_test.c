/* SPDX-License-Identifier: MIT */
/* The watchdog itself: what a test that hangs leaves behind. */
#include "child.h"

#include <filch/task.h>

/* A task that is stolen and never ends, while its forker waits for it. */
static void never_end(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    for (;;)
        pause();
}

static void wait_for_ever(filch_frame *f, void *pool)
{
    filch_frame *mark = f;
    filch_counters c = {.size = sizeof c};

    /* The first fork of a strand is published when somebody is idle. */
    f = filch_fork(f, never_end, NULL);
    do
        filch_pool_counters(pool, &c);
    while (c.stolen == 0);
    filch_join(f, mark);
}

static void hang(void *arg TEST_UNUSED)
{
    watchdog.limit_seconds = 2;
    CHECK(watchdog_start(NULL) == 0);
    filch_pool *pool = watched_pool_of(2);
    filch_run(pool, wait_for_ever, pool);
}

TEST(a_test_that_hangs_says_where_its_strands_are_and_what_was_counted)
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
        cmocka_unit_test(a_test_that_hangs_says_where_its_strands_are_and_what_was_counted),
    };
    return cmocka_run_group_tests_name("watchdog", tests, watchdog_start, watchdog_stop);
}
