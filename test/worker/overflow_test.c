/* SPDX-License-Identifier: MIT */
/*
 * Stack overflow: a pool with report_overflow names the strand; then SIGSEGV is handled as without
 * it.
 */
#include "child.h"

#define STACK_KIB 256

#ifdef TEST_ASAN
/* Keep AddressSanitizer's handler out of the way of the one under test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:use_sigaltstack=0";
}
#endif

/* Small frames, and frames larger than a page. */
typedef struct depth {
    unsigned frame_bytes;
    bool is_reported, is_submitted;
    int handled_by; /* the exit code of the program's own handler; 0: no handler */
} depth;

static volatile bool for_ever = true;

__attribute__((noinline)) static unsigned use_stack(unsigned frame_bytes)
{
    volatile char frame[frame_bytes];
    frame[0] = 1;
    unsigned below = for_ever ? use_stack(frame_bytes) : 0;
    return below + frame[0];
}

static void overflow(filch_frame *f TEST_UNUSED, void *arg)
{
    use_stack(((depth *)arg)->frame_bytes);
}

static int exit_code;

static void leave(int number TEST_UNUSED)
{
    _exit(exit_code);
}

static void leave_with_info(int number TEST_UNUSED, siginfo_t *info, void *context TEST_UNUSED)
{
    _exit(info->si_addr ? exit_code + 1 : exit_code);
}

static void overflow_in_pool(void *arg)
{
    const depth *d = arg;
    filch_options options = {.size = sizeof options,
                             .workers = 2,
                             .stack_bytes = STACK_KIB << 10,
                             .name = "shallow",
                             .report_overflow = d->is_reported};
    filch_pool *pool;

    exit_code = d->handled_by;
    if (exit_code) {
        struct sigaction action = {.sa_flags = SA_ONSTACK};
        if (exit_code % 2)
            action.sa_handler = leave;
        else
            action.sa_sigaction = leave_with_info, action.sa_flags |= SA_SIGINFO;
        CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    }
    CHECK(filch_pool_create(&pool, &options) == 0);
    if (d->is_submitted)
        CHECK(filch_submit(pool, overflow, arg) == 0 && filch_pool_wait(pool) == 0);
    else
        CHECK(filch_run(pool, overflow, arg) == 0);
}

static const unsigned frames[] = {16, 1000, 5000, 60000};

static bool has_message(const ended *c)
{
    return strstr(c->text, "strand") && strstr(c->text, "'shallow'") &&
           strstr(c->text, "256 KiB") && strstr(c->text, "overflow");
}

static void assert_message(bool is_submitted)
{
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        depth d = {frames[i], true, is_submitted, 0};

        ended c = run_in_child(overflow_in_pool, &d);

        assert_true(has_ended_by(&c, SIGSEGV));
        assert_true(has_message(&c));
    }
}

TEST(an_overflow_on_the_callers_thread_is_reported)
{
    assert_message(false);
}

TEST(an_overflow_on_a_thread_of_the_pool_is_reported)
{
    assert_message(true);
}

TEST(an_overflow_is_the_end_of_the_program_without_a_report_too)
{
    for (int is_submitted = 0; is_submitted < 2; is_submitted++) {
        depth d = {1000, false, is_submitted, 0};

        ended c = run_in_child(overflow_in_pool, &d);

        assert_true(has_ended_by(&c, SIGSEGV));
        assert_null(strstr(c.text, "filch:")); /* an emulator may print something else */
    }
}

TEST(a_handler_that_was_there_before_is_called_after_the_report)
{
    for (int is_submitted = 0; is_submitted < 2; is_submitted++) {
        depth plain = {1000, true, is_submitted, 31}, with_info = {1000, true, is_submitted, 32};

        ended by_plain = run_in_child(overflow_in_pool, &plain);
        ended by_info = run_in_child(overflow_in_pool, &with_info);

        assert_exit_code(&by_plain, 31);
        assert_true(has_message(&by_plain));
        assert_exit_code(&by_info, 33);
        assert_true(has_message(&by_info));
    }
}

/* Other faults are not reported as overflows. */
static void write_to_null(filch_frame *f TEST_UNUSED, void *arg)
{
    *(volatile char *)arg = 1;
}

