/* SPDX-License-Identifier: MIT */
/*
 * A program in a child process: start, watch, stop and continue, end when it hangs.
 */
#include "supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#if ATTACK_TSAN
/* The supervisor has one thread, so its child may start some. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0:report_thread_leaks=0";
}
#endif

void trial_start(trial *t, const settings *s)
{
    *t = (trial){.s = *s};
    t->b = mmap(NULL, sizeof *t->b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    t->output = tmpfile();
    if (t->b == MAP_FAILED || !t->output) {
        perror("attack");
        exit(2);
    }
    t->since_ns = filch_now_ns();
    fflush(NULL);
    t->child = fork();
    if (t->child < 0) {
        perror("attack: fork");
        exit(2);
    }
    if (t->child > 0)
        return;
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!s->is_traced)
        dup2(fileno(t->output), STDERR_FILENO);
    the_board = t->b;
    program_run(&t->s);
    exit(0);
}

/* ---- reports about a hang -------------------------------------------------------------------- */

/* Each process of the program's group, which may have children. */
static void each_process(pid_t group, void (*fn)(pid_t process, FILE *out), FILE *out)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;

    while (proc && (entry = readdir(proc))) {
        pid_t process = (pid_t)atoi(entry->d_name);
        if (process > 0 && getpgid(process) == group)
            fn(process, out);
    }
    if (proc)
        closedir(proc);
}

/* A pipe whose end is still open somewhere explains many a wait. */
static void print_descriptors(pid_t process, FILE *out)
{
    char path[300], target[200];
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *folder = opendir(path);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", process, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 0)
            fprintf(out, "fd %s: %.*s\n", entry->d_name, (int)length, target);
    }
    if (folder)
        closedir(folder);
}

static void print_backtraces(pid_t process, FILE *out)
{
    char command[200], line[1000];

    snprintf(command, sizeof command,
             "timeout 60 gdb /proc/%d/exe -p %d -batch -ex 'set pagination off' -ex 'thread apply "
             "all bt 25' "
             "2>/dev/null | grep -E '^(#|Thread)'",
             process, process);
    fprintf(out, "---- process %d\n", process);
    FILE *gdb = popen(command, "r");
    while (gdb && fgets(line, sizeof line, gdb))
        fputs(line, out);
    if (gdb)
        pclose(gdb);
    print_descriptors(process, out);
}

static void end_hang(trial *t)
{
    /* relaxed: for the report. */
    fprintf(t->output, "no progress while %s, after %llu operations\n",
            filch_load_relaxed(&t->b->stage), (unsigned long long)get(&t->b->progress) / 2);
    fflush(t->output);
    kill(-t->child, SIGCONT);
    each_process(t->child, print_backtraces, t->output);
    fflush(t->output);
    /* The dump may need a lock that a thread holds for ever. */
    kill(t->child, SIGUSR2);
    sleep(3);
    kill(-t->child, SIGKILL);
    t->is_hung = true;
    waitpid(t->child, &t->status, 0);
}

/* ---- watch ----------------------------------------------------------------------------------- */

static double load_factor(void)
{
    double load = 0, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

    if (getloadavg(&load, 1) != 1 || load < cpus)
        return 1;
    return load / cpus;
}

/* Stop the process for some milliseconds, again and again. */
static void stop_and_continue(trial *t, uint64_t now_ns)
{
    /* relaxed: set once. */
    if (!filch_load_relaxed(&t->b->is_stopped) || now_ns < t->next_stop_ns)
        return;
    t->is_held = !t->is_held;
    kill(-t->child, t->is_held ? SIGSTOP : SIGCONT);
    t->next_stop_ns = now_ns + (t->is_held ? 5000000 : 20000000);
}

bool trial_poll(trial *t, unsigned limit_s)
{
    uint64_t now_ns = filch_now_ns(), progress = get(&t->b->progress);

    if (waitpid(t->child, &t->status, WNOHANG) == t->child) {
        /* Its own children, if it has left some. */
        kill(-t->child, SIGKILL);
        return true;
    }
    stop_and_continue(t, now_ns);
    if (progress != t->progress) {
        t->progress = progress;
        t->since_ns = now_ns;
    } else if ((double)(now_ns - t->since_ns) > limit_s * 1e9 * load_factor()) {
        end_hang(t);
        return true;
    }
    return false;
}

bool trial_has_failed(const trial *t)
{
    return t->is_hung || !WIFEXITED(t->status) || WEXITSTATUS(t->status) != 0;
}

void trial_print(const trial *t, FILE *out)
{
    char line[1000];

    fprintf(out, "seed %llu: %s", (unsigned long long)t->s.seed, t->b->config);
    if (t->is_hung)
        fprintf(out, "\nIt hangs.\n");
    else if (WIFSIGNALED(t->status))
        fprintf(out, "\nSignal %d ended it (%s).\n", WTERMSIG(t->status),
                strsignal(WTERMSIG(t->status)));
    else
        fprintf(out, "\nIt exited with code %d.\n", WEXITSTATUS(t->status));
    rewind(t->output);
    for (unsigned i = 0; i < 400 && fgets(line, sizeof line, t->output); i++)
        fprintf(out, "  %s", line);
}

void trial_end(trial *t)
{
    munmap(t->b, sizeof *t->b);
    fclose(t->output);
    t->child = 0;
}
