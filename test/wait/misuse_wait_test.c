/* SPDX-License-Identifier: MIT */
/*
 * Wrong calls on scopes, futures and locks: a checked program stops and names the line.
 */
#ifndef FILCH_DEBUG
#define FILCH_DEBUG
#endif
#include "misuse_support.h"

#include <filch/filch.h>

static int nothing(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    return 0;
}

static int compute(filch_frame *f TEST_UNUSED, void *arg, void **value)
{
    *value = arg;
    return 0;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void close_twice(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, nothing, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_scope_close(f, &scope);
    /* clang-format on */
}

static void spawn_after_close(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_scope_spawn(f, &scope, nothing, NULL);
    /* clang-format on */
}

static void spawn_future_after_close(filch_frame *f, void *pool)
{
    filch_scope scope;
    filch_future future = FILCH_FUTURE_INIT;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_future_spawn(f, &scope, &future, compute, NULL);
    /* clang-format on */
}

static void cancel_after_close(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_scope_cancel(&scope);
    /* clang-format on */
}

static void close_without_open(filch_frame *f, void *pool TEST_UNUSED)
{
    static filch_scope scope;
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_scope_close(f, &scope);
    /* clang-format on */
}

static void open_twice(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; (void)!filch_scope_open(f, &scope, pool, NULL);
    /* clang-format on */
}

static void leave_open(filch_frame *f, void *pool)
{
    filch_scope scope;
    /* clang-format off */
    HERE_IT_IS_WRONG; CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    /* clang-format on */
}

TEST(a_call_on_a_scope_that_is_closed_is_found)
{
    assert_found_anywhere(close_twice, "already closed");
    assert_found_anywhere(spawn_after_close, "already closed");
    assert_found_anywhere(spawn_future_after_close, "already closed");
    assert_found_anywhere(cancel_after_close, "already closed");
}

TEST(a_call_on_memory_that_is_no_scope_is_found)
{
    assert_found_anywhere(close_without_open, "no open scope");
}

TEST(a_scope_that_is_opened_twice_is_found)
{
    assert_found_in_task(open_twice, "already open");
}

/* ThreadSanitizer calls functions of its own when a function returns. They overwrite the object. */
static void skip_with_tsan(void)
{
#ifdef TEST_TSAN
    skip();
#endif
}

TEST(a_scope_that_is_never_closed_is_found_when_its_task_returns)
{
    skip_with_tsan();
    assert_found_in_task(leave_open, "not closed");
}

/* ---- futures --------------------------------------------------------------------------------- */

static latch may_complete;

static int complete_late(filch_frame *f TEST_UNUSED, void *arg, void **value)
{
    latch_wait(&may_complete);
    *value = arg;
    return 0;
}

static void discard_submitted(filch_frame *f TEST_UNUSED, void *pool)
{
    filch_future future = FILCH_FUTURE_INIT;

    latch_init(&may_complete, 1);
    /* clang-format off */
    HERE_IT_IS_WRONG; CHECK(filch_future_submit(pool, &future, complete_late, NULL) == 0);
    /* clang-format on */
}

static filch_scope outer;

static void discard_spawned(filch_frame *f, void *pool)
{
    filch_future future = FILCH_FUTURE_INIT;

    latch_init(&may_complete, 1);
    CHECK(filch_scope_open(f, &outer, pool, NULL) == 0);
    /* clang-format off */
    HERE_IT_IS_WRONG; CHECK(filch_future_spawn(f, &outer, &future, complete_late, NULL) == 0);
    /* clang-format on */
}

/* The function that holds the future returns, its task does not. */
static __attribute__((noinline)) long discard_below(filch_frame *f, filch_pool *pool)
{
    discard_submitted(f, pool);
    return 1;
}

FILCH_TASK(long, calls_discarder, (filch_pool *, pool))
{
    return discard_below(FILCH_HERE, pool);
}

static void discard_in_a_called_task(filch_frame *f, void *pool)
{
    CHECK(FILCH_CALL_ON(f, calls_discarder, pool) == 1);
    abort_without_message();
}

TEST(a_future_that_is_discarded_before_it_is_complete_is_found)
{
    skip_with_tsan();
    assert_found_in_task(discard_submitted, "not complete");
    assert_found_in_task(discard_spawned, "not complete");
    assert_found_in_task(discard_in_a_called_task, "not complete");
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void unlock_free_mutex(filch_frame *f, void *pool TEST_UNUSED)
{
    static filch_mutex mutex;

    CHECK(filch_mutex_lock(f, &mutex) == 0);
    filch_mutex_unlock(&mutex);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_mutex_unlock(&mutex);
    /* clang-format on */
}

static void unlock_free_rwlock(filch_frame *f, void *pool TEST_UNUSED)
{
    static filch_rwlock rwlock;

    CHECK(filch_rwlock_read_lock(f, &rwlock) == 0);
    filch_rwlock_unlock(&rwlock);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_rwlock_unlock(&rwlock);
    /* clang-format on */
}

static void wait_without_mutex(filch_frame *f, void *pool TEST_UNUSED)
{
    static filch_mutex mutex;
    static filch_cond cond;
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_cond_wait(f, &cond, &mutex);
    /* clang-format on */
}

static void wait_for_nobody(filch_frame *f, void *pool TEST_UNUSED)
{
    static filch_barrier barrier;
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_barrier_wait(f, &barrier);
    /* clang-format on */
}

TEST(an_unlock_without_the_lock_is_found)
{
    assert_found_anywhere(unlock_free_mutex, "not locked");
    assert_found_anywhere(unlock_free_rwlock, "not locked");
    assert_found_anywhere(wait_without_mutex, "not locked");
}

TEST(a_barrier_for_nobody_is_found)
{
    assert_found_anywhere(wait_for_nobody, "0 callers");
}

static filch_mutex shared;

static int unlock_shared(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_mutex_unlock(&shared);
    /* clang-format on */
    return 0;
}

static void let_another_unlock(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_mutex_lock(f, &shared) == 0);
    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, unlock_shared, NULL) == 0);
    filch_scope_close(f, &scope);
}

