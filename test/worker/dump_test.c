/* SPDX-License-Identifier: MIT */
/*
 * A dump names the task, the object that it waits for, and its holder; and a signal asks for dumps,
 * also of programs that hang.
 */
#include "pool_support.h"

#include <errno.h>
#include <filch/filch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>

/* ---- support --------------------------------------------------------------------------------- */

static char *dump_of(filch_pool *pool)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    CHECK(out && filch_pool_dump(pool, out) == 0 && fclose(out) == 0);
    return text;
}

/* Does a dump of the pool contain this? */
__attribute__((format(printf, 2, 3))) static bool shows(filch_pool *pool, const char *format, ...)
{
    char wanted[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(wanted, sizeof wanted, format, arguments);
    va_end(arguments);
    char *text = dump_of(pool);
    bool is_there = strstr(text, wanted) != NULL;
    free(text);
    sched_yield();
    return is_there;
}

/* A pool, and a scope from outside for its tasks. */
typedef struct stage {
    filch_pool *pool;
    filch_scope scope;
} stage;

static void stage_open(stage *s)
{
    s->pool = watched_pool_of(2);
    assert_int_equal(filch_scope_open(NULL, &s->scope, s->pool, NULL), 0);
}

static void stage_close(stage *s)
{
    filch_scope_cancel(&s->scope);
    filch_scope_close(NULL, &s->scope);
    watched_pool_destroy(s->pool);
}

/* ---- tasks, objects and holders -------------------------------------------------------------- */

static filch_mutex first_mutex, second_mutex;
static counter locked;

static int lock_both(filch_frame *f, filch_mutex *one, filch_mutex *other)
{
    int err = filch_mutex_lock(f, one);

    counter_add(&locked, 1);
    while (!err && counter_get(&locked) < 2)
        filch_yield(f);
    if (!err && (err = filch_mutex_lock(f, other)) == 0)
        filch_mutex_unlock(other);
    filch_mutex_unlock(one);
    return err;
}

static __attribute__((noinline)) int go_left(filch_frame *f, void *arg TEST_UNUSED)
{
    return lock_both(f, &first_mutex, &second_mutex);
}

static __attribute__((noinline)) int go_right(filch_frame *f, void *arg TEST_UNUSED)
{
    return lock_both(f, &second_mutex, &first_mutex);
}

TEST(of_a_deadlock_it_names_the_tasks_the_mutexes_and_their_holders)
{
    stage s;
    unsigned left, right, holder;

    stage_open(&s);
    counter_set(&locked, 0);
    assert_int_equal(filch_scope_spawn(NULL, &s.scope, go_left, NULL), 0);
    assert_int_equal(filch_scope_spawn(NULL, &s.scope, go_right, NULL), 0);
    UNTIL(shows(s.pool, "[go_left] waits for a mutex at %p, held by", (void *)&second_mutex) &&
          shows(s.pool, "[go_right] waits for a mutex at %p, held by", (void *)&first_mutex));

    char *text = dump_of(s.pool);
    const char *tail = strstr(text, " [go_left] waits");
    assert_int_equal(
        sscanf(strstr(tail, "held by strand "), "held by strand %u [go_right]", &holder), 1);
    for (right = 0; !shows(s.pool, "strand %u [go_right] waits", right);)
        right++;
    for (left = 0; !shows(s.pool, "strand %u [go_left] waits", left);)
        left++;
    free(text);
    assert_int_equal(holder, right);
    assert_true(shows(s.pool, "held by strand %u [go_left]", left));
    stage_close(&s);
}

static int lock_a_mutex(filch_frame *f, void *arg)
{
    int err = filch_mutex_lock(f, arg);
    if (!err)
        filch_mutex_unlock(arg);
    return err;
}

TEST(a_mutex_that_a_thread_holds_has_no_strand_as_its_holder)
{
    filch_mutex mutex = {0};
    stage s;

    stage_open(&s);
    assert_true(filch_mutex_try_lock(&mutex));
    assert_int_equal(filch_scope_spawn(NULL, &s.scope, lock_a_mutex, &mutex), 0);
    UNTIL(
        shows(s.pool, "[lock_a_mutex] waits for a mutex at %p, held by a thread", (void *)&mutex));
    filch_mutex_unlock(&mutex);
    stage_close(&s);
}

static filch_event event;
static filch_sem sem;
static filch_future future = FILCH_FUTURE_INIT;
static filch_barrier barrier;
static filch_rwlock rwlock;
static filch_cond cond;
static filch_channel *channel;
static int pair[2];

static int wait_event(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_event_wait(f, &event);
}

static int wait_sem(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_sem_acquire(f, &sem);
}

static int wait_future(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_future_get(f, &future, NULL);
}

static int wait_barrier(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_barrier_wait(f, &barrier);
}

static int wait_to_write(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_rwlock_write_lock(f, &rwlock);
}

static int wait_cond(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_mutex mutex = {0};
    filch_mutex_lock(f, &mutex);
    int err = filch_cond_wait(f, &cond, &mutex);
    filch_mutex_unlock(&mutex);
    return err;
}

static int wait_channel(filch_frame *f, void *arg TEST_UNUSED)
{
    int entry;
    return filch_channel_receive(f, channel, &entry);
}

static int wait_select(filch_frame *f, void *arg TEST_UNUSED)
{
    int entry;
    filch_case cases[] = {filch_case_receive(channel, &entry), filch_case_future(&future)};
    return filch_select(f, cases, 2);
}

static int wait_recv(filch_frame *f, void *arg TEST_UNUSED)
{
    char byte;
    return (int)filch_recv(f, pair[0], &byte, 1, 0);
}

static int wait_sleep(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_sleep_ns(f, 3600000000000);
}

static int wait_scope(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_scope scope;
    int err = filch_scope_open(f, &scope, NULL, NULL);

    CHECK(err == 0 && filch_scope_spawn(f, &scope, wait_event, NULL) == 0 &&
          filch_scope_spawn(f, &scope, wait_sem, NULL) == 0);
    return filch_scope_close(f, &scope);
}

TEST(every_kind_of_wait_names_its_object)
{
    static filch_task_fn *const tasks[] = {wait_event,    wait_sem,   wait_future,  wait_barrier,
                                           wait_to_write, wait_cond,  wait_channel, wait_recv,
                                           wait_select,   wait_sleep, wait_scope};
    stage s;

    stage_open(&s);
    open_pair(pair);
    filch_sem_init(&sem, 0);
    filch_barrier_init(&barrier, 3);
    assert_int_equal(filch_rwlock_read_lock(NULL, &rwlock), 0);
    assert_int_equal(filch_channel_create(&channel, sizeof(int), 1), 0);
    for (unsigned i = 0; i < COUNT_OF(tasks); i++)
        assert_int_equal(filch_scope_spawn(NULL, &s.scope, tasks[i], NULL), 0);

    UNTIL(shows(s.pool, "[wait_event] waits for an event at %p", (void *)&event));
    UNTIL(shows(s.pool, "[wait_sem] waits for a semaphore at %p", (void *)&sem));
    UNTIL(shows(s.pool, "[wait_future] waits for a future at %p", (void *)&future));
    UNTIL(shows(s.pool, "[wait_barrier] waits for a barrier at %p, where 1 of 3 have arrived",
                (void *)&barrier));
    UNTIL(shows(s.pool, "[wait_to_write] waits for a lock, to write at %p, held by 1 reader\n",
                (void *)&rwlock));
    UNTIL(shows(s.pool, "[wait_cond] waits for a condition at %p", (void *)&cond));
    UNTIL(shows(s.pool, "[wait_channel] waits for a channel, to receive at %p", (void *)channel));
    UNTIL(shows(s.pool, "[wait_recv] waits for recv of descriptor %d", pair[0]));
    UNTIL(shows(s.pool, "[wait_select] waits for select among 2"));
    UNTIL(shows(s.pool, "[wait_sleep] waits for sleep, 35") ||
          shows(s.pool, "[wait_sleep] waits for sleep, 3600.000 s more"));
    UNTIL(shows(s.pool, "[wait_scope] waits for the tasks of a scope at 0x") &&
          shows(s.pool, ", with 2 tasks that have not ended"));

    filch_rwlock_unlock(&rwlock);
    stage_close(&s);
    filch_channel_destroy(channel);
    close(pair[0]);
    close(pair[1]);
}

static int wait_small_scope(filch_frame *f, void *arg TEST_UNUSED)
{
    filch_scope scope;
    int err = filch_scope_open(f, &scope, NULL, NULL);

    CHECK(err == 0 && filch_scope_spawn(f, &scope, wait_event, NULL) == 0);
    return filch_scope_close(f, &scope);
}

static void run_one(filch_frame *f, void *pool)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, wait_small_scope, NULL) == 0);
    while (!shows(pool, ", with 1 task that has not ended\n"))
        filch_yield(f);
    CHECK(shows(pool, "': 1 worker, 0 asleep; 1 task from outside, 0 waiting to run\n"));
    filch_scope_cancel(&scope);
    filch_scope_close(f, &scope);
}

