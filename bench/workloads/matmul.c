/* SPDX-License-Identifier: MIT */
/*
 * matmul: c += a * b for square matrices, by halving all three in both directions. Four products
 * run in parallel. The four others add to the same quarters of c, so they run after these.
 *
 *      c11 = a11 b11 + a12 b21      c12 = a11 b12 + a12 b22
 *      c21 = a21 b11 + a22 b21      c22 = a21 b12 + a22 b22
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

/* From one row to the next; constant during a run. */
static long stride;

#if BENCH_FILCH

FILCH_TASK(void, multiply, (const double *, a), (const double *, b), (double *, c), (long, n))
{
    if (n == MATMUL_BASE) {
        matmul_block(a, b, c, stride);
        return;
    }

    const long half = n / 2;
    const long down = half * stride; /* from the upper half to the lower */

    FILCH_SPAWN(multiply, a, b, c, half);
    FILCH_SPAWN(multiply, a, b + half, c + half, half);
    FILCH_SPAWN(multiply, a + down, b, c + down, half);
    FILCH_CALL(multiply, a + down, b + half, c + down + half, half);
    FILCH_SYNC();

    FILCH_SPAWN(multiply, a + half, b + down, c, half);
    FILCH_SPAWN(multiply, a + half, b + down + half, c + half, half);
    FILCH_SPAWN(multiply, a + down + half, b + down, c + down, half);
    FILCH_CALL(multiply, a + down + half, b + down + half, c + down + half, half);
    FILCH_SYNC();
}

static void compute(const bench_run *run, const double *a, const double *b, double *c)
{
    FILCH_RUN(run->pool, multiply, a, b, c, run->size);
}

#else

static void multiply(const double *a, const double *b, double *c, long n)
{
    if (n == MATMUL_BASE) {
        matmul_block(a, b, c, stride);
        return;
    }

    const long half = n / 2;
    const long down = half * stride;

    multiply(a, b, c, half);
    multiply(a, b + half, c + half, half);
    multiply(a + down, b, c + down, half);
    multiply(a + down, b + half, c + down + half, half);

    multiply(a + half, b + down, c, half);
    multiply(a + half, b + down + half, c + half, half);
    multiply(a + down + half, b + down, c + down, half);
    multiply(a + down + half, b + down + half, c + down + half, half);
}

static void compute(const bench_run *run, const double *a, const double *b, double *c)
{
    multiply(a, b, c, run->size);
}

#endif

int bench_matmul(bench_run *run)
{
    if (!matmul_has_size(run->size))
        return -EINVAL;
    stride = run->size;

    const size_t count = (size_t)run->size * (size_t)run->size;
    double *matrices = malloc(3 * count * sizeof *matrices);
    if (!matrices)
        return -ENOMEM;
    double *a = matrices;
    double *b = a + count;
    double *c = b + count;
    matmul_fill(a, b, c, run->size);

    uint64_t start_ns = probe_clock_ns();
    compute(run, a, b, c);
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = matmul_check(a, b, c, run->size);
    free(matrices);
    return 0;
}
