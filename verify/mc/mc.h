/* SPDX-License-Identifier: MIT */
/*
 * The model checker, as a client sees it: run a small concurrent program in every way that C11
 * allows.
 *
 *     static filch_atomic_u32 ready;
 *     static int data;
 *
 *     static void writer(void) { data = 42; filch_store_release(&ready, 1); }
 *     static void reader(void)
 *     {
 *         if (filch_load_acquire(&ready))
 *             mc_check(data == 42, "the reader sees what was written");
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         mc_options options = mc_arguments(argc, argv);
 *         mc_program program = {.name = "message", .threads = {writer, reader}};
 *         return mc_report(mc_run(&program, &options));
 *     }
 *
 * Before each execution, the checker restores static variables to their values at mc_run, except
 * those marked MC_KEEP. While an execution runs, malloc() and free() are the model's.
 *
 * README.md has the memory model, the exploration, how a failure reads, and the limits.
 */
#ifndef MC_MC_H
#define MC_MC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_THREADS_MAX 8 /* with T0, which runs setup and finish */

/* A static variable of the client that keeps its value between executions: histograms, totals. */
#define MC_KEEP __attribute__((section("mc_keep")))

/* A function of the client that is not part of the program. */
#define MC_OUTSIDE __attribute__((no_sanitize_thread))

typedef struct mc_program {
    const char *name;
    void (*setup)(void);                   /* by T0, before the threads start; may be NULL */
    void (*threads[MC_THREADS_MAX])(void); /* T1, T2 ...; up to the first NULL */
    void (*finish)(void);                  /* by T0, after they have ended; may be NULL */
} mc_program;

typedef enum mc_mode {
    MC_FULL,    /* every execution, one of each kind (README.md: Exploration) */
    MC_BOUNDED, /* every execution with at most `preemptions`: 0, then 1 ... */
    MC_RANDOM,  /* `runs` executions, each with random choices */
} mc_mode;

#define MC_ALWAYS (~0u)

/* Zero means the default. */
typedef struct mc_options {
    mc_mode mode;
    bool no_reduction;    /* MC_FULL: every order of operations, to check the reduction itself */
    unsigned preemptions; /* MC_BOUNDED */
    unsigned stale;       /* MC_BOUNDED: loads that do not read the newest store; 0: any number */
    uint64_t runs, seed;  /* MC_RANDOM: 0 runs mean 1000 */

    /* How often the environment may interfere, per thread and execution. */
    unsigned spins;  /* pauses that return at once, before they wait for news; or MC_ALWAYS */
    unsigned faults; /* allocations, mappings and thread starts that may fail; or MC_ALWAYS do */
    unsigned fault_kinds;   /* of these, only 1 << FILCH_FAULT_THREAD ... [all] */
    bool is_setup_sound;    /* nothing fails in the program's setup and finish */
    unsigned spurious;      /* futex waits that return for no reason */
    unsigned timeouts;      /* futex waits with a time-out that run into it */
    uint64_t clock_step_ns; /* how far a call moves the thread's clock [25 us] */

    /* When to stop early: the verdict is then MC_STOPPED. */
    uint64_t max_executions;
    double max_seconds; /* of CPU time */
    unsigned max_steps; /* operations in one execution; more are a failure [20000] */

    bool check_leaks;    /* memory left at the end is a failure */
    bool allow_deadlock; /* an execution may end with all threads blocked */

    /* All threads sleep or have ended: is that a good end? Without this function, a thread left
     * asleep is a failure. It runs outside of the model: declare it MC_OUTSIDE and read words
     * directly. Each word has the value of its newest store. */
    bool (*may_rest)(void);

    unsigned part, parts;             /* only the programs part, part + parts ...; 0 parts: all */
    bool is_long;                     /* for clients: more programs, larger bounds */
    bool each_line;                   /* for clients: a report for each program */
    bool trace_all;                   /* print long executions from their beginning */
    bool quiet;                       /* do not print a failure */
    void (*each)(uint64_t execution); /* called with a fingerprint of each complete execution */
    const char *replay;               /* "name:choices": only this execution, of this program */
} mc_options;

typedef enum mc_verdict { MC_OK, MC_STOPPED, MC_SKIPPED, MC_FAILED } mc_verdict;

typedef struct mc_result {
    const char *name;
    mc_options options;
    mc_verdict verdict;
    uint64_t programs;   /* mc_add adds them up */
    unsigned threads;    /* at most, T0 not counted */
    uint64_t executions; /* that ran to their end */
    /* Left unfinished: another execution shows the same, or goes on after a time-out. */
    uint64_t blocked;
    uint64_t events;
    double seconds;
    char failure[320]; /* in words; empty: none */
    /* They replay the failure, and live until the next mc_run. NULL: the failure is that no
     * execution ran to its end. */
    char *choices;
} mc_result;

/* ---- running --------------------------------------------------------------------------------- */

/* Read the command line and the environment (MC_REPLAY); --help lists the options. */
mc_options mc_arguments(int argc, char **argv);

/* Explore a program. Prints a failure, unless quiet. */
mc_result mc_run(const mc_program *program, const mc_options *options);

/* For clients that run many programs: add up their results. The worst verdict wins. So does the
 * smaller bound, because it holds for all of them. */
void mc_add(mc_result *total, mc_result result);

/* Run a program and add its result. */
void mc_run_and_add(mc_result *total, const mc_program *program, const mc_options *options);

/* Bound the preemptions and the loads of old values; --long allows one more of each. A mode from
 * the command line has precedence. */
mc_options mc_bounded(mc_options options, unsigned preemptions, unsigned stale);

/* Print the one-line summary. Returns the exit code. */
int mc_report(mc_result result);

/* ---- in a program ---------------------------------------------------------------------------- */

#define mc_check(condition, text)                                                                  \
    ((condition) ? (void)0                                                                         \
                 : mc_fail("%s:%d: does not hold: %s (%s)", __FILE__, __LINE__, text, #condition))

/* End the execution as failed. */
__attribute__((noreturn, format(printf, 1, 2))) void mc_fail(const char *format, ...);

/* Return any number below `count`: the search tries all of them. */
unsigned mc_choose(unsigned count);

int mc_self(void);
int mc_spawn(void (*fn)(void *), void *argument);
void mc_join(int thread);

/* From here on the calling thread may die before any of its operations. */
void mc_may_crash(void);
bool mc_has_crashed(int thread);

/* A place for a breakpoint: called once when a failure is replayed or printed, on the stack of the
 * thread that failed. */
void mc_failed(const char *failure);

#endif
