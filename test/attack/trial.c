/* SPDX-License-Identifier: MIT */
/*
 * A program in a child process: start, watch, stop and continue, end when it hangs.
 */
#include "supervise.h"

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
    /* relaxed: for reports. */
    filch_store_relaxed(&t->b->stage, "starting");
    t->start_ns = t->since_ns = t->polled_ns = filch_now_ns();
    fflush(NULL);
    t->child = fork();
    if (t->child < 0) {
        perror("attack: fork");
        exit(2);
    }
    if (t->child > 0) {
        /* The child does so, too: whoever is first, the group is there for kill(). */
        setpgid(t->child, t->child);
        return;
    }
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

/* ---- watch ----------------------------------------------------------------------------------- */

#define SECOND_NS 1000000000ull
#define LOAD_FACTOR_MAX 5
#define TOO_LONG 10 /* times the limit of a hang */

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

static uint64_t load_factor(void)
{
    double load = 0, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

    if (getloadavg(&load, 1) != 1 || load < 2 * cpus)
        return 2;
    return load > LOAD_FACTOR_MAX * cpus ? LOAD_FACTOR_MAX : (uint64_t)(load / cpus);
}

/* A program that gets no CPU is given more time than one that waits for itself. How long its
 * threads wait for a CPU is measured in the second half of the limit. */
static bool is_hanging(trial *t, uint64_t limit_ns, uint64_t now_ns)
{
    uint64_t idle_ns = now_ns - t->since_ns;

    if (now_ns - t->start_ns > TOO_LONG * limit_ns)
        return true;
    if (idle_ns > limit_ns / 2 && !t->waited_ns)
        t->waited_ns = 1 + hang_waited_ns(t->child);
    if (idle_ns <= limit_ns)
        return false;
    if (!t->factor) {
        bool is_starved = hang_waited_ns(t->child) > t->waited_ns + limit_ns / 8;
        t->factor = is_starved ? load_factor() : 1;
    }
    return idle_ns > limit_ns * t->factor;
}

/* Not for ever: a process may be stuck in the kernel. */
static bool reap(trial *t, unsigned seconds)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    uint64_t end_ns = filch_now_ns() + seconds * SECOND_NS;

    while (waitpid(t->child, &t->status, WNOHANG) != t->child) {
        if (filch_now_ns() > end_ns)
            return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

static void end_hang(trial *t, uint64_t now_ns)
{
    t->is_hung = true;
    kill(-t->child, SIGCONT);
    if (!t->is_brief) {
        /* relaxed: for the report. */
        fprintf(t->output, "no progress for %llu s while %s, after %llu operations and %llu s\n",
                (unsigned long long)((now_ns - t->since_ns) / SECOND_NS),
                filch_load_relaxed(&t->b->stage), (unsigned long long)get(&t->b->progress) / 2,
                (unsigned long long)((now_ns - t->start_ns) / SECOND_NS));
        fflush(t->output);
        hang_report(t->child, t->output);
        /* The dump may need a lock that a thread holds for ever. */
        kill(t->child, SIGUSR2);
        sleep(3);
    }
    kill(-t->child, SIGKILL);
    kill(t->child, SIGKILL);
    if (!reap(t, 10))
        fprintf(t->output, "SIGKILL did not end it\n");
}

bool trial_poll(trial *t, unsigned limit_s)
{
    uint64_t now_ns = filch_now_ns(), progress = get(&t->b->progress);

    if (waitpid(t->child, &t->status, WNOHANG) == t->child) {
        /* Its own children, if it has left some. */
        kill(-t->child, SIGKILL);
        return true;
    }
    /* Time in which the supervisor did not look does not count. It reported another hang, or was
     * stopped itself; meanwhile the program was perhaps held. */
    if (now_ns - t->polled_ns > SECOND_NS) {
        t->since_ns += now_ns - t->polled_ns;
        t->start_ns += now_ns - t->polled_ns;
    }
    t->polled_ns = now_ns;
    stop_and_continue(t, now_ns);
    if (progress != t->progress) {
        t->progress = progress;
        t->since_ns = now_ns;
        t->waited_ns = 0;
        t->factor = 0;
    }
    if (!is_hanging(t, limit_s * SECOND_NS, now_ns))
        return false;
    end_hang(t, now_ns);
    return true;
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
    fprintf(out, "Not ended:\n");
    if (record_print(&t->b->record, true, 60, out) == 0)
        fprintf(out, "    no operation\n");
    rewind(t->output);
    for (unsigned i = 0; i < 400 && fgets(line, sizeof line, t->output); i++)
        fprintf(out, "  %s", line);
}

/* The surroundings are one line, in parts that a semicolon ends. */
void trial_print_program(const trial *t, FILE *out)
{
    char config[sizeof t->b->config];
    char *rest = config, *line;

    memcpy(config, t->b->config, sizeof config);
    fprintf(out, "\n/* The program of seed %llu.\n", (unsigned long long)t->s.seed);
    while ((line = strsep(&rest, ";")))
        fprintf(out, " * %s\n", line + strspn(line, " "));
    fprintf(out, " */\n{\n");
    record_print(&t->b->record, false, UINT32_MAX, out);
    fprintf(out, "}\n\n");
}

void trial_end(trial *t)
{
    munmap(t->b, sizeof *t->b);
    fclose(t->output);
    t->child = 0;
}