TEST(one_of_something_is_in_the_singular)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_run(pool, run_one, pool), 0);
    watched_pool_destroy(pool);
}

/* ---- stolen tasks ---------------------------------------------------------------------------- */

typedef struct stolen {
    latch begins, ends;
} stolen;

FILCH_TASK(void, slow_child, (stolen *, s))
{
    latch_open(&s->begins);
    latch_wait(&s->ends);
}

FILCH_TASK(void, fork_with_macro, (stolen *, s))
{
    FILCH_FORK(child, slow_child, s);
    while (!latch_is_open(&s->begins))
        filch_yield(FILCH_HERE);
    FILCH_JOIN(child);
}

static void slow_plain(filch_frame *f TEST_UNUSED, void *arg)
{
    stolen *s = arg;
    latch_open(&s->begins);
    latch_wait(&s->ends);
}

static void fork_plain(filch_frame *f, void *arg)
{
    stolen *s = arg;
    filch_frame *mark = f;

    f = filch_fork(f, slow_plain, s);
    while (!latch_is_open(&s->begins))
        filch_yield(f);
    filch_join(f, mark);
}

static int run_fork_with_macro(filch_frame *f, void *arg)
{
    FILCH_CALL_ON(f, fork_with_macro, arg);
    return 0;
}

static int run_fork_plain(filch_frame *f, void *arg)
{
    fork_plain(f, arg);
    return 0;
}

