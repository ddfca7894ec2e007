/* SPDX-License-Identifier: MIT */
/*
 * Pools and fork(): the child uses the inherited objects, or gets an error; it never hangs.
 */
#include "pool_support.h"

#include <filch/io.h>

/* In gcc 12, a lock of AddressSanitizer's malloc may stay locked in the child of a busy process. */
static void skip_with_asan(void)
{
#ifdef TEST_ASAN
    print_message("AddressSanitizer: no malloc in the child of a busy process\n");
    skip();
#endif
}

static void use_inherited(void *arg)
{
    filch_pool *pool = arg;
    counter c = {0};

    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    for (int i = 0; i < 20; i++)
        CHECK(filch_submit(pool, tree_of_depth_8, &c) == 0);
    CHECK(filch_pool_wait(pool) == 0);
    CHECK(counter_get(&c) == 20 * TREE_8);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_child_of_a_fork_may_use_the_pool_it_inherited)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        ended c = run_in_child(use_inherited, pool);

        assert_exit_code(&c, 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void destroy_inherited(void *pool)
{
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_child_of_a_fork_may_destroy_the_pool_it_inherited)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        ended c = run_in_child(destroy_inherited, pool);

        assert_exit_code(&c, 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void grandchild(void *pool)
{
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        use_inherited(pool);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    use_inherited(pool);
}

TEST(the_child_of_a_child_may_use_the_pool_too)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);

        ended c = run_in_child(grandchild, pool);

        assert_exit_code(&c, 0);
        watched_pool_destroy(pool);
    }
}

typedef struct forking {
    filch_pool *pool;
    int status;
} forking;

static void fork_inside(filch_frame *f TEST_UNUSED, void *arg)
{
    forking *work = arg;
    pid_t pid = fork();

    if (pid == 0) {
        counter c = {0};
        alarm(CHILD_SECONDS);
        bool is_refused = filch_run(work->pool, count_one, &c) == -EOWNERDEAD &&
                          filch_submit(work->pool, count_one, &c) == -EOWNERDEAD &&
                          counter_get(&c) == 0;
        /* The pool cannot be used, so FILCH_RUN runs the task serially. */
        bool is_serial = FILCH_RUN(work->pool, fib, 15) == 610;
        _exit(!is_refused + 2 * !is_serial);
    }
    CHECK(waitpid(pid, &work->status, 0) == pid);
}

TEST(the_child_of_a_task_that_forked_gets_an_error_from_its_pool)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        forking work = {pool, -1};
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        assert_int_equal(filch_run(pool, fork_inside, &work), 0);

        assert_true(WIFEXITED(work.status));
        assert_int_equal(WEXITSTATUS(work.status), 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void fork_and_return(filch_frame *f, void *arg)
{
    pid_t *child = arg;

    *child = fork();
    if (*child == 0) {
        alarm(CHILD_SECONDS);
        /* These forks are offered to workers, but the child has none. */
        CHECK(FILCH_CALL_ON(f, fib, 20) == 6765);
    }
}

TEST(the_child_of_a_task_that_forked_may_return_and_use_the_pool)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        pid_t child = -1;
        int status;

        assert_int_equal(filch_run(pool, fork_and_return, &child), 0);
        if (child == 0) {
            use_inherited(pool);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        watched_pool_destroy(pool);
    }
}

typedef struct standing {
    latch is_there, may_go;
} standing;

/* Occupies a strand. Its frames are so deep that a task that reuses the strand would overwrite
 * them. */
__attribute__((noinline)) static int stand(standing *s, int depth)
{
    volatile char local[100];

    local[depth] = 1;
    if (depth > 0)
        return local[depth] + stand(s, depth - 1);
    latch_open(&s->is_there);
    latch_wait(&s->may_go);
    return local[depth];
}

static void stand_there(filch_frame *f TEST_UNUSED, void *arg)
{
    CHECK(stand(arg, 50) == 51);
}

