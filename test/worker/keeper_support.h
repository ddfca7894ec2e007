/* SPDX-License-Identifier: MIT */
/*
 * For tests of the keeper: pools in child processes, and a task that only the keeper can help.
 */
#ifndef FILCH_TEST_KEEPER_SUPPORT_H
#define FILCH_TEST_KEEPER_SUPPORT_H

#include "fault_support.h"

static TEST_UNUSED void in_child(void (*fn)(void *), void *arg)
{
    ended c = run_in_child(fn, arg);

    watchdog_kick();
    assert_exit_code(&c, 0);
}

static TEST_UNUSED filch_pool *pool_of(unsigned workers)
{
    filch_options options = {.size = sizeof options, .workers = workers};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    watchdog_watch(pool);
    return pool;
}

/* ---- what a task that blocks its thread waits for -------------------------------------------- */

static latch has_run;

static TEST_UNUSED void let_go(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    latch_open(&has_run);
}

/* The next start fails. Only the keeper can start the thread that the other task needs. */
static TEST_UNUSED void keep_thread(filch_frame *f TEST_UNUSED, void *arg)
{
    fail_between(FILCH_FAULT_THREAD, 0, 0);
    CHECK(filch_submit(arg, let_go, NULL) == 0);
    latch_wait(&has_run);
}

static TEST_UNUSED void need_keeper(filch_pool *pool)
{
    latch_init(&has_run, 1);
    CHECK(filch_submit(pool, keep_thread, pool) == 0);
    CHECK(filch_pool_wait(pool) == 0);
}

#endif