static void check_stolen(filch_task_fn *fn, const char *parent, const char *child)
{
    stage s;
    stolen tasks;
    char waits[100], steals[100];

    latch_init(&tasks.begins, 1);
    latch_init(&tasks.ends, 1);
    stage_open(&s);
    assert_int_equal(filch_scope_spawn(NULL, &s.scope, fn, &tasks), 0);

    snprintf(waits, sizeof waits, " [%s] waits for a stolen task at 0x", parent);
    UNTIL(shows(s.pool, "%s", waits));
    char *text = dump_of(s.pool);
    unsigned worker, forker;
    const char *line = strstr(text, waits);
    snprintf(steals, sizeof steals, " [%s], which runs on worker ", child);
    assert_non_null(strstr(line, steals));
    worker = (unsigned)atoi(strstr(line, steals) + strlen(steals));
    for (forker = 0; !shows(s.pool, "strand %u%s", forker, waits);)
        forker++;
    assert_true(
        shows(s.pool, " [%s, stolen from strand %u] runs on worker %u\n", child, forker, worker));

    free(text);
    latch_open(&tasks.ends);
    stage_close(&s);
}

TEST(a_join_names_the_stolen_task_and_the_worker_that_runs_it)
{
    check_stolen(run_fork_with_macro, "run_fork_with_macro", "slow_child");
    check_stolen(run_fork_plain, "run_fork_plain", "slow_plain");
}

