/* SPDX-License-Identifier: MIT */
/*
 * Runs programs in child processes, ends those that hang, and makes failures small.
 */
#ifndef FILCH_TEST_ATTACK_SUPERVISE_H
#define FILCH_TEST_ATTACK_SUPERVISE_H

#include "attack.h"

#define DEFAULT_BUDGET 400u
#define DEFAULT_DEPTH 6u
#define DEFAULT_LIMIT_S 60u

typedef struct run {
    const char *program;
    settings first;
    unsigned count, seconds, jobs, limit_s, tries;
    bool keeps_going, prints;
} run;

/* A program in a child process. */
typedef struct trial {
    settings s;
    pid_t child; /* 0: none */
    board *b;
    FILE *output; /* what it writes to stderr */
    uint64_t start_ns, polled_ns, next_stop_ns;
    uint64_t progress, since_ns; /* operations, and the time of the last */
    uint64_t waited_ns, factor;  /* of a program without progress; 0: not measured yet */
    bool is_held, is_hung;
    bool is_brief; /* if it hangs, end it without a report of its threads */
    int status;    /* when it has ended */
} trial;

/* Start, and look at it now and then. trial_poll returns whether the program has ended. */
void trial_start(trial *t, const settings *s);
bool trial_poll(trial *t, unsigned limit_s);
bool trial_has_failed(const trial *t);
void trial_print(const trial *t, FILE *out);
void trial_print_program(const trial *t, FILE *out);
void trial_end(trial *t);

/* What a program that hangs does: backtraces and descriptors of its processes. */
void hang_report(pid_t group, FILE *out);

/* How long the threads of its processes have waited for a CPU. */
uint64_t hang_waited_ns(pid_t group);

/* The options that repeat a run with these settings. */
void print_command(const run *r, const settings *s, FILE *out);

/* Return the exit code. */
int run_seeds(run *r);
int shrink(run *r);

#endif