TEST(the_child_of_a_fork_may_use_strands_that_were_in_use)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        standing s;
        latch_init(&s.is_there, workers);
        latch_init(&s.may_go, 1);
        for (unsigned i = 0; i < workers; i++)
            assert_int_equal(filch_submit(pool, stand_there, &s), 0);
        latch_wait(&s.is_there);

        ended c = run_in_child(use_inherited, pool);

        latch_open(&s.may_go);
        assert_int_equal(filch_pool_wait(pool), 0);
        watched_pool_destroy(pool);
        assert_exit_code(&c, 0);
    }
}

typedef struct busy {
    filch_pool *pool;
    counter stop;
} busy;

static void *keep_busy(void *arg)
{
    busy *b = arg;
    while (counter_get(&b->stop) == 0)
        CHECK(FILCH_RUN(b->pool, fib, 12) == 144);
    return NULL;
}

TEST(children_of_a_busy_process_neither_hang_nor_disturb_it)
{
    skip_without_threads_in_children();
    skip_with_asan();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter done = {0};
        busy b = {pool, {0}};
        pthread_t threads[2];
        ended last = {.status = 0};
        unsigned submitted = 0, forks = (TEST_SLOWNESS > 1 ? 50 : 200) / COUNT_OF(worker_counts);

        for (unsigned i = 0; i < COUNT_OF(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &b), 0);
        for (unsigned i = 0; i < forks && last.status == 0; i++) {
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &done), 0);
            submitted++;
            last = run_in_child(use_inherited, pool);
            watchdog_kick();
        }
        counter_set(&b.stop, 1);
        for (unsigned i = 0; i < COUNT_OF(threads); i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);

        assert_exit_code(&last, 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&done), submitted * TREE_8);
        watched_pool_destroy(pool);
    }
}

/* ---- threads that are cancelled -------------------------------------------------------------- */

/* So that the pool has descriptors of its own. */
static void wait_for_byte(filch_frame *f, void *arg)
{
    int *ends = arg;
    char byte;
    filch_op op = filch_op_read(ends[0], &byte, 1);

    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_write(f, ends[1], "x", 1) == 1);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1);
}

static filch_pool *inherited_pool;

/* Nothing but the rebuilding of the pool could be cancelled here. */
static void *submit_while_cancelled(void *count)
{
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(filch_submit(inherited_pool, count_one, count) == 0);
    counter_add(count, 1);
    pthread_testcancel();
    return NULL;
}