static void slow_job(filch_frame *f TEST_UNUSED, void *arg)
{
    slow_plain(f, arg);
}

/* The arguments of a task that calls filch_run on another pool. */
typedef struct nested {
    filch_pool *inner;
    stolen *tasks;
} nested;

static int run_inside(filch_frame *f TEST_UNUSED, void *arg)
{
    nested *n = arg;
    return filch_run(n->inner, slow_job, n->tasks);
}

TEST(a_filch_run_names_its_function)
{
    stage s;
    stolen tasks;
    /* Its only worker is busy, so the run waits. */
    filch_pool *inner = watched_pool_of(1);
    nested n = {inner, &tasks};

    latch_init(&tasks.begins, 2);
    latch_init(&tasks.ends, 1);
    stage_open(&s);
    assert_int_equal(filch_submit(inner, slow_plain, &tasks), 0);
    UNTIL(shows(inner, " [slow_plain] runs on worker 0"));
    assert_int_equal(filch_scope_spawn(NULL, &s.scope, run_inside, &n), 0);

    UNTIL(shows(s.pool, " [run_inside] waits for a filch_run at 0x") &&
          shows(s.pool, " [slow_job]"));

    latch_open(&tasks.ends);
    stage_close(&s);
    watched_pool_destroy(inner);
}

/* ---- the signal ------------------------------------------------------------------------------ */

/* Read what the process writes to its standard error, up to the end of a dump. */
static void read_dump(int fd, char *text, size_t room)
{
    size_t length = 0;

    text[0] = '\0';
    while (!strstr(text, "filch: end of the dump\n")) {
        CHECK(length + 1 < room);
        ssize_t got = read(fd, text + length, room - 1 - length);
        CHECK(got > 0);
        length += (size_t)got;
        text[length] = '\0';
    }
}

