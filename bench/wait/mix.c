/* SPDX-License-Identifier: MIT */
/*
 * mix: computation against latency. Some leaves of a fork-join fib take `latency_us`; all latencies
 * add up to `total_ms`. Of these leaves, `share` percent wait, and the others block their worker.
 *
 * Both kinds are spread evenly over the leaves, from left to right.
 */
#include "wait.h"

#include <errno.h>

enum { SERIAL_BELOW = 13, FIB_MAX = 40 };

/* Constant while tasks run. */
static struct {
    long leaf_count[FIB_MAX + 1]; /* leaves of fib(i) */
    long leaves, slow_leaves, share;
    uint64_t latency_ns;
} plan;

/* `few` numbers are spread evenly over 0 .. many - 1. Returns which of them `index` is, or -1. */
static long which_of(long few, long many, long index)
{
    long before = index * few / many;
    return (index + 1) * few / many > before ? before : -1;
}

static void incur_latency(filch_frame *f, long leaf)
{
    long slow = which_of(plan.slow_leaves, plan.leaves, leaf);

    if (slow < 0)
        return;
    if (which_of(plan.share, 100, slow % 100) < 0)
        block_ns(plan.latency_ns);
    else
        (void)filch_sleep_ns(f, plan.latency_ns); /* without a scope, nothing cancels it */
}

FILCH_TASK(long, slow_fib, (long, n), (long, first_leaf))
{
    if (n < SERIAL_BELOW) {
        incur_latency(FILCH_HERE, first_leaf);
        return serial_fib(n);
    }
    FILCH_FORK(left, slow_fib, n - 1, first_leaf);
    long right = FILCH_CALL(slow_fib, n - 2, first_leaf + plan.leaf_count[n - 1]);
    return FILCH_JOIN(left) + right;
}

int wait_mix(const wait_run *run)
{
    long n = wait_number(run, "n", SERIAL_BELOW, 32);
    long total_ms = wait_number(run, "total_ms", 1, 1000);
    long latency_us = wait_number(run, "latency_us", 1, 10 * 1000);

    plan.share = wait_number(run, "share", 0, 100);
    if (n > FIB_MAX || plan.share > 100)
        return -EINVAL;
    for (long i = 0; i <= n; i++)
        plan.leaf_count[i] = i < SERIAL_BELOW ? 1 : plan.leaf_count[i - 1] + plan.leaf_count[i - 2];
    plan.leaves = plan.leaf_count[n];
    plan.slow_leaves = total_ms * 1000 / latency_us;
    plan.latency_ns = (uint64_t)latency_us * 1000;
    if (plan.slow_leaves < 1 || plan.slow_leaves > plan.leaves)
        return -EINVAL;

    uint64_t start_ns = probe_clock_ns();
    long result = FILCH_RUN(run->pool, slow_fib, n, 0);
    wait_figure("ns", (double)(probe_clock_ns() - start_ns));
    wait_figure("leaves", (double)plan.leaves);
    wait_figure("slow_leaves", (double)plan.slow_leaves);
    return result == known_fib(n) ? 0 : -EBADMSG;
}
