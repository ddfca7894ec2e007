/* SPDX-License-Identifier: MIT */
/*
 * Measures an idle pool: the CPU time it uses, and how soon it wakes up. All variants share this
 * code.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every program, the serial twin too, works this long before it is measured. By then the cores run
 * at full speed, and all threads have started, also those that start only to steal. */
enum { PROBE_WARM_UP_NS = 20 * 1000 * 1000 };

/* Monotonic time. */
uint64_t probe_clock_ns(void);

/* The CPU time that all threads of the process use while the caller sleeps. */
uint64_t probe_idle(long duration_ms);

/* Median and 99th percentile of the time from the submit of a task to its first instruction. `bare`
 * is the same for a thread that sleeps on a futex and is woken without any runtime. */
typedef struct probe_wake_figures {
    uint64_t median_ns;
    uint64_t p99_ns;
    uint64_t bare_median_ns;
    uint64_t bare_p99_ns;
} probe_wake_figures;

/* Submit a task that calls probe_wake_started() to the pool behind `context`. */
typedef void probe_submit_fn(void *context);

/*
 * Take `sample_count` samples of the pool and as many of the bare futex, in turn. In gaps of 1 ms
 * all threads fall asleep.
 *
 * The caller sleeps until the task has started. If the caller kept its core busy, Linux might queue
 * the woken thread on that core, although another core is idle. The thread would stay there for the
 * rest of the caller's time slice: milliseconds.
 *
 * Returns 0 or -errno; -ETIMEDOUT if a task did not start within a second.
 */
int probe_wake(long sample_count, probe_submit_fn *submit, void *context,
               probe_wake_figures *figures);

/* The submitted task calls this. */
void probe_wake_started(void);

#ifdef __cplusplus
}
#endif

#endif
