/* SPDX-License-Identifier: MIT */
/*
 * Tasks that end wrongly: in every build, also in optimised programs, the library stops the program
 * and names the task.
 */
#define FILCH_CHECKED 0 /* what the library finds without the checks of the macros */
#include "child.h"

#include <filch/filch.h>

typedef struct wrong {
    filch_fn *fn;
    void (*start)(filch_pool *pool, filch_fn *fn);
    unsigned workers;
} wrong;

/* ---- ways in which a task begins ------------------------------------------------------------- */

static void by_run(filch_pool *pool, filch_fn *fn)
{
    filch_run(pool, fn, NULL);
}

static void by_submit(filch_pool *pool, filch_fn *fn)
{
    filch_submit(pool, fn, NULL);
    filch_pool_wait(pool);
}

static latch begun;

static void begin_then_call(filch_frame *f, void *arg)
{
    filch_fn *const *fn = arg;
    latch_open(&begun);
    (*fn)(f, NULL);
    latch_open(&begun); /* no tail call: it is named */
}

/* Forks a task, and joins it when a thief has it. */
static void let_steal(filch_frame *f, void *arg)
{
    filch_frame *mark = f;
    f = filch_fork(f, begin_then_call, arg);
    UNTIL(latch_is_open(&begun));
    filch_join(f, mark);
}

static void by_thief(filch_pool *pool, filch_fn *fn)
{
    latch_init(&begun, 1);
    filch_run(pool, let_steal, &fn);
}

/* ---- ways to end wrongly --------------------------------------------------------------------- */

static void leaf(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
}

static void forgets_forks(filch_frame *f, void *arg TEST_UNUSED)
{
    for (int i = 0; i < 2000; i++)
        f = filch_fork(f, leaf, NULL);
}

FILCH_TASK(void, nothing, (int, unused))
{
    (void)unused;
}

FILCH_TASK(void, forgets_sync, (int, count))
{
    for (int i = 0; i < count; i++)
        FILCH_SPAWN(nothing, i);
}

static void forgets_to_sync(filch_frame *f, void *arg TEST_UNUSED)
{
    FILCH_CALL_ON(f, forgets_sync, 1);
}

static void exits_thread(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    pthread_exit(NULL);
}

/* Returns twice: in the child, too. The parent passes the child's end on. */
static void forks_process(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        alarm(CHILD_SECONDS);
        return;
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        abort();
    _exit(1);
}

static latch may_end;

static void wait_for_end(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    latch_open(&begun);
    latch_wait(&may_end);
}

/* The child joins a task that is complete only in the parent. */
static void forks_process_over_a_join(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_frame *mark = f;
    int status = 0;

    latch_init(&begun, 1);
    latch_init(&may_end, 1);
    f = filch_fork(f, wait_for_end, NULL);
    UNTIL(latch_is_open(&begun));
    pid_t pid = fork();
    if (pid == 0)
        alarm(CHILD_SECONDS);
    else
        CHECK(waitpid(pid, &status, 0) == pid);
    if (pid != 0)
        latch_open(&may_end);
    filch_join(f, mark);
    if (pid == 0)
        _exit(2);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        abort();
    _exit(1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void do_wrong(void *arg)
{
    wrong *w = arg;
    filch_options options = {.size = sizeof options, .workers = w->workers};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    w->start(pool, w->fn);
    filch_pool_destroy(pool);
}

/* The message has `what`, and ends with the name of the function. */
static void assert_stopped(wrong w, const char *name, const char *what)
{
    char end[80];

    ended c = run_in_child(do_wrong, &w);

    if (!has_ended_by(&c, SIGABRT) || !strstr(c.text, what))
        fail_msg("expected: %s; status %x, it wrote: %s", what, (unsigned)c.status, c.text);
    snprintf(end, sizeof end, ": %s\n", name);
    if (!strstr(c.text, end))
        fail_msg("the function is %s; it wrote: %s", name, c.text);
}

static void assert_stopped_everywhere(filch_fn *fn, const char *name, const char *what)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        assert_stopped((wrong){fn, by_run, workers}, name, what);
        assert_stopped((wrong){fn, by_submit, workers}, name, what);
    }
    assert_stopped((wrong){fn, by_thief, 2}, "begin_then_call", what);
}

static void skip_with_other_deques(void)
{
    const char *deque = getenv("FILCH_DEQUE");
    if (deque && strcmp(deque, "split") != 0)
        skip();
}

/* ThreadSanitizer ends the program at a pthread_exit in a task, with a message of its own. */
static void skip_with_tsan(void)
{
#ifdef TEST_TSAN
    skip();
#endif
}

TEST(a_task_that_joins_none_of_its_forks_is_found)
{
    skip_with_other_deques();
    assert_stopped_everywhere(forgets_forks, "forgets_forks", "not joined");
}

