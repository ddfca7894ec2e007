/* SPDX-License-Identifier: MIT */
/*
 * Periods: beats at fixed times, however long the work between them takes. Signals do not stop
 * timers.
 */
#include "sync_support.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>

TEST(a_period_does_not_drift_and_counts_missed_beats)
{
    uint64_t start_ns = filch_now_ns();
    filch_period period;

    filch_period_init(&period, start_ns, 2000000);
    for (uint64_t i = 0; i < 5; i++) {
        uint64_t beats = i + period.missed;
        assert_int_equal(filch_period_wait(NULL, &period), 0);
        assert_true(filch_now_ns() >= start_ns + beats * 2000000);
        assert_int_equal(period.next_ns, start_ns + (i + 1 + period.missed) * 2000000);
    }

    /* A period that started long ago, with long beats. */
    uint64_t long_ns = start_ns / 4;
    filch_period_init(&period, start_ns - 2 * long_ns - long_ns / 2, long_ns);
    assert_int_equal(filch_period_wait(NULL, &period), 0);
    assert_int_equal(period.missed, 2);
    assert_int_equal(period.next_ns, start_ns + long_ns - long_ns / 2);
}

static int beat(filch_frame *f, void *arg)
{
    filch_period period;

    filch_period_init(&period, filch_now_ns(), 1000000);
    for (;;) {
        int err = filch_period_wait(f, &period);
        if (err)
            return err;
        counter_add(arg, 1);
    }
}

TEST(a_period_ends_when_the_task_is_cancelled)
{
    filch_pool *pool = watched_pool_of(1);
    counter beats = {0};
    filch_scope scope;

    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, beat, &beats), 0);
    UNTIL(counter_get(&beats) >= 3);
    filch_scope_cancel(&scope);

    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
    watched_pool_destroy(pool);
}

static void hear(int number TEST_UNUSED)
{
}

static void signal_all_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;

    CHECK(folder);
    while ((entry = readdir(folder))) {
        pid_t thread = atoi(entry->d_name);
        if (thread > 0 && thread != getpid())
            syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
    }
    closedir(folder);
}

static int sleep_a_little(filch_frame *f, void *arg)
{
    int err = filch_sleep_ns(f, 20000000);
    counter_add(arg, 1);
    return err;
}

TEST(signals_do_not_keep_a_task_asleep)
{
    const struct sigaction action = {.sa_handler = hear, .sa_flags = SA_RESTART};
    filch_pool *pool = watched_pool_of(2);
    counter awake = {0};
    filch_scope scope;

    sigaction(SIGUSR1, &action, NULL);
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, sleep_a_little, &awake), 0);
    while (counter_get(&awake) == 0)
        signal_all_threads();

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    /* SIG_DFL would end the program if a thread has not yet taken its signal. */
    signal(SIGUSR1, SIG_IGN);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_does_not_drift_and_counts_missed_beats),
        cmocka_unit_test(a_period_ends_when_the_task_is_cancelled),
        cmocka_unit_test(signals_do_not_keep_a_task_asleep),
    };
    return cmocka_run_group_tests_name("period", tests, watchdog_start, watchdog_stop);
}
