/* SPDX-License-Identifier: MIT */
/* The kernels that are compiled once; kernels.h describes them. */
#include "kernels.h"

#include "probe.h"

#include <filch/atomic.h>
#include <math.h>

static int64_t median_of_three(int64_t a, int64_t b, int64_t c)
{
    if (a < b)
        return b < c ? b : (a < c ? c : a);
    return a < c ? a : (b < c ? c : b);
}

void quicksort_fill(int64_t *values, long count)
{
    for (long i = 0; i < count; i++)
        values[i] = (int64_t)(uts_mix((uint64_t)i) >> 1);
}

long quicksort_partition(int64_t *values, long count)
{
    int64_t pivot = median_of_three(values[0], values[count / 2], values[count - 1]);
    long left = -1;
    long right = count;

    for (;;) {
        do
            left++;
        while (values[left] < pivot);
        do
            right--;
        while (values[right] > pivot);
        if (left >= right)
            break;
        int64_t swapped = values[left];
        values[left] = values[right];
        values[right] = swapped;
    }

    /* Neither part may be empty, or the recursion would not end. */
    long split = right + 1;
    return split >= count ? count - 1 : split;
}

void quicksort_insertion(int64_t *values, long count)
{
    for (long i = 1; i < count; i++) {
        int64_t value = values[i];
        long hole = i;
        while (hole > 0 && values[hole - 1] > value) {
            values[hole] = values[hole - 1];
            hole--;
        }
        values[hole] = value;
    }
}

/* Check order and contents: an array of zeros is sorted, too. The sum over the mixed values shows
 * whether they are still the values of quicksort_fill. */
int64_t quicksort_check(const int64_t *values, long count)
{
    uint64_t found = 0;
    uint64_t wanted = 0;

    for (long i = 0; i < count; i++) {
        if (i > 0 && values[i - 1] > values[i])
            return KERNEL_WRONG;
        found += uts_mix((uint64_t)values[i]);
        wanted += uts_mix(uts_mix((uint64_t)i) >> 1);
    }
    return found == wanted ? (int64_t)(found >> 1) : KERNEL_WRONG;
}

bool matmul_has_size(long n)
{
    while (n > MATMUL_BASE && n % 2 == 0)
        n /= 2;
    return n == MATMUL_BASE;
}

void matmul_fill(double *a, double *b, double *c, long n)
{
    for (long i = 0; i < n * n; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
        c[i] = 0;
    }
}

void matmul_block(const double *a, const double *b, double *restrict c, long stride)
{
    for (long i = 0; i < MATMUL_BASE; i++) {
        for (long k = 0; k < MATMUL_BASE; k++) {
            double factor = a[i * stride + k];
            for (long j = 0; j < MATMUL_BASE; j++)
                c[i * stride + j] += factor * b[k * stride + j];
        }
    }
}

static double matmul_element(const double *a, const double *b, long n, long index)
{
    const double *row = a + index / n * n;
    const double *column = b + index % n;
    double sum = 0;
    for (long k = 0; k < n; k++)
        sum += row[k] * column[k * n];
    return sum;
}

/* Recompute elements all over the result, at least one in every block. All numbers are small
 * integers, so sums are exact in any order. */
int64_t matmul_check(const double *a, const double *b, const double *c, long n)
{
    const long step = MATMUL_BASE - 1; /* odd: visits all columns */
    for (long i = 0; i < n; i += step)
        for (long j = i % step; j < n; j += step)
            if (c[i * n + j] != matmul_element(a, b, n, i * n + j))
                return KERNEL_WRONG;
    return (int64_t)c[12345 % (n * n)];
}

double for_range(long begin, long end)
{
    double sum = 0;
    for (long i = begin; i < end; i++)
        sum += sin((double)i * 1e-3);
    return sum;
}

/* Keep three decimals: the division into ranges changes the tenth. */
int64_t for_check(double sum)
{
    return llround(sum * 1e3);
}

void small_for_fill(double *x, double *y, long count)
{
    for (long i = 0; i < count; i++) {
        x[i] = (double)i;
        y[i] = 1;
    }
}

void small_for_range(double *y, const double *x, long begin, long end)
{
    for (long i = begin; i < end; i++)
        y[i] = 1e-3 * x[i] + y[i];
}

/* After SMALL_FOR_REPEATS = 1000 repeats, y[i] is 1 + i up to rounding. */
int64_t small_for_check(const double *y, long count)
{
    int64_t sum = 0;
    for (long i = 0; i < count; i++)
        sum += llround(y[i]);
    return sum;
}

double lumps_range(long size, long begin, long end)
{
    const long first = (LUMPS_COUNT - LUMPS_LONG) / 4;
    double sum = 0;
    for (long i = begin; i < end; i++)
        sum += i >= first && i < first + LUMPS_LONG ? for_range(0, size) : sin((double)i * 1e-3);
    return sum;
}

static FILCH_ATOMIC(bool) first_has_begun; /* there is one run per process */

/* The first iteration of this part. */
static long hidden_begin(long size, int part)
{
    const long first = size / 20;
    const long half = size / 2;
    if (part == 0)
        return 0;
    return part < HIDDEN_PARTS ? first + (half - first) * (part - 1) / HIDDEN_TASKS : size;
}

double hidden_part(long size, int part)
{
    if (part == 0)
        /* relaxed: a sign without data. */
        filch_store_relaxed(&first_has_begun, true);
    return for_range(hidden_begin(size, part), hidden_begin(size, part + 1));
}

void hidden_await_first(int workers)
{
    if (workers < 2)
        return;
    const uint64_t start_ns = probe_clock_ns();
    /* relaxed: see hidden_part. */
    while (!filch_load_relaxed(&first_has_begun))
        if (probe_clock_ns() - start_ns > HIDDEN_AWAIT_NS)
            return;
}
