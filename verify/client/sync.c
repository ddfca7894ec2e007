/* SPDX-License-Identifier: MIT */
/*
 * Semaphore, event, once, reader-writer lock and barrier, used by threads: each keeps its promise,
 * with waits that end early and memory freed as soon as allowed.
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

/* ---- semaphore ------------------------------------------------------------------------------- */

static filch_sem *sem;
static int units[2]; /* plain */

static void setup_sem(void)
{
    sem = malloc(sizeof *sem);
    filch_sem_init(sem, 0);
}

static void acquire(void)
{
    mc_check(filch_sem_acquire(NULL, sem) == 0, "a thread gets a unit");
    mc_check(units[0] || units[1], "and sees what was done before it was released");
}

static void acquire_and_free(void)
{
    acquire();
    free(sem);
}

/* A thread that times out leaves its unit to the other. */
static void acquire_in_time(void)
{
    if (filch_sem_acquire_until(NULL, sem, DEADLINE_NS) == 0)
        filch_sem_release(sem, 1);
}

static void release_one(void)
{
    /* The unit that was acquired may be the other thread's release. */
    units[0] = 1;
    filch_sem_release(sem, 1);
}

static void release_two(void)
{
    units[0] = 1;
    filch_sem_release(sem, 2);
}

/* ---- event ----------------------------------------------------------------------------------- */

static filch_event *event;

static void setup_event(void)
{
    event = calloc(1, sizeof *event);
}

static void set_event(void)
{
    units[0] = 1;
    filch_event_set(event);
}

static void wait_for_event(void)
{
    mc_check(filch_event_wait(NULL, event) == 0 && units[0] == 1,
             "who has waited sees what was done before");
}

static void wait_for_event_in_time(void)
{
    int err = filch_event_wait_until(NULL, event, DEADLINE_NS);
    mc_check(err == -ETIMEDOUT || units[0] == 1, "who has waited sees what was done before");
}

static void wait_for_event_and_free(void)
{
    wait_for_event();
    free(event);
}

static void look_at_event_and_free(void)
{
    while (!filch_event_is_set(event))
        filch_pause();
    mc_check(units[0] == 1, "who finds it set sees what was done before");
    free(event);
}

/* ---- once ------------------------------------------------------------------------------------ */

static filch_once once;
static int calls; /* plain: of the function that is called once */
static int fail_count;

static int call(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    return ++calls <= fail_count ? -EIO : 0;
}

/* The first calls fail, and their threads try again. */
static void call_once(void)
{
    int err;

    while ((err = filch_once_call(NULL, &once, call, NULL)) == -EIO)
        ;
    mc_check(err == 0 && calls == fail_count + 1, "it was called until it succeeded, and no more");
}

/* Two calls fail, one after the other, while another thread is about to call: it may see the first
 * or the second. */
static int call_in_vain(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    calls++;
    return -EIO;
}

static void fail_twice(void)
{
    for (int i = 0; i < 2; i++) {
        int err = filch_once_call(NULL, &once, call_in_vain, NULL);
        mc_check(err == 0 || err == -EIO, "it fails, or was called");
    }
}

static void call_after(void)
{
    mc_check(filch_once_call(NULL, &once, call, NULL) == 0, "a call that succeeds");
    mc_check(calls >= 1, "it was called");
}

static void setup_once(void)
{
    fail_count = 1;
}

static void setup_once_twice(void)
{
    fail_count = 2;
}

/* ---- reader-writer lock, barrier ------------------------------------------------------------- */

static filch_rwlock rwlock;

static void write_once(void)
{
    filch_rwlock_write_lock(NULL, &rwlock);
    shared++;
    filch_rwlock_unlock(&rwlock);
}

static void write_in_time(void)
{
    if (filch_rwlock_write_lock_until(NULL, &rwlock, DEADLINE_NS) == 0) {
        shared++;
        filch_rwlock_unlock(&rwlock);
    }
}

static void read_once(void)
{
    filch_rwlock_read_lock(NULL, &rwlock);
    mc_check(shared <= 2, "what a reader sees was written");
    filch_rwlock_unlock(&rwlock);
}

static void write_then_read(void)
{
    write_once();
    read_once();
}

static filch_barrier barrier;
static int arrived[2];

static void setup_barrier(void)
{
    filch_barrier_init(&barrier, 2);
}

static void meet(void)
{
    const int self = mc_self() - 1;

    for (int i = 1; i <= 2; i++) {
        arrived[self] = i;
        mc_check(filch_barrier_wait(NULL, &barrier) >= 0, "all have come");
        mc_check(arrived[!self] == i, "and what they did can be seen");
        filch_barrier_wait(NULL, &barrier);
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const mc_options patient = mc_arguments(argc, argv);
    mc_options options = patient;
    /* All spins in the library are bounded, and may end without news. */
    options.spins = MC_ALWAYS;
    mc_options timed = options;
    timed.timeouts = 1;
    const mc_options two = mc_bounded(options, 2, 1), timed_two = mc_bounded(timed, 2, 1);
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"semaphore", setup_sem, {acquire_and_free, release_one}, NULL}, &options},
        {{"semaphore, two", setup_sem, {acquire, release_two, acquire}, NULL}, &two},
        {{"semaphore, timed", setup_sem, {acquire, release_one, acquire_in_time}, NULL},
         &timed_two},
        {{"event", setup_event, {wait_for_event_and_free, set_event}, NULL}, &options},
        {{"event, looked at", setup_event, {look_at_event_and_free, set_event}, NULL}, &patient},
        {{"event, timed", setup_event, {wait_for_event, set_event, wait_for_event_in_time}, NULL},
         &timed_two},
        {{"once", setup_once, {call_once, call_once}, NULL}, &options},
        {{"once, three", setup_once_twice, {call_once, call_once, call_once}, NULL}, &two},
        {{"reader-writer lock", NULL, {write_once, read_once, write_once}, NULL}, &two},
        {{"once, failing", NULL, {fail_twice, call_after}, NULL}, &options},
        {{"reader-writer lock, readers", NULL, {read_once, write_once, read_once}, NULL}, &two},
        {{"reader-writer lock, given up", NULL, {write_then_read, write_in_time, read_once}, NULL},
         &timed_two},
        {{"reader-writer lock, timed", NULL, {write_once, read_once, write_in_time}, NULL},
         &timed_two},
        {{"barrier", setup_barrier, {meet, meet}, NULL}, &two},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
