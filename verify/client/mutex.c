/* SPDX-License-Identifier: MIT */
/*
 * The mutex and the condition: one holder at a time, no waiter forgotten, with waits that end early
 * and memory freed as soon as allowed.
 *
 * Threads are enough here: client/suspend.c and client/wait.c check how a strand waits, and the
 * words below are the same for both. The protected data is plain. A lost wake-up is a deadlock.
 */
#include <filch/sync.h>

#include "mc/mc.h"

#include <errno.h>
#include <stdlib.h>

/* A thread's clock comes this far only by a time-out. */
#define DEADLINE_NS 1000000000u

static int shared; /* plain */
static int users;  /* plain: how many threads still use the object */

/* ---- mutex ----------------------------------------------------------------------------------- */

static filch_mutex *mutex;

static void setup_mutex(void)
{
    mutex = calloc(1, sizeof *mutex);
    users = 0;
}

static void setup_mutex_two(void)
{
    setup_mutex();
    users = 2;
}

static void setup_mutex_three(void)
{
    setup_mutex();
    users = 3;
}

/* The last user frees it. */
static void leave_mutex(void)
{
    shared++;
    bool is_last = --users == 0;
    filch_mutex_unlock(mutex);
    if (is_last)
        free(mutex);
}

static void lock_once(void)
{
    mc_check(filch_mutex_lock(NULL, mutex) == 0, "a thread gets the mutex");
    leave_mutex();
}

static void lock_twice(void)
{
    mc_check(filch_mutex_lock(NULL, mutex) == 0, "a thread gets the mutex");
    shared++;
    filch_mutex_unlock(mutex);
    lock_once();
}

static void lock_in_time(void)
{
    int err = filch_mutex_lock_until(NULL, mutex, DEADLINE_NS);

    mc_check(err == 0 || err == -ETIMEDOUT, "a thread gets the mutex, or time is up");
    if (err == 0) {
        shared++;
        filch_mutex_unlock(mutex);
    }
    lock_once();
}

static void try_lock(void)
{
    if (filch_mutex_try_lock(mutex)) {
        shared++;
        filch_mutex_unlock(mutex);
    }
    lock_once();
}

/* ---- condition ------------------------------------------------------------------------------- */

static filch_mutex guard;
static filch_cond *cond;
static bool is_true;

static void setup_cond(void)
{
    cond = calloc(1, sizeof *cond);
}

static void wait_for_truth(void)
{
    filch_mutex_lock(NULL, &guard);
    while (!is_true)
        mc_check(filch_cond_wait(NULL, cond, &guard) == 0,
                 "a wait without a deadline ends by a signal");
    shared++;
    filch_mutex_unlock(&guard);
}

static void wait_and_free_cond(void)
{
    filch_mutex_lock(NULL, &guard);
    while (!is_true)
        filch_cond_wait(NULL, cond, &guard);
    filch_mutex_unlock(&guard);
    free(cond);
}

static void wait_in_time(void)
{
    filch_mutex_lock(NULL, &guard);
    int err = is_true ? 0 : filch_cond_wait_until(NULL, cond, &guard, DEADLINE_NS);
    mc_check(err == -ETIMEDOUT || is_true, "a signal comes when it is true");
    shared++;
    filch_mutex_unlock(&guard);
}

/* Under the mutex, so that the waiter may free the condition. */
static void signal_inside(void)
{
    filch_mutex_lock(NULL, &guard);
    is_true = true;
    filch_cond_signal(cond);
    filch_mutex_unlock(&guard);
}

static void signal_after(void)
{
    filch_mutex_lock(NULL, &guard);
    is_true = true;
    filch_mutex_unlock(&guard);
    filch_cond_signal(cond);
}

static void broadcast(void)
{
    filch_mutex_lock(NULL, &guard);
    is_true = true;
    filch_mutex_unlock(&guard);
    filch_cond_broadcast(cond);
}

/* ---- programs -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    /* All spins in the library are bounded, and may end without news. */
    options.spins = MC_ALWAYS;
    mc_options timed = options, impatient = options;
    timed.timeouts = 1;
    impatient.clock_step_ns =
        1000000; /* each call of the clock takes longer than a waiter of the mutex is patient */
    const mc_options two = mc_bounded(options, 2, 1), three = mc_bounded(options, 3, 2),
                     impatient_two = mc_bounded(impatient, 2, 1);
    const mc_options timed_one = mc_bounded(timed, 1, 1), timed_two = mc_bounded(timed, 2, 1);
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"mutex", setup_mutex_two, {lock_once, lock_once}, NULL}, &options},
        {{"mutex, twice", setup_mutex_two, {lock_once, lock_twice}, NULL}, &options},
        {{"mutex, three", setup_mutex_three, {lock_once, lock_once, lock_once}, NULL}, &two},
        {{"mutex, three, impatient", setup_mutex_three, {lock_once, lock_twice, lock_once}, NULL},
         &impatient_two},
        {{"mutex, tried", setup_mutex_two, {lock_once, try_lock}, NULL}, &options},
        {{"mutex, timed", setup_mutex_two, {lock_once, lock_in_time}, NULL}, &timed_two},
        {{"mutex, timed, three", setup_mutex_three, {lock_once, lock_in_time, lock_once}, NULL},
         &timed_two},
        {{"condition", setup_cond, {wait_and_free_cond, signal_inside}, NULL},
         options.is_long ? &options : &three},
        {{"condition, signal", setup_cond, {wait_for_truth, signal_after}, NULL}, &options},
        {{"condition, timed", setup_cond, {wait_in_time, signal_after}, NULL}, &timed},
        {{"condition, timed, two", setup_cond, {wait_in_time, signal_inside, wait_in_time}, NULL},
         &timed_one},
        {{"condition, broadcast", setup_cond, {wait_for_truth, broadcast, wait_for_truth}, NULL},
         &two},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