TEST(an_unlock_by_another_task_is_found)
{
    assert_found_in_task(let_another_unlock, "another task");
}

/* ---- local values ---------------------------------------------------------------------------- */

static void unbind_first(filch_frame *f, void *pool TEST_UNUSED)
{
    static const filch_key key = {"key"};
    filch_binding first, second;

    filch_local_bind(f, &first, &key, NULL);
    filch_local_bind(f, &second, &key, NULL);
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_local_unbind(f, &first);
    /* clang-format on */
}

TEST(an_unbind_out_of_order_is_found)
{
    assert_found_in_task(unbind_first, "another binding");
}

/* ---- what is correct ------------------------------------------------------------------------- */

FILCH_TASK(void, lock_serially, (filch_mutex *, mutex))
{
    CHECK(filch_mutex_lock(FILCH_HERE, mutex) == 0);
    filch_mutex_unlock(mutex);
}

typedef struct holder {
    filch_scope *scope;
    filch_future *future;
    filch_pool *pool;
} holder;

/* Opens and spawns for its caller: the objects outlive this function. */
static __attribute__((noinline)) void open_for_caller(filch_frame *f, holder *h)
{
    CHECK(filch_scope_open(
              f, h->scope, h->pool,
              &(filch_scope_options){.size = sizeof(filch_scope_options), .task_limit = 4}) == 0);
    CHECK(filch_future_spawn(f, h->scope, h->future, compute, h) == 0);
}

FILCH_TASK(void, open_in_called_task, (holder *, h))
{
    open_for_caller(FILCH_HERE, h);
}

static __attribute__((noinline)) void use_everything(filch_frame *f, void *pool)
{
    static filch_mutex mutex;
    filch_scope scope;
    filch_future future = FILCH_FUTURE_INIT;
    filch_rwlock rwlock = {0};
    filch_barrier barrier;
    void *value;

    open_for_caller(f, &(holder){&scope, &future, pool});
    CHECK(filch_scope_spawn_copy(f, &scope, nothing, &value, sizeof value) == 0);
    CHECK(filch_future_get(f, &future, &value) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);

    for (int i = 0; i < 100; i++) {
        filch_future_init(&future);
        CHECK(filch_future_submit(pool, &future, compute, &barrier) == 0);
        CHECK(filch_future_get(f, &future, &value) == 0 && value == &barrier);
    }

    CHECK(filch_mutex_lock(f, &mutex) == 0);
    filch_mutex_unlock(&mutex);
    if (filch_mutex_try_lock(&mutex))
        filch_mutex_unlock(&mutex);
    CHECK(filch_rwlock_write_lock(f, &rwlock) == 0);
    filch_rwlock_unlock(&rwlock);
    CHECK(filch_rwlock_read_lock(f, &rwlock) == 0);
    CHECK(filch_rwlock_read_lock(f, &rwlock) == 0);
    filch_rwlock_unlock(&rwlock);
    filch_rwlock_unlock(&rwlock);
    filch_barrier_init(&barrier, 1);
    CHECK(filch_barrier_wait(f, &barrier) == 1);

    /* On a serial strand, whose frame is not that of this stack. */
    holder h = {&scope, &future, pool};
    filch_future_init(&future);
    FILCH_RUN(NULL, open_in_called_task, &h);
    FILCH_RUN(NULL, lock_serially, &mutex);
    CHECK(filch_scope_close(f, &scope) == 0);
}

