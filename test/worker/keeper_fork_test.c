/* SPDX-License-Identifier: MIT */
/*
 * The keeper in the child of a fork(): a process has one exactly if it needs one.
 */
#include "keeper_support.h"

#include <filch/trace.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A request for dumps starts the keeper, unless it runs. SIGUSR1 stays the signal for dumps. */
static bool has_keeper(void)
{
    fail_never();
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    return times_asked(FILCH_FAULT_THREAD) == 0;
}

static void end_as(pid_t child)
{
    int status;

    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void use_in_grandchild(filch_pool *pool)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(getpid() == 1);
    need_keeper(pool);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(!has_keeper());
    _exit(0);
}

#define EXIT_NO_NAMESPACE 77

/* A process and its child, which both have the number 1, each in a PID namespace of its own. */
static void have_the_same_number(void *arg TEST_UNUSED)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
        _exit(EXIT_NO_NAMESPACE);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        filch_pool *pool = pool_of(2);
        need_keeper(pool);
        CHECK(getpid() == 1 && unshare(CLONE_NEWPID) == 0);
        pid_t grandchild = fork();
        if (grandchild == 0)
            use_in_grandchild(pool);
        end_as(grandchild);
        CHECK(filch_pool_destroy(pool) == 0);
        _exit(0);
    }
    end_as(child);
}

TEST(a_child_with_the_number_of_its_parent_has_a_keeper_of_its_own)
{
    skip_without_threads_in_children();
    ended c = run_in_child(have_the_same_number, NULL);

    if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == EXIT_NO_NAMESPACE)
        skip();
    assert_exit_code(&c, 0);
}

/* The parent's pool, which the child does not use, would need a keeper. */
static void use_another_in_child(void *arg TEST_UNUSED)
{
    filch_pool *unused = pool_of(2);
    counter c = {0};
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fail_between(FILCH_FAULT_THREAD, 1, NEVER);
        filch_pool *pool = pool_of(1);
        CHECK(filch_run(pool, count_one, &c) == 0);
        CHECK(filch_pool_destroy(pool) == 0);
        CHECK(!has_keeper());
        _exit(0);
    }
    end_as(child);
    CHECK(filch_pool_destroy(unused) == 0);
}

TEST(a_pool_that_a_child_does_not_use_needs_no_keeper_there)
{
    skip_without_threads_in_children();
    in_child(use_another_in_child, NULL);
}

/* The child inherits the choice of the signal (filch/trace.h). */
static void dump_in_child(void *arg TEST_UNUSED)
{
    filch_pool *pool = pool_of(1);
    counter c = {0};

    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(filch_run(pool, count_one, &c) == 0);
        CHECK(has_keeper());
        CHECK(filch_pool_destroy(pool) == 0);
        _exit(0);
    }
    end_as(child);
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_child_with_one_worker_has_a_keeper_if_a_signal_is_chosen_for_dumps)
{
    skip_without_threads_in_children();
    in_child(dump_in_child, NULL);
}

/* ---- pools that are rebuilt ------------------------------------------------------------------ */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);

/* The calling thread makes this call once, before it creates a thread. */
static _Thread_local void (*before_create)(void);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    void (*call)(void) = before_create;

    before_create = NULL;
    if (call)
        call();
    return __real_pthread_create(thread, attr, main, arg);
}

static latch is_rebuilding, is_other_gone;

static void await_end_of_other(void)
{
    latch_open(&is_rebuilding);
    latch_wait(&is_other_gone);
}

static void *rebuild_slowly(void *pool)
{
    counter c = {0};

    before_create = await_end_of_other;
    CHECK(filch_run(pool, count_one, &c) == 0);
    return NULL;
}

/* The keeper runs for another pool, which is destroyed while a thread rebuilds this one. */
static void destroy_while_rebuilding(void *arg TEST_UNUSED)
{
    filch_pool *pool = pool_of(2), *other = pool_of(2);
    pid_t child = fork();

    if (child == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        latch_init(&is_rebuilding, 1);
        latch_init(&is_other_gone, 1);
        need_keeper(other);
        CHECK(pthread_create(&thread, NULL, rebuild_slowly, pool) == 0);
        latch_wait(&is_rebuilding);
        CHECK(filch_pool_destroy(other) == 0);
        latch_open(&is_other_gone);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(has_keeper());
        CHECK(filch_dump_on_signal(0) == 0);
        need_keeper(pool);
        CHECK(filch_pool_destroy(pool) == 0);
        _exit(0);
    }
    end_as(child);
    CHECK(filch_pool_destroy(pool) == 0 && filch_pool_destroy(other) == 0);
}

TEST(a_rebuilt_pool_keeps_the_keeper_of_a_pool_that_was_destroyed_meanwhile)
{
    skip_without_threads_in_children();
    in_child(destroy_while_rebuilding, NULL);
}

/* In the child, the keeper starts, and the first thread of the pool does not. */
static void rebuild_in_vain(void *arg TEST_UNUSED)
{
    filch_pool *pool = pool_of(2);
    counter c = {0};
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fail_between(FILCH_FAULT_THREAD, 1, 1);
        CHECK(filch_run(pool, count_one, &c) == -EAGAIN);
        CHECK(!has_keeper());
        CHECK(filch_dump_on_signal(0) == 0);
        need_keeper(pool);
        CHECK(filch_pool_destroy(pool) == 0);
        _exit(0);
    }
    end_as(child);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_pool_that_could_not_be_rebuilt_leaves_no_keeper)
{
    skip_without_threads_in_children();
    in_child(rebuild_in_vain, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_with_the_number_of_its_parent_has_a_keeper_of_its_own),
        cmocka_unit_test(a_pool_that_a_child_does_not_use_needs_no_keeper_there),
        cmocka_unit_test(a_child_with_one_worker_has_a_keeper_if_a_signal_is_chosen_for_dumps),
        cmocka_unit_test(a_rebuilt_pool_keeps_the_keeper_of_a_pool_that_was_destroyed_meanwhile),
        cmocka_unit_test(a_pool_that_could_not_be_rebuilt_leaves_no_keeper),
    };
    fail_never();
    return cmocka_run_group_tests_name("keeper_fork", tests, watchdog_start, watchdog_stop);
}
