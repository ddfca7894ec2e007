/* SPDX-License-Identifier: MIT */
/*
 * Tests in a child process: those that end the program on purpose, and those whose hang must not
 * keep the other tests from running.
 */
#ifndef FILCH_TEST_CHILD_H
#define FILCH_TEST_CHILD_H

#include "watchdog.h"

#include <sys/resource.h>
#include <sys/wait.h>

/* How a child ended, and its output on standard error. */
typedef struct ended {
    int status;
    char text[4096];
} ended;

/* A child without progress for so long hangs. No correct child needs it on a loaded machine. */
#define CHILD_SECONDS 900

/* A child that does many things calls this after each of them. */
static TEST_UNUSED void child_kick(void)
{
    alarm(CHILD_SECONDS);
}

/* Report the watched pools of the child, then let SIGALRM end it. A second alarm ends a report that
 * hangs. */
static void report_and_end(int number)
{
    alarm(CHILD_SECONDS);
    fprintf(stderr, "no progress for %d seconds\n", CHILD_SECONDS);
    watchdog_report_all();
    raise(number);
}

/*
 * Run fn(arg) in a child process. The child exits with code 0 when fn returns. A child hangs if it
 * neither ends nor calls child_kick for CHILD_SECONDS; then SIGALRM ends it.
 *
 * The watchdog is stopped meanwhile: ThreadSanitizer does not let a child start threads when its
 * parent had some.
 */
static TEST_UNUSED ended run_in_child(void (*fn)(void *arg), void *arg)
{
    ended c = {.status = -1};
    int ends[2];

    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    watchdog_stop(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        /* cmocka and the sanitizers have set handlers of their own. */
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        struct sigaction once = {.sa_handler = report_and_end,
                                 .sa_flags = SA_RESETHAND | SA_NODEFER};
        sigaction(SIGALRM, &once, NULL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(CHILD_SECONDS);
        fn(arg);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (;;) {
        char rest[256];
        bool is_full = length + 1 >= sizeof c.text;
        ssize_t got = is_full ? read(ends[0], rest, sizeof rest)
                              : read(ends[0], c.text + length, sizeof c.text - 1 - length);
        if (got <= 0)
            break;
        length += is_full ? 0 : (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(waitpid(pid, &c.status, 0), pid);
    assert_int_equal(watchdog_start(NULL), 0);
    return c;
}

/* For tests in which the child of a process with threads starts threads. ThreadSanitizer confuses
 * these with threads that the child did not inherit. With AddressSanitizer, a lock of its allocator
 * stays held in the child if a thread of the parent was just starting. The emulator fails one of
 * its own assertions. */
static TEST_UNUSED void skip_without_threads_in_children(void)
{
#if defined(TEST_TSAN) || defined(TEST_ASAN) || defined(TEST_EMULATED)
    print_message("here, no threads in the child of a process with threads\n");
    skip();
#endif
}

static TEST_UNUSED bool has_ended_by(const ended *c, int signal_number)
{
    return WIFSIGNALED(c->status) && WTERMSIG(c->status) == signal_number;
}

static TEST_UNUSED void assert_exit_code(const ended *c, int code)
{
    if (!WIFEXITED(c->status) || WEXITSTATUS(c->status) != code)
        fail_msg("expected exit code %d; it was %s %d, and it wrote: %s", code,
                 WIFEXITED(c->status) ? "exit code" : "signal",
                 WIFEXITED(c->status) ? WEXITSTATUS(c->status) : WTERMSIG(c->status), c->text);
}

#endif
