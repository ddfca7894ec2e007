/* SPDX-License-Identifier: MIT */
/* Loops without a grain size: for, reduce, a reduction with the same result everywhere, invoke. */
#include <filch/filch.h>
#include <stdio.h>

enum { N = 100000 };
static double x[N];

static void fill(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)f;
    double *array = context;
    for (size_t i = begin; i < end; i++)
        array[i] = 1.0 / (double)(i + 1);
}

static void add(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    (void)f;
    const double *array = context;
    double sum = *(double *)accumulator;
    for (size_t i = begin; i < end; i++)
        sum += array[i];
    *(double *)accumulator = sum;
}

static void merge(void *left, const void *right, void *context)
{
    (void)context;
    *(double *)left += *(const double *)right;
}

static void count_down(filch_frame *f, void *arg)
{
    (void)f;
    for (int *n = arg; *n > 0;)
        --*n;
}

FILCH_TASK(void, example)
{
    const filch_reducer sum = {.size = sizeof(double), .add = add, .merge = merge};
    double about, exactly, again;

    filch_for(FILCH_HERE, 0, N, fill, x);
    filch_reduce(FILCH_HERE, 0, N, &sum, x, &about);
    filch_reduce_fixed(FILCH_HERE, 0, N, 0, &sum, x, &exactly);
    filch_reduce_fixed(FILCH_HERE, 0, N, 0, &sum, x, &again);
    printf("harmonic number %d: %.6f\n", N, about);
    printf("the fixed tree gives the same bits: %s\n", exactly == again ? "yes" : "no");

    int a = 10, b = 1000;
    const filch_call calls[] = {{count_down, &a}, {count_down, &b}};
    filch_invoke(FILCH_HERE, calls, 2);
    printf("both at %d and %d\n", a, b);
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    FILCH_RUN(pool, example);
    return filch_pool_destroy(pool);
}
