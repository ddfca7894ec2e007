/* SPDX-License-Identifier: MIT */
/*
 * What the kernel does with an idle pool: the CPU time it uses, and how soon it is awake again.
 * Shared by all variants, so that they are measured by the same code.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How long every program works before it is measured: threads have started by then, also those that
 * start only when there is something to steal, and the cores run at full speed. The serial twin
 * does it too, for the cores. */
enum { PROBE_WARM_UP_NS = 20 * 1000 * 1000 };

/* Monotonic time. */
uint64_t probe_clock_ns(void);

/* The CPU time that all threads of the process use while the caller sleeps. */
uint64_t probe_idle(long duration_ms);

/* Median and 99th percentile, from the submit of a task to its first instruction, and
 * likewise for a thread that sleeps on a futex, woken without any runtime. */
typedef struct probe_wake_figures {
    uint64_t median_ns;
    uint64_t p99_ns;
    uint64_t bare_median_ns;
    uint64_t bare_p99_ns;
} probe_wake_figures;

/* Submit a task that calls probe_wake_started() to the pool behind `context`. */
typedef void probe_submit_fn(void *context);

/*
 * Take `sample_count` samples of the pool and as many of the bare futex, in turn, with gaps of 1 ms
 * in which all threads fall asleep.
 *
 * The caller sleeps until the task has started. If it kept its core busy, the figure would be
 * the scheduler's: Linux may queue the woken thread on the waker's core, though another one is
 * idle, and then leaves it there for the rest of the waker's time slice, milliseconds.
 *
 * Returns 0 or -errno; -ETIMEDOUT when a task did not start within a second.
 */
int probe_wake(long sample_count, probe_submit_fn *submit, void *context,
               probe_wake_figures *figures);

/* What the submitted task calls. */
void probe_wake_started(void);

#ifdef __cplusplus
}
#endif

#endif