static void use_twice(filch_frame *f, void *pool)
{
    use_everything(f, pool);
    use_everything(f, pool);
}

TEST(correct_calls_are_not_stopped)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        for (int i = 0; i < 20; i++)
            assert_int_equal(filch_run(pool, use_twice, pool), 0);
        use_twice(NULL, pool);
        watched_pool_destroy(pool);
    }
}

/* A future that was used before, and that a failed call would have completed. */
FILCH_TASK(int, fail_to_spawn, (filch_pool *, pool))
{
    filch_frame *f = FILCH_HERE;
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope scope;
    void *value;

    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_future_spawn(f, &scope, &future, compute, NULL) == 0);
    CHECK(filch_future_get(f, &future, &value) == 0);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    filch_scope_cancel(&scope);
    filch_future_init(&future);
    CHECK(filch_future_spawn(f, &scope, &future, compute, NULL) == -ECANCELED);
    return filch_scope_close(f, &scope);
}

static void fail_to_spawn_in_pool(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(FILCH_RUN(pool, fail_to_spawn, pool) == -ECANCELED);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_future_whose_call_failed_may_be_discarded)
{
    ended c = run_in_child(fail_to_spawn_in_pool, NULL);
    assert_exit_code(&c, 0);
}

/* The child of a fork() leaves functions whose scope and future belong to the parent. */
static __attribute__((noinline)) int fork_with_objects(filch_frame *f, filch_pool *pool)
{
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope scope;
    void *value;
    int status;

    latch_init(&may_complete, 1);
    CHECK(filch_scope_open(f, &scope, pool, NULL) == 0);
    CHECK(filch_future_spawn(f, &scope, &future, complete_late, NULL) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        return filch_scope_close(f, &scope);
    latch_open(&may_complete);
    CHECK(filch_future_get(f, &future, &value) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}

FILCH_TASK(int, calls_forker, (filch_pool *, pool))
{
    int err = fork_with_objects(FILCH_HERE, pool);
    return err;
}

static void fork_in_task(filch_frame *f, void *pool)
{
    if (FILCH_CALL_ON(f, calls_forker, pool) == -EOWNERDEAD)
        _exit(0);
}

/* The caller of filch_run runs this itself, so the child may return to it. (The caller finds a free
 * seat: there are more than other threads take.) */
static void fork_in_guest(filch_frame *f, void *pool)
{
    fork_with_objects(f, pool);
}

static void fork_in_pool(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 8};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_run(pool, fork_in_task, pool) == 0);
    pid_t parent = getpid();
    CHECK(filch_run(pool, fork_in_guest, pool) == 0);
    if (getpid() != parent)
        _exit(0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_forked_child_may_leave_the_objects_of_its_parent)
{
#if defined(TEST_TSAN) || defined(TEST_ASAN) || defined(TEST_EMULATED)
    print_message("here, no fork() of a process with threads: see pool_fork_test\n");
    skip();
#endif
    ended c = run_in_child(fork_in_pool, NULL);
    assert_exit_code(&c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_on_a_scope_that_is_closed_is_found),
        cmocka_unit_test(a_call_on_memory_that_is_no_scope_is_found),
        cmocka_unit_test(a_scope_that_is_opened_twice_is_found),
        cmocka_unit_test(a_scope_that_is_never_closed_is_found_when_its_task_returns),
        cmocka_unit_test(a_future_that_is_discarded_before_it_is_complete_is_found),
        cmocka_unit_test(an_unlock_without_the_lock_is_found),
        cmocka_unit_test(a_barrier_for_nobody_is_found),
        cmocka_unit_test(an_unlock_by_another_task_is_found),
        cmocka_unit_test(an_unbind_out_of_order_is_found),
        cmocka_unit_test(correct_calls_are_not_stopped),
        cmocka_unit_test(a_future_whose_call_failed_may_be_discarded),
        cmocka_unit_test(a_forked_child_may_leave_the_objects_of_its_parent),
    };
    return cmocka_run_group_tests_name("misuse_wait", tests, watchdog_start, watchdog_stop);
}