TEST(a_forgotten_sync_is_found_in_an_optimised_program)
{
    skip_with_other_deques();
    assert_stopped_everywhere(forgets_to_sync, "forgets_to_sync", "not joined");
}

static void by_run_macro(filch_pool *pool, filch_fn *fn TEST_UNUSED)
{
    FILCH_RUN(pool, forgets_sync, 1);
}

static void by_submit_macro(filch_pool *pool, filch_fn *fn TEST_UNUSED)
{
    FILCH_SUBMIT(pool, forgets_sync, 1);
    filch_pool_wait(pool);
}

static void by_future_macro(filch_pool *pool, filch_fn *fn TEST_UNUSED)
{
    forgets_sync_future future;

    FILCH_FUTURE_SUBMIT(pool, &future, forgets_sync, 1);
    filch_future_get(NULL, &future.future, NULL);
}

TEST(a_FILCH_TASK_has_its_own_name_in_messages)
{
    skip_with_other_deques();
    assert_stopped((wrong){NULL, by_run_macro, 2}, "forgets_sync", "not joined");
    assert_stopped((wrong){NULL, by_submit_macro, 2}, "forgets_sync", "not joined");
    assert_stopped((wrong){NULL, by_future_macro, 2}, "forgets_sync", "not joined");
}

TEST(a_task_that_ends_its_thread_is_found)
{
    skip_with_tsan();
    assert_stopped_everywhere(exits_thread, "exits_thread", "pthread_exit");
}

static int scope_task(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
    pthread_exit(NULL);
}

static void spawn_and_close(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, scope_task, NULL) == 0);
    filch_scope_close(f, &scope);
}

static int future_task(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED, void **value TEST_UNUSED)
{
    pthread_exit(NULL);
}

static void by_future(filch_pool *pool, filch_fn *fn TEST_UNUSED)
{
    filch_future future = FILCH_FUTURE_INIT;

    CHECK(filch_future_submit(pool, &future, future_task, NULL) == 0);
    filch_future_get(NULL, &future, NULL);
}

static int blocking_call(void *arg TEST_UNUSED)
{
    pthread_exit(NULL);
}

static void block(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_blocking(f, FILCH_LANE_ANY, blocking_call, NULL);
}

static void hook(void *context TEST_UNUSED, unsigned worker_index TEST_UNUSED)
{
    pthread_exit(NULL);
}

static void by_hook(filch_pool *pool TEST_UNUSED, filch_fn *fn)
{
    filch_options options = {.size = sizeof options, .workers = 1, .on_start = hook};
    filch_pool *hooked;

    CHECK(filch_pool_create(&hooked, &options) == 0);
    by_submit(hooked, fn);
}

TEST(a_hook_or_a_blocking_call_that_ends_its_thread_is_found)
{
    skip_with_tsan();
    assert_stopped((wrong){block, by_run, 1}, "blocking_call", "pthread_exit");
    assert_stopped((wrong){leaf, by_hook, 1}, "hook", "pthread_exit");
}

TEST(the_function_that_the_user_wrote_is_named)
{
    skip_with_tsan();
    assert_stopped((wrong){spawn_and_close, by_run, 2}, "scope_task", "pthread_exit");
    assert_stopped((wrong){NULL, by_future, 2}, "future_task", "pthread_exit");
}

TEST(a_child_of_fork_that_returns_from_its_task_is_found)
{
    for (unsigned workers = 1; workers <= 2; workers++)
        assert_stopped((wrong){forks_process, by_submit, workers}, "forks_process",
                       "the child of a fork() returned");
    assert_stopped((wrong){forks_process, by_thief, 2}, "begin_then_call",
                   "the child of a fork() returned");
}

TEST(a_child_of_fork_that_joins_a_task_of_the_parent_is_found)
{
    assert_stopped((wrong){forks_process_over_a_join, by_run, 2}, "wait_for_end",
                   "the child of a fork() joins");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_joins_none_of_its_forks_is_found),
        cmocka_unit_test(a_forgotten_sync_is_found_in_an_optimised_program),
        cmocka_unit_test(a_FILCH_TASK_has_its_own_name_in_messages),
        cmocka_unit_test(a_task_that_ends_its_thread_is_found),
        cmocka_unit_test(a_hook_or_a_blocking_call_that_ends_its_thread_is_found),
        cmocka_unit_test(the_function_that_the_user_wrote_is_named),
        cmocka_unit_test(a_child_of_fork_that_returns_from_its_task_is_found),
        cmocka_unit_test(a_child_of_fork_that_joins_a_task_of_the_parent_is_found),
    };
    return cmocka_run_group_tests_name("task_end", tests, watchdog_start, watchdog_stop);
}
