/* SPDX-License-Identifier: MIT */
/*
 * The keeper: starts that fail are tried again, for every pool; nothing makes the keeper block, and
 * its end leaves no lock behind. keeper_fork_test.c has the children of fork().
 */
#include "keeper_support.h"

#include <errno.h>
#include <fcntl.h>
#include <filch/blocking.h>
#include <filch/task.h>
#include <filch/trace.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "worker/worker.h"

static void fill(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    char byte = 'x';

    CHECK(flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    while (write(fd, &byte, 1) == 1)
        ;
    CHECK(errno == EAGAIN && fcntl(fd, F_SETFL, flags) == 0);
}

/* ---- forks while a start is put off ---------------------------------------------------------- */

#define CHILDREN 6

static latch all_ran;

FILCH_TASK(void, run_child)
{
    latch_open(&all_ran);
}

FILCH_TASK(void, fork_and_block, (uint32_t, failures))
{
    fail_between(FILCH_FAULT_THREAD, 0, failures - 1);
    for (int i = 0; i < CHILDREN; i++)
        FILCH_SPAWN(run_child);
    latch_wait(&all_ran);
    FILCH_SYNC();
}

static void fork_while_put_off(void *arg)
{
    filch_pool *pool = pool_of(8);

    latch_init(&all_ran, CHILDREN);
    CHECK(FILCH_SUBMIT(pool, fork_and_block, *(uint32_t *)arg) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(tasks_forked_while_starts_are_put_off_are_stolen_later)
{
    for (uint32_t failures = 1; failures <= 3; failures++)
        in_child(fork_while_put_off, &failures);
}

/* ---- back-off -------------------------------------------------------------------------------- */

static void fail_for_long(void *arg TEST_UNUSED)
{
    filch_pool *pool = pool_of(2);
    counter c = {0};

    fail_between(FILCH_FAULT_THREAD, 0, 5);
    while (times_asked(FILCH_FAULT_THREAD) < 6)
        CHECK(filch_submit(pool, count_one, &c) == 0);
    CHECK(filch_pool_wait(pool) == 0);
    /* The keeper tries no more: it finds no work. relaxed: for this test only. */
    while (filch_load_relaxed(&pool->put_off) || filch_load_relaxed(&pool->failed_starts))
        sched_yield();
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(without_work_the_next_failure_is_the_first_again)
{
    in_child(fail_for_long, NULL);
}

/* ---- threads that are cancelled -------------------------------------------------------------- */

static void end_slowly(void *context TEST_UNUSED, unsigned worker_index TEST_UNUSED)
{
    usleep(20000);
}

static bool is_destroyed;

/* The joins of the pool's threads and of the keeper have to wait. */
static void *destroy_while_cancelled(void *arg)
{
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(filch_pool_destroy(arg) == 0);
    CHECK(filch_dump_on_signal(0) == 0);
    is_destroyed = true;
    pthread_testcancel();
    return NULL;
}

static void cancel_the_last(void *arg)
{
    filch_options options = {.size = sizeof options, .workers = 2, .on_stop = end_slowly};
    bool has_dump = *(bool *)arg;
    int ends[2];
    counter c = {0};
    filch_pool *pool;
    pthread_t thread;
    void *result;

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_submit(pool, count_one, &c) == 0);
    CHECK(filch_pool_wait(pool) == 0);
    if (has_dump) {
        CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
        fill(ends[1]);
        CHECK(filch_dump_on_signal(SIGUSR1) == 0 && raise(SIGUSR1) == 0);
    }
    CHECK(pthread_create(&thread, NULL, destroy_while_cancelled, pool) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(is_destroyed);
    need_keeper(pool = pool_of(2));
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_cancelled_thread_leaves_no_lock_behind)
{
    for (int i = 0; i < 2; i++)
        in_child(cancel_the_last, &(bool){i != 0});
}

/* ---- what threads have from the creator of their pool ---------------------------------------- */

static filch_pool *batch_pool;

static void *create_as_batch(void *arg TEST_UNUSED)
{
    struct sched_param none = {0};

    CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
    CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
    batch_pool = pool_of(2);
    return NULL;
}

static void check_schedule(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    CHECK(sched_getscheduler(0) == SCHED_BATCH && getpriority(PRIO_PROCESS, 0) == 5);
    latch_open(&has_run);
}

static void keep_for_check(filch_frame *f TEST_UNUSED, void *arg)
{
    fail_between(FILCH_FAULT_THREAD, 0, 0);
    CHECK(filch_submit(arg, check_schedule, NULL) == 0);
    latch_wait(&has_run);
}

/* The keeper runs as the creator of the first pool. */
static void retry_for_batch(void *arg TEST_UNUSED)
{
    filch_pool *other = pool_of(2);
    pthread_t creator;

    latch_init(&has_run, 1);
    CHECK(pthread_create(&creator, NULL, create_as_batch, NULL) == 0);
    CHECK(pthread_join(creator, NULL) == 0);
    CHECK(filch_submit(batch_pool, keep_for_check, batch_pool) == 0);
    CHECK(filch_pool_destroy(batch_pool) == 0 && filch_pool_destroy(other) == 0);
}

TEST(a_thread_that_the_keeper_starts_is_scheduled_like_the_pools_creator)
{
    in_child(retry_for_batch, NULL);
}

static int note_mask(void *arg)
{
    return pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void call_from_guest(filch_frame *f, void *arg)
{
    CHECK(filch_blocking(f, FILCH_LANE_ANY, note_mask, arg) == 0);
}

static void call_with_another_mask(void *arg TEST_UNUSED)
{
    sigset_t usr2, there;

    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &usr2, NULL) == 0);
    filch_pool *pool = pool_of(1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL) == 0);
    CHECK(filch_run(pool, call_from_guest, &there) == 0);
    CHECK(sigismember(&there, SIGUSR2) == 1 && sigismember(&there, SIGUSR1) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_thread_for_blocking_calls_blocks_the_signals_of_the_pools_creator)
{
    in_child(call_with_another_mask, NULL);
}

/* ---- the start of the keeper ----------------------------------------------------------------- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);

/* The signals that the creators of threads blocked, in turn. */
static sigset_t blocked_by[8];
static counter created;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    uint64_t i = counter_get(&created);

    counter_add(&created, 1);
    if (i < COUNT_OF(blocked_by))
        pthread_sigmask(SIG_SETMASK, NULL, &blocked_by[i]);
    return __real_pthread_create(thread, attr, main, arg);
}

static void note_creators(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;

    counter_set(&created, 0);
    CHECK(filch_pool_create(&pool, &options) == 0);
    /* The keeper is the first thread. */
    CHECK(sigismember(&blocked_by[0], SIGUSR1) == 1);
    CHECK(sigismember(&blocked_by[1], SIGUSR1) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_keeper_never_handles_signals_of_the_program)
{
    in_child(note_creators, NULL);
}

/* A dump needs more stack than the smallest that threads can have. */
static void block_thread(filch_frame *f TEST_UNUSED, void *arg)
{
    latch_open(arg);
    latch_wait(&has_run);
}

static void dump_with_small_stacks(void *arg TEST_UNUSED)
{
    pthread_attr_t small;
    latch is_blocked;
    char text[4096];
    size_t length = 0;
    int ends[2];

    CHECK(pthread_attr_init(&small) == 0);
    if (pthread_attr_setstacksize(&small, 16 << 10) || pthread_setattr_default_np(&small))
        return;
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    filch_pool *pool = pool_of(2);
    latch_init(&has_run, 1);
    latch_init(&is_blocked, 1);
    CHECK(filch_submit(pool, block_thread, &is_blocked) == 0);
    latch_wait(&is_blocked);
    CHECK(raise(SIGUSR1) == 0);
    for (text[0] = '\0'; !strstr(text, "end of the dump"); text[length] = '\0') {
        ssize_t got = read(ends[0], text + length, sizeof text - 1 - length);
        CHECK(got > 0);
        length += (size_t)got;
    }
    CHECK(strstr(text, "[block_thread]"));
    latch_open(&has_run);
    CHECK(filch_pool_destroy(pool) == 0);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

TEST(the_keeper_has_stack_enough_for_a_dump)
{
    if (HAS_SANITIZER) /* needs larger stacks itself */
        skip();
    in_child(dump_with_small_stacks, NULL);
}

/* ---- a standard error that takes nothing ----------------------------------------------------- */

/* A terminal takes a little and then no more. It says that it can be written, and a write that may
 * block does not return before all is taken. */
static void dump_to_terminal(void *arg TEST_UNUSED)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    char name[64], room[512];

    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) ||
        ptsname_r(terminal, name, sizeof name))
        return;
    int fd = open(name, O_RDWR | O_NOCTTY);
    CHECK(fd >= 0);
    fill(fd);
    CHECK(read(terminal, room, sizeof room) > 0);
    CHECK(dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    filch_pool *pool = pool_of(2);
    for (int i = 0; i < 20; i++) {
        CHECK(raise(SIGUSR1) == 0);
        usleep(1000);
    }
    need_keeper(pool);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(a_terminal_that_takes_no_more_does_not_block_the_keeper)
{
    in_child(dump_to_terminal, NULL);
}

/* A signal comes while the dump of the signal before waits for its reader. */
static filch_pool *dump_during_a_dump(const int ends[2])
{
    fill(ends[1]);
    CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    filch_pool *pool = pool_of(2);
    CHECK(raise(SIGUSR1) == 0);
    /* The keeper dumps first, and serves the pool then. */
    need_keeper(pool);
    CHECK(raise(SIGUSR1) == 0);
    need_keeper(pool);
    return pool;
}

/* Read until so many dumps have come, or until the end of the pipe. Returns their number. */
static unsigned read_dumps(int fd, unsigned most)
{
    static char text[1 << 18];
    size_t length = 0;
    unsigned dumps = 0;
    ssize_t got = 1;

    while (dumps < most && got > 0) {
        CHECK(length + 1 < sizeof text);
        got = read(fd, text + length, sizeof text - 1 - length);
        CHECK(got >= 0);
        length += (size_t)got;
        text[length] = '\0';
        dumps = 0;
        for (const char *at = text; (at = strstr(at, "end of the dump")); at++)
            dumps++;
    }
    return dumps;
}

static void dump_twice(void *arg TEST_UNUSED)
{
    int ends[2], saved = dup(STDERR_FILENO);

    CHECK(pipe(ends) == 0);
    filch_pool *pool = dump_during_a_dump(ends);
    CHECK(read_dumps(ends[0], 2) == 2);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(a_signal_during_a_dump_is_not_forgotten)
{
    in_child(dump_twice, NULL);
}

/* The keeper stays for the pool. It has the first dump still to write, and looks for signals again
 * before it ends. */
static void switch_off_during_dump(void *arg TEST_UNUSED)
{
    int ends[2], saved = dup(STDERR_FILENO);

    CHECK(pipe(ends) == 0);
    filch_pool *pool = dump_during_a_dump(ends);
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(read_dumps(ends[0], 1) == 1);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO && close(ends[1]) == 0);
    CHECK(read_dumps(ends[0], 1) == 0);
}

TEST(a_signal_during_a_dump_is_forgotten_when_dumps_are_switched_off)
{
    in_child(switch_off_during_dump, NULL);
}

/* ---- threads for blocking calls -------------------------------------------------------------- */

static latch is_kept, may_end, younger_ran;
static filch_pool *lanes;

static int keep_lane(void *arg TEST_UNUSED)
{
    latch_open(&is_kept);
    latch_wait(&may_end);
    return 0;
}

static int wait_for_younger(void *arg TEST_UNUSED)
{
    latch_wait(&younger_ran);
    return 0;
}

static int be_younger(void *arg TEST_UNUSED)
{
    latch_open(&younger_ran);
    return 0;
}

static void block_in(filch_frame *f, void *fn)
{
    int (*call)(void *);

    memcpy(&call, &fn, sizeof call);
    CHECK(filch_blocking(f, FILCH_LANE_ANY, call, NULL) == 0);
}

static void submit_call(int (*fn)(void *))
{
    void *call;

    memcpy(&call, &fn, sizeof call);
    CHECK(filch_submit(lanes, block_in, call) == 0);
}

/* No thread can be started for the older of two calls, but for the younger one. That thread takes
 * the older, which waits for the younger. */
static void start_for_younger(void *arg TEST_UNUSED)
{
    latch_init(&is_kept, 1);
    latch_init(&may_end, 1);
    latch_init(&younger_ran, 1);
    lanes = pool_of(1);
    submit_call(keep_lane);
    latch_wait(&is_kept);
    fail_between(FILCH_FAULT_THREAD, 0, 5);
    submit_call(wait_for_younger);
    while (times_asked(FILCH_FAULT_THREAD) < 6)
        sched_yield();
    submit_call(be_younger);
    latch_wait(&younger_ran);
    latch_open(&may_end);
    CHECK(filch_pool_destroy(lanes) == 0);
}

TEST(a_call_gets_a_thread_though_an_older_one_took_the_thread_started_for_it)
{
    in_child(start_for_younger, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_forked_while_starts_are_put_off_are_stolen_later),
        cmocka_unit_test(without_work_the_next_failure_is_the_first_again),
        cmocka_unit_test(a_cancelled_thread_leaves_no_lock_behind),
        cmocka_unit_test(a_thread_that_the_keeper_starts_is_scheduled_like_the_pools_creator),
        cmocka_unit_test(a_thread_for_blocking_calls_blocks_the_signals_of_the_pools_creator),
        cmocka_unit_test(the_keeper_never_handles_signals_of_the_program),
        cmocka_unit_test(the_keeper_has_stack_enough_for_a_dump),
        cmocka_unit_test(a_terminal_that_takes_no_more_does_not_block_the_keeper),
        cmocka_unit_test(a_signal_during_a_dump_is_not_forgotten),
        cmocka_unit_test(a_signal_during_a_dump_is_forgotten_when_dumps_are_switched_off),
        cmocka_unit_test(a_call_gets_a_thread_though_an_older_one_took_the_thread_started_for_it),
    };
    fail_never();
    return cmocka_run_group_tests_name("keeper", tests, watchdog_start, watchdog_stop);
}
