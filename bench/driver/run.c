/* SPDX-License-Identifier: MIT */
/* Run one program with a time limit, and read the line it prints. */
#define _GNU_SOURCE /* pipe2 */
#include "driver.h"

#include "../workloads/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LIMIT_SECONDS = 120,
    OUTPUT_MAX = 4096,
    EXIT_SKIP = 77,
    EXIT_NO_PROGRAM = 127,
};

/* TBB and OpenMP run a task on top of the waiting one, so their stacks get deep. */
#define PEER_STACK_BYTES ((rlim_t)512 << 20)
#define PEER_STACK_TEXT "512M"

typedef struct bench_child {
    pid_t pid;
    int fds[2]; /* its standard output and error */
    char output[2][OUTPUT_MAX];
    size_t length[2];
} bench_child;

static void set_failure(run_outcome *outcome, run_status status, const char *reason)
{
    outcome->status = status;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
}

static void raise_stack_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit))
        return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= PEER_STACK_BYTES)
        return;
    limit.rlim_cur = limit.rlim_max < PEER_STACK_BYTES ? limit.rlim_max : PEER_STACK_BYTES;
    setrlimit(RLIMIT_STACK, &limit);
}

/* The limit is also the default stack size of threads, so it would change the cost of creating a
 * filch pool. Only TBB and OpenMP get it. */
static bool needs_big_stack(bench_variant variant)
{
    return variant == VARIANT_TBB || variant == VARIANT_GOMP || variant == VARIANT_LIBOMP;
}

static void become(const char *path, char *const argv[], bench_variant variant,
                   const int write_fds[2], pid_t driver)
{
    /* If the driver is killed, kill the program, too: it would disturb the next measurement. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != driver)
        _exit(EXIT_FAILURE);

    dup2(write_fds[0], STDOUT_FILENO);
    dup2(write_fds[1], STDERR_FILENO);
    if (needs_big_stack(variant)) {
        raise_stack_limit();
        setenv("OMP_STACKSIZE", PEER_STACK_TEXT, 1);
        setenv("OMP_PROC_BIND", "false", 1);
    }
    execv(path, argv);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", path, strerror(errno));
    _exit(EXIT_NO_PROGRAM);
}

static int start(bench_child *child, const char *path, char *const argv[], bench_variant variant)
{
    int out[2];
    int err[2];
    pid_t driver = getpid();

    if (pipe2(out, O_CLOEXEC))
        return -errno;
    if (pipe2(err, O_CLOEXEC)) {
        int error = -errno;
        close(out[0]);
        close(out[1]);
        return error;
    }
    child->pid = fork();
    if (child->pid == 0)
        become(path, argv, variant, (int[2]){out[1], err[1]}, driver);

    int error = child->pid < 0 ? -errno : 0;
    close(out[1]);
    close(err[1]);
    child->fds[0] = out[0];
    child->fds[1] = err[0];
    if (error) {
        close(out[0]);
        close(err[0]);
    }
    return error;
}

/* Read from stream `i`; keep its first OUTPUT_MAX - 1 bytes. Returns false at its end. */
static bool read_some(bench_child *child, int i)
{
    char buffer[OUTPUT_MAX];
    ssize_t count = read(child->fds[i], buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
        return true;
    if (count <= 0)
        return false;
    size_t room = OUTPUT_MAX - 1 - child->length[i];
    size_t kept = (size_t)count < room ? (size_t)count : room;
    memcpy(child->output[i] + child->length[i], buffer, kept);
    child->length[i] += kept;
    child->output[i][child->length[i]] = '\0';
    return true;
}

static int left_ms(uint64_t deadline_ns)
{
    uint64_t now = probe_clock_ns();
    return now < deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : 0;
}

/* Read both streams to their ends, then reap the child. Returns false if time is up. */
static bool finish(bench_child *child, uint64_t deadline_ns, int *status)
{
    struct pollfd streams[2] = {
        {.fd = child->fds[0], .events = POLLIN},
        {.fd = child->fds[1], .events = POLLIN},
    };
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        int left = left_ms(deadline_ns);
        if (left == 0)
            return false;
        if (poll(streams, 2, left) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (streams[i].revents && !read_some(child, i))
                streams[i].fd = -1; /* poll ignores negative descriptors */
    }
    while (waitpid(child->pid, status, WNOHANG) != child->pid) {
        if (left_ms(deadline_ns) == 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
    }
    return true;
}

/* The last line of the program's standard error. */
static const char *last_line(bench_child *child)
{
    char *text = child->output[1];
    size_t length = child->length[1];
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    char *newline = strrchr(text, '\n');
    return newline ? newline + 1 : text;
}

static void describe_failure(bench_child *child, int status, run_outcome *outcome)
{
    char code[80];
    if (WIFSIGNALED(status))
        snprintf(code, sizeof code, "%s", strsignal(WTERMSIG(status)));
    else
        snprintf(code, sizeof code, "exit code %d", WEXITSTATUS(status));

    bool is_skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP;
    outcome->status = is_skipped ? RUN_SKIPPED : RUN_FAILED;
    const char *said = last_line(child);
    snprintf(outcome->reason, sizeof outcome->reason, "%s%s%.100s", code, *said ? ": " : "", said);
}

static bool parse_result(const char *text, bench_variant variant, const bench_work *work,
                         run_outcome *outcome)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "RESULT %s %s ", variant_names[variant], work->name);
    const char *line = strstr(text, prefix);
    if (!line)
        return false;
    line += strlen(prefix);

    uint64_t *f = outcome->figures;
    if (work->kind == WORK_WAKE)
        return sscanf(line, "%*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &f[0], &f[1], &f[2],
                      &f[3]) == 4;
    return sscanf(line, "%*u %" SCNu64 " %31s", &f[0], outcome->checksum) == 2;
}

void run_program(const char *folder, bench_variant variant, const bench_work *work, int workers,
                 long size, run_outcome *outcome)
{
    bench_child child = {.length = {0}};
    char path[PATH_MAX + 32];
    char workers_text[16];
    char size_text[24];
    int status = 0;

    *outcome = (run_outcome){.status = RUN_OK};
    snprintf(path, sizeof path, "%s/filch-bench-%s", folder, variant_names[variant]);
    snprintf(workers_text, sizeof workers_text, "%d", workers);
    snprintf(size_text, sizeof size_text, "%ld", size);
    char *const argv[] = {path, (char *)work->name, workers_text, size_text, NULL};

    if (access(path, X_OK)) {
        set_failure(outcome, RUN_MISSING, "not built");
        return;
    }
    int err = start(&child, path, argv, variant);
    if (err) {
        set_failure(outcome, RUN_FAILED, strerror(-err));
        return;
    }
    uint64_t deadline_ns = probe_clock_ns() + (uint64_t)LIMIT_SECONDS * 1000000000;
    if (!finish(&child, deadline_ns, &status)) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, &status, 0);
        set_failure(outcome, RUN_FAILED, "not done after 120 s");
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        describe_failure(&child, status, outcome);
    } else if (!parse_result(child.output[0], variant, work, outcome)) {
        set_failure(outcome, RUN_FAILED, "no RESULT line in its output");
    }
    close(child.fds[0]);
    close(child.fds[1]);
}