/* The standard error goes into a pipe, from which `fd` reads. */
static int catch_stderr(int *saved)
{
    int ends[2];

    CHECK(pipe(ends) == 0);
    *saved = dup(STDERR_FILENO);
    CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

static int never[2];

static void block_in_the_kernel(filch_frame *f TEST_UNUSED, void *arg)
{
    char byte;
    latch_open(arg);
    CHECK(read(never[0], &byte, 1) == 1);
}

/* All workers block in the kernel, and all threads of the program block the signal. ThreadSanitizer
 * may postpone the handler for as long as the keeper sleeps: then another signal helps. */
static void dump_a_hang(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2, .name = "hangs"};
    filch_pool *pool, *other;
    char text[4096];
    latch both;
    sigset_t set;
    int saved, caught = catch_stderr(&saved);
    struct pollfd readable = {.fd = caught, .events = POLLIN};

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    CHECK(pipe(never) == 0);
    latch_init(&both, 2);
    CHECK(filch_pool_create(&pool, &options) == 0);
    options.name = "idles";
    CHECK(filch_pool_create(&other, &options) == 0);
    CHECK(filch_submit(pool, block_in_the_kernel, &both) == 0);
    CHECK(filch_submit(pool, block_in_the_kernel, &both) == 0);
    latch_wait(&both);

    for (int i = 0; i < 3; i++) {
        do
            CHECK(kill(getpid(), SIGUSR1) == 0);
        while (poll(&readable, 1, 1000) == 0);
        read_dump(caught, text, sizeof text);
        CHECK(strstr(text, "pool 'hangs': 2 workers"));
        CHECK(strstr(text, " [block_in_the_kernel] runs on worker 0"));
        CHECK(strstr(text, " [block_in_the_kernel] runs on worker 1"));
        CHECK(strstr(text, "pool 'idles': 2 workers"));
    }
    CHECK(write(never[1], "xx", 2) == 2);
    CHECK(filch_pool_destroy(pool) == 0 && filch_pool_destroy(other) == 0);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(a_signal_dumps_all_pools_also_when_they_hang)
{
#ifdef TEST_TSAN
    skip(); /* it may postpone the handler for as long as the keeper sleeps */
#endif
    ended c = run_in_child(dump_a_hang, NULL);
    assert_exit_code(&c, 0);
}

static counter handled;

static void handle(int number TEST_UNUSED)
{
    counter_add(&handled, 1);
}

static void switch_it(void *arg TEST_UNUSED)
{
    char text[4096];
    int saved, caught = catch_stderr(&saved);

    CHECK(signal(SIGUSR1, handle) != SIG_ERR && signal(SIGUSR2, handle) != SIG_ERR);
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    CHECK(filch_dump_on_signal(SIGUSR2) == 0);
    /* An error changes nothing. */
    CHECK(filch_dump_on_signal(SIGKILL) == -EINVAL);
    CHECK(raise(SIGUSR1) == 0 && counter_get(&handled) == 1);
    CHECK(raise(SIGUSR2) == 0 && counter_get(&handled) == 1);
    CHECK(filch_dump_on_signal(0) == 0);
    read_dump(caught, text, sizeof text);
    CHECK(raise(SIGUSR2) == 0 && counter_get(&handled) == 2);

    static const int wrong[] = {-1, SIGKILL, SIGSEGV, SIGURG, 1000};
    for (unsigned i = 0; i < COUNT_OF(wrong); i++)
        CHECK(filch_dump_on_signal(wrong[i]) == -EINVAL);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(another_signal_can_be_chosen_and_the_handler_before_is_restored)
{
    ended c = run_in_child(switch_it, NULL);
    assert_exit_code(&c, 0);
}

static void come_and_go(void *arg TEST_UNUSED)
{
    int saved, null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    saved = dup(STDERR_FILENO);
    CHECK(dup2(null, STDERR_FILENO) == STDERR_FILENO);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    for (int i = 0; i < 50; i++) {
        filch_options options = {.size = sizeof options, .workers = 2};
        filch_pool *pool, *other;
        counter c = {0};

        CHECK(filch_pool_create(&pool, &options) == 0);
        CHECK(filch_pool_create(&other, &options) == 0);
        CHECK(filch_submit(pool, tree_of_depth_8, &c) == 0);
        CHECK(raise(SIGUSR1) == 0);
        CHECK(filch_run(other, tree_of_depth_8, &c) == 0);
        CHECK(filch_pool_destroy(i % 2 ? pool : other) == 0);
        CHECK(raise(SIGUSR1) == 0);
        CHECK(filch_pool_destroy(i % 2 ? other : pool) == 0);
        CHECK(counter_get(&c) == 2 * TREE_8);
    }
    CHECK(filch_dump_on_signal(0) == 0);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(pools_may_come_and_go_while_they_are_dumped)
{
    ended c = run_in_child(come_and_go, NULL);
    assert_exit_code(&c, 0);
}

/* Nobody reads the standard error, which is a full pipe. */
static void dump_into_a_full_pipe(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool, *other;
    char bytes[512] = {0};
    int saved, caught = catch_stderr(&saved), status;

    CHECK(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK) == 0);
    while (write(STDERR_FILENO, bytes, sizeof bytes) > 0)
        ;
    CHECK(fcntl(STDERR_FILENO, F_SETFL, 0) == 0);
    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(raise(SIGUSR1) == 0);

    /* None of these waits for the reader for ever. */
    CHECK(filch_pool_create(&other, &options) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(filch_pool_destroy(other));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(filch_pool_destroy(other) == 0);
    CHECK(filch_dump_on_signal(0) == 0);
    close(caught);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
}

TEST(a_dump_that_nobody_reads_keeps_no_thread)
{
    ended c = run_in_child(dump_into_a_full_pipe, NULL);
    assert_exit_code(&c, 0);
}

/* _Fork() calls no handlers of fork(). */
static void switch_off_in_a_child(void *arg TEST_UNUSED)
{
    int status;

    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    pid_t pid = _Fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(filch_dump_on_signal(0));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(filch_dump_on_signal(0) == 0);
}

TEST(the_child_of_a_fork_without_handlers_may_switch_dumps_off)
{
#ifdef TEST_TSAN
    skip(); /* it takes the locks and threads of the parent for those of the child */
#endif
    ended c = run_in_child(switch_off_in_a_child, NULL);
    assert_exit_code(&c, 0);
}

/* A child has the thread again when it uses a pool, and says which pools it has not used. */
static void dump_in_a_child(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2, .name = "used"};
    filch_pool *used, *unused;
    char text[4096];
    counter c = {0};
    int status;

    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    CHECK(filch_pool_create(&used, &options) == 0);
    options.name = "unused";
    CHECK(filch_pool_create(&unused, &options) == 0);
    CHECK(filch_run(used, tree_of_depth_8, &c) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int saved, caught = catch_stderr(&saved);
        CHECK(filch_run(used, tree_of_depth_8, &c) == 0);
        CHECK(raise(SIGUSR1) == 0);
        read_dump(caught, text, sizeof text);
        CHECK(strstr(text, "pool 'used': 2 workers"));
        CHECK(strstr(text, "pool 'unused': not used since fork()"));
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(filch_pool_destroy(used) == 0 && filch_pool_destroy(unused) == 0);
}

TEST(a_signal_dumps_also_in_a_forked_child)
{
    skip_without_threads_in_children();
    ended c = run_in_child(dump_in_a_child, NULL);
    assert_exit_code(&c, 0);
}

/* The child uses only a pool of its own. The program had a pool before the fork(), or none. */
static void dump_a_new_pool_in_a_child(void *had_pool)
{
    filch_options options = {.size = sizeof options, .workers = 2, .name = "new"};
    filch_pool *old, *pool;
    char text[4096];
    int status;

    CHECK(filch_dump_on_signal(SIGUSR1) == 0);
    if (had_pool)
        CHECK(filch_pool_create(&old, NULL) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int saved, caught = catch_stderr(&saved);
        CHECK(filch_pool_create(&pool, &options) == 0);
        CHECK(raise(SIGUSR1) == 0);
        read_dump(caught, text, sizeof text);
        CHECK(strstr(text, "pool 'new': 2 workers"));
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (had_pool)
        CHECK(filch_pool_destroy(old) == 0);
}

TEST(a_signal_dumps_also_a_new_pool_of_a_forked_child)
{
    skip_without_threads_in_children();
    ended c = run_in_child(dump_a_new_pool_in_a_child, NULL);
    assert_exit_code(&c, 0);
    c = run_in_child(dump_a_new_pool_in_a_child, "");
    assert_exit_code(&c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_deadlock_it_names_the_tasks_the_mutexes_and_their_holders),
        cmocka_unit_test(a_mutex_that_a_thread_holds_has_no_strand_as_its_holder),
        cmocka_unit_test(every_kind_of_wait_names_its_object),
        cmocka_unit_test(one_of_something_is_in_the_singular),
        cmocka_unit_test(a_join_names_the_stolen_task_and_the_worker_that_runs_it),
        cmocka_unit_test(a_filch_run_names_its_function),
        cmocka_unit_test(a_signal_dumps_all_pools_also_when_they_hang),
        cmocka_unit_test(another_signal_can_be_chosen_and_the_handler_before_is_restored),
        cmocka_unit_test(pools_may_come_and_go_while_they_are_dumped),
        cmocka_unit_test(a_dump_that_nobody_reads_keeps_no_thread),
        cmocka_unit_test(the_child_of_a_fork_without_handlers_may_switch_dumps_off),
        cmocka_unit_test(a_signal_dumps_also_in_a_forked_child),
        cmocka_unit_test(a_signal_dumps_also_a_new_pool_of_a_forked_child),
    };
    return cmocka_run_group_tests_name("dump", tests, watchdog_start, watchdog_stop);
}