static void fault_in_pool(void *arg)
{
    filch_options options = {.size = sizeof options, .workers = 1, .report_overflow = true};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    filch_run(pool, write_to_null, arg);
}

TEST(another_fault_is_not_called_an_overflow)
{
    ended c = run_in_child(fault_in_pool, (void *)(uintptr_t)8);

    assert_true(has_ended_by(&c, SIGSEGV));
    assert_null(strstr(c.text, "overflow"));
}

static bool is_same_action(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_flags == b->sa_flags && a->sa_handler == b->sa_handler;
}

static void do_nothing(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
}

static void compare_actions(void *arg TEST_UNUSED)
{
    struct sigaction before, now;
    stack_t stack_before, stack_now;
    filch_options quiet = {.size = sizeof quiet, .workers = 1};
    filch_options loud = {.size = sizeof loud, .workers = 1, .report_overflow = true};
    filch_pool *pool, *second;

    CHECK(sigaction(SIGSEGV, NULL, &before) == 0);
    CHECK(sigaltstack(NULL, &stack_before) == 0);

    /* Without the option, no handler is installed. */
    CHECK(filch_pool_create(&pool, &quiet) == 0);
    CHECK(filch_run(pool, do_nothing, NULL) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    CHECK(is_same_action(&before, &now));
    CHECK(filch_pool_destroy(pool) == 0);

    /* With the option, the handler stays until the last such pool is destroyed. */
    CHECK(filch_pool_create(&pool, &loud) == 0);
    CHECK(filch_pool_create(&second, &loud) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    CHECK(!is_same_action(&before, &now));
    CHECK(filch_run(pool, do_nothing, NULL) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    CHECK(!is_same_action(&before, &now));
    CHECK(filch_pool_destroy(second) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    CHECK(is_same_action(&before, &now));

    /* The signal stack of the calling thread is as before. */
    CHECK(sigaltstack(NULL, &stack_now) == 0);
    CHECK(stack_now.ss_flags == stack_before.ss_flags && stack_now.ss_sp == stack_before.ss_sp);
}

TEST(the_handler_is_there_only_while_a_pool_asked_for_it)
{
    ended c = run_in_child(compare_actions, NULL);
    assert_exit_code(&c, 0);
}

/* ---- fork() ---------------------------------------------------------------------------------- */

int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);

static bool is_held_up;
static latch is_installing, may_install;

/* The library calls this one. */
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    int err = __real_sigaction(number, action, before);

    if (is_held_up && number == SIGSEGV && action) {
        is_held_up = false;
        latch_open(&is_installing);
        latch_wait(&may_install);
    }
    return err;
}

static void *create_slowly(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 1, .report_overflow = true};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
    return NULL;
}

/* The child overflows a stack. Another thread of its parent is installing the handler. */
static void fork_while_installing(void *arg)
{
    pthread_t thread;
    int status;

    latch_init(&is_installing, 1);
    latch_init(&may_install, 1);
    is_held_up = true;
    CHECK(pthread_create(&thread, NULL, create_slowly, NULL) == 0);
    latch_wait(&is_installing);
    pid_t child = fork();
    if (child == 0) {
        child_kick();
        overflow_in_pool(arg);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    latch_open(&may_install);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(a_child_reports_an_overflow_once_though_its_parent_was_installing_the_handler)
{
    skip_without_threads_in_children();
    depth d = {1000, true, true, 0};

    ended c = run_in_child(fork_while_installing, &d);

    assert_exit_code(&c, 0);
    assert_true(has_message(&c));
    assert_null(strstr(strstr(c.text, "overflow") + 1, "overflow"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_on_the_callers_thread_is_reported),
        cmocka_unit_test(an_overflow_on_a_thread_of_the_pool_is_reported),
        cmocka_unit_test(an_overflow_is_the_end_of_the_program_without_a_report_too),
        cmocka_unit_test(a_handler_that_was_there_before_is_called_after_the_report),
        cmocka_unit_test(another_fault_is_not_called_an_overflow),
        cmocka_unit_test(the_handler_is_there_only_while_a_pool_asked_for_it),
        cmocka_unit_test(
            a_child_reports_an_overflow_once_though_its_parent_was_installing_the_handler),
    };
    return cmocka_run_group_tests_name("overflow", tests, watchdog_start, watchdog_stop);
}
