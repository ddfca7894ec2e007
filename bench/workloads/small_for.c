/* SPDX-License-Identifier: MIT */
/*
 * small_for: y = y + x / 1000 over few elements, 1000 times. One loop takes some microseconds,
 * less than a wake-up, and has no grain size. The runtime must use the second core, and must not
 * pay for parts that no worker steals.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

typedef struct vectors {
    const double *x;
    double *y;
} vectors;

#if BENCH_FILCH

static void add_range(filch_frame *f, void *context, size_t begin, size_t end)
{
    const vectors *v = context;
    (void)f;
    small_for_range(v->y, v->x, (long)begin, (long)end);
}

FILCH_TASK(void, add_repeatedly, (vectors *, v), (long, size))
{
    for (int i = 0; i < SMALL_FOR_REPEATS; i++)
        filch_for(FILCH_HERE, 0, (size_t)size, add_range, v);
}

static void compute(const bench_run *run, vectors *v)
{
    FILCH_RUN(run->pool, add_repeatedly, v, run->size);
}

#else

static void compute(const bench_run *run, vectors *v)
{
    for (int i = 0; i < SMALL_FOR_REPEATS; i++)
        small_for_range(v->y, v->x, 0, run->size);
}

#endif

int bench_small_for(bench_run *run)
{
    double *elements = malloc(2 * (size_t)run->size * sizeof *elements);
    if (!elements)
        return -ENOMEM;
    double *x = elements;
    double *y = elements + run->size;
    small_for_fill(x, y, run->size);

    uint64_t start_ns = probe_clock_ns();
    compute(run, &(vectors){.x = x, .y = y});
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = small_for_check(y, run->size);
    free(elements);
    return 0;
}
