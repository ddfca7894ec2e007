/* SPDX-License-Identifier: MIT */
/*
 * flat: one task forks millions of empty tasks before it joins the first. No recursion bounds the
 * number of queued tasks: memory may run out, queues grow, and thieves contend for the only owner.
 */
#include "bench.h"

#include <errno.h>

/* An empty task leaves no trace, so the checksum comes from a warm-up with tasks that count. */
enum { COUNTED_TASKS = 100 * 1000 };

#if BENCH_FILCH

FILCH_TASK(void, empty)
{
    __asm__ volatile("" ::: "memory"); /* hide from the compiler that the task is empty */
}

FILCH_TASK(void, fork_flat, (long, count))
{
    for (long i = 0; i < count; i++)
        FILCH_SPAWN(empty);
    FILCH_SYNC();
}

FILCH_TASK(void, count_one, (filch_atomic_u64 *, counter))
{
    /* relaxed: only the sum matters, and it is read after the join. */
    filch_fetch_add_relaxed(counter, 1);
}

FILCH_TASK(void, count_flat, (long, count), (filch_atomic_u64 *, counter))
{
    for (long i = 0; i < count; i++)
        FILCH_SPAWN(count_one, counter);
    FILCH_SYNC();
}

static int64_t count(const bench_run *run)
{
    filch_atomic_u64 counter = {0};
    FILCH_RUN(run->pool, count_flat, COUNTED_TASKS, &counter);
    /* relaxed: FILCH_RUN has joined all tasks. */
    return (int64_t)filch_load_relaxed(&counter);
}

static void compute(const bench_run *run)
{
    FILCH_RUN(run->pool, fork_flat, run->size);
}

#else

static void empty(void)
{
    __asm__ volatile("" ::: "memory");
}

/* volatile: one real call per task, the least that a task can cost. */
static void (*volatile empty_entry)(void) = empty;

static int64_t count(const bench_run *run)
{
    (void)run;
    return COUNTED_TASKS;
}

static void compute(const bench_run *run)
{
    for (long i = 0; i < run->size; i++)
        empty_entry();
}

#endif

int bench_flat(bench_run *run)
{
    run->checksum = count(run);
    if (run->checksum != COUNTED_TASKS)
        return -EBADMSG;

    uint64_t start_ns = probe_clock_ns();
    compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;
    return 0;
}