static void rebuild_while_cancelled(void *arg TEST_UNUSED)
{
    counter c = {0};
    pthread_t thread;
    void *result;

    CHECK(pthread_create(&thread, NULL, submit_while_cancelled, &c) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(counter_get(&c) > 0);
    CHECK(filch_pool_wait(inherited_pool) == 0);
    CHECK(counter_get(&c) == 2);
    use_inherited(inherited_pool);
}

TEST(a_cancelled_thread_rebuilds_the_pool_first)
{
    skip_without_threads_in_children();
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    FOR_EACH_COUNT(workers)
    {
        inherited_pool = watched_pool_of(workers);
        assert_int_equal(filch_run(inherited_pool, wait_for_byte, ends), 0);

        ended c = run_in_child(rebuild_while_cancelled, NULL);

        assert_exit_code(&c, 0);
        watched_pool_destroy(inherited_pool);
    }
    close(ends[0]);
    close(ends[1]);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static int count_in_scope(filch_frame *f, void *arg)
{
    int err = filch_yield(f);
    counter_add(arg, 1);
    return err;
}

static void open_in_child(void *arg)
{
    counter c = {0};
    filch_scope scope;

    CHECK(filch_scope_open(NULL, &scope, arg, NULL) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(filch_scope_spawn(NULL, &scope, count_in_scope, &c) == 0);
    CHECK(filch_scope_close(NULL, &scope) == 0);
    CHECK(counter_get(&c) == 20);
    CHECK(filch_pool_destroy(arg) == 0);
}

TEST(the_child_of_a_fork_may_open_a_scope_in_the_pool_it_inherited)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        ended c = run_in_child(open_in_child, pool);

        assert_exit_code(&c, 0);
        watched_pool_destroy(pool);
    }
}

typedef struct inherited {
    filch_scope scope;
    filch_event gate;
    counter c;
} inherited;

static int count_after_gate(filch_frame *f, void *arg)
{
    inherited *i = arg;
    CHECK(filch_event_wait(f, &i->gate) == 0);
    counter_add(&i->c, 1);
    return 0;
}

static void expect_owner_dead(inherited *i)
{
    CHECK(filch_scope_spawn(NULL, &i->scope, count_after_gate, i) == -EOWNERDEAD);
    filch_scope_cancel(&i->scope);
    CHECK(filch_scope_close(NULL, &i->scope) == -EOWNERDEAD);
}

/* Before the child rebuilds the pool, and after. */
static void use_scope_of_parent(void *arg)
{
    inherited *i = arg;
    expect_owner_dead(i);
}

static void use_scope_of_parent_later(void *arg)
{
    inherited *i = arg;
    CHECK(FILCH_RUN(i->scope.pool, fib, 15) == 610);
    expect_owner_dead(i);
    CHECK(FILCH_RUN(i->scope.pool, fib, 15) == 610);
}

TEST(the_child_of_a_fork_gets_an_error_from_a_scope_of_its_parent)
{
    skip_without_threads_in_children();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        inherited *i = calloc(1, sizeof *i);
        open_scope(&i->scope, pool);
        for (int k = 0; k < 4; k++)
            assert_int_equal(filch_scope_spawn(NULL, &i->scope, count_after_gate, i), 0);

        ended at_once = run_in_child(use_scope_of_parent, i);
        ended later = run_in_child(use_scope_of_parent_later, i);

        filch_event_set(&i->gate);
        assert_int_equal(filch_scope_close(NULL, &i->scope), 0);
        assert_int_equal(counter_get(&i->c), 4);
        assert_exit_code(&at_once, 0);
        assert_exit_code(&later, 0);
        free(i);
        watched_pool_destroy(pool);
    }
}

static void fork_with_scope(filch_frame *f, void *arg)
{
    forking *work = arg;
    filch_scope scope, second;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        counter c = {0};
        alarm(CHILD_SECONDS);
        bool is_refused = filch_scope_spawn(f, &scope, count_in_scope, &c) == -EOWNERDEAD &&
                          filch_scope_close(f, &scope) == -EOWNERDEAD;
        bool is_not_opened = filch_scope_open(f, &second, NULL, NULL) == -EOWNERDEAD;
        _exit(!is_refused + 2 * !is_not_opened);
    }
    CHECK(waitpid(pid, &work->status, 0) == pid);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(the_child_of_a_task_that_forked_has_no_scopes)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        forking work = {pool, -1};

        assert_int_equal(filch_run(pool, fork_with_scope, &work), 0);

        assert_true(WIFEXITED(work.status));
        assert_int_equal(WEXITSTATUS(work.status), 0);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_of_a_fork_may_use_the_pool_it_inherited),
        cmocka_unit_test(the_child_of_a_fork_may_destroy_the_pool_it_inherited),
        cmocka_unit_test(the_child_of_a_child_may_use_the_pool_too),
        cmocka_unit_test(the_child_of_a_task_that_forked_gets_an_error_from_its_pool),
        cmocka_unit_test(the_child_of_a_task_that_forked_may_return_and_use_the_pool),
        cmocka_unit_test(the_child_of_a_fork_may_use_strands_that_were_in_use),
        cmocka_unit_test(children_of_a_busy_process_neither_hang_nor_disturb_it),
        cmocka_unit_test(a_cancelled_thread_rebuilds_the_pool_first),
        cmocka_unit_test(the_child_of_a_fork_may_open_a_scope_in_the_pool_it_inherited),
        cmocka_unit_test(the_child_of_a_fork_gets_an_error_from_a_scope_of_its_parent),
        cmocka_unit_test(the_child_of_a_task_that_forked_has_no_scopes),
    };
    return cmocka_run_group_tests_name("pool_fork", tests, watchdog_start, watchdog_stop);
}
