/* SPDX-License-Identifier: MIT */
/*
 * mapreduce: n remote values take `latency_us` each to arrive. Each is mapped to its fib; the sum
 * is taken modulo 1e9. The range is halved until one value is left.
 *
 *     mode=classic   the worker blocks until the value has arrived
 *     mode=hiding    the task waits, its worker runs other tasks
 *     mode=ideal     no latency
 *     mode=ready     no latency, but the leaves get the value of a complete future
 *
 * overhead: ideal and ready in turn. The difference is the cost of a wait that need not wait.
 */
#include "wait.h"

#include <errno.h>
#include <string.h>

enum { SERIAL_BELOW = 25, MODULUS = 1000 * 1000 * 1000 };

typedef enum leaf_mode { CLASSIC, HIDING, IDEAL, READY } leaf_mode;

static const char *const mode_names[] = {"classic", "hiding", "ideal", "ready"};

/* Constant while tasks run. */
static struct {
    leaf_mode mode;
    uint64_t latency_ns;
    long value;
    filch_future ready;
} remote;

FILCH_TASK(long, fib, (long, n))
{
    if (n < SERIAL_BELOW)
        return serial_fib(n);
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

/* Wait for the value and return it; -1: the wait failed. */
static long fetch(filch_frame *f)
{
    int err = 0;

    switch (remote.mode) {
    case CLASSIC:
        block_ns(remote.latency_ns);
        break;
    case HIDING:
        err = filch_sleep_ns(f, remote.latency_ns);
        break;
    case IDEAL:
        break;
    case READY:
        err = filch_future_get(f, &remote.ready, NULL);
        break;
    }
    return err ? -1 : remote.value;
}

FILCH_TASK(long, map_reduce, (long, begin), (long, end))
{
    if (end - begin == 1)
        return FILCH_CALL(fib, fetch(FILCH_HERE)) % MODULUS;
    long middle = begin + (end - begin) / 2;
    FILCH_FORK(left, map_reduce, begin, middle);
    long right = FILCH_CALL(map_reduce, middle, end);
    return (FILCH_JOIN(left) + right) % MODULUS;
}

/* Returns the elapsed time, or 0 if the sum is wrong. */
static uint64_t time_once(filch_pool *pool, long n)
{
    uint64_t start_ns = probe_clock_ns();
    long sum = FILCH_RUN(pool, map_reduce, 0, n);
    uint64_t elapsed_ns = probe_clock_ns() - start_ns;

    return sum == known_fib(remote.value) % MODULUS * n % MODULUS ? elapsed_ns : 0;
}

int wait_mapreduce(const wait_run *run)
{
    const char *mode = wait_text(run, "mode", "hiding");
    long n = wait_number(run, "n", 1, 5000);

    remote.value = wait_number(run, "value", 0, 30);
    remote.latency_ns = (uint64_t)wait_number(run, "latency_us", 0, 50 * 1000) * 1000;
    filch_future_init(&remote.ready);
    filch_future_set(&remote.ready, NULL, 0);
    while (strcmp(mode, mode_names[remote.mode]) != 0)
        if (++remote.mode > READY)
            return -EINVAL;

    uint64_t elapsed_ns = time_once(run->pool, n);
    wait_figure("ns", (double)elapsed_ns);
    return elapsed_ns ? 0 : -EBADMSG;
}

int wait_overhead(const wait_run *run)
{
    long n = wait_number(run, "n", 1, 200), rounds = wait_number(run, "rounds", 1, 7);
    uint64_t best_ns[] = {[IDEAL] = UINT64_MAX, [READY] = UINT64_MAX};

    remote.value = wait_number(run, "value", 0, 30);
    filch_future_init(&remote.ready);
    filch_future_set(&remote.ready, NULL, 0);
    for (long i = 0; i < 2 * rounds; i++) {
        remote.mode = i % 2 ? READY : IDEAL;
        uint64_t elapsed_ns = time_once(run->pool, n);
        if (!elapsed_ns)
            return -EBADMSG;
        if (elapsed_ns < best_ns[remote.mode])
            best_ns[remote.mode] = elapsed_ns;
    }
    wait_figure("ns", (double)best_ns[READY]);
    wait_figure("without_ns", (double)best_ns[IDEAL]);
    return 0;
}
