/* SPDX-License-Identifier: MIT */
/*
 * The work inside the workloads, the same machine code for every variant.
 *
 * Kernels that run long enough to hide a call are compiled once, in kernels.c, and linked into
 * every program. So no compiler can inline a kernel into the tasks of one runtime only. The two
 * tests of a few nanoseconds are inline below. Behind a call they would slow the serial twin of
 * nqueens down by a quarter. The overhead of every runtime would look that much smaller.
 *
 * Each workload has its fill, its kernel and its check here. A check returns a checksum that
 * depends only on the size of the problem, or KERNEL_WRONG.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNEL_WRONG INT64_C(-1)

/* The constants of the workloads. */
enum {
    NQUEENS_MAX = 15,         /* a board is 16 bytes */
    QUICKSORT_CUTOFF = 32,    /* insertion sort up to this length */
    MATMUL_BASE = 32,         /* edge of a block of the kernel */
    UTS_CHILDREN = 8,         /* of every inner node but the root */
    UTS_SEED = 10,            /* state of the root */
    SMALL_FOR_REPEATS = 1000, /* one small loop is too short to be timed */
    LUMPS_LONG = 20,          /* long iterations in a row, behind a quarter of the others */
    LUMPS_COUNT = 20020,
    HIDDEN_TASKS = 10, /* forked while all workers are busy */
    HIDDEN_PARTS = HIDDEN_TASKS + 2,
};

/* nqueens: the queen of row i stands in column[i]. */
typedef struct nqueens_board {
    int8_t column[NQUEENS_MAX + 1];
} nqueens_board;

static inline bool nqueens_is_safe(const nqueens_board *board, int row, int column)
{
    for (int i = 0; i < row; i++) {
        int distance = board->column[i] - column;
        if (distance == 0 || distance == row - i || distance == i - row)
            return false;
    }
    return true;
}

/* uts: a node is its 64-bit state. The tree is binomial: a node has UTS_CHILDREN children with a
 * probability just under 1 / UTS_CHILDREN, else none, so its shape is unpredictable. */
static inline uint64_t uts_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t uts_child(uint64_t parent, long index)
{
    uint64_t x = parent + (uint64_t)(index + 1) * UINT64_C(0xd1342543de82ef95);
    for (int round = 0; round < 16; round++) /* the work of one node */
        x = uts_mix(x);
    return x;
}

static inline long uts_child_count(uint64_t node)
{
    const uint32_t threshold = 2095054; /* of 2^24: 0.124875 */
    return (uint32_t)(node >> 40) < threshold ? UTS_CHILDREN : 0;
}

/* quicksort: Hoare's partition around the median of three. Returns the length of the left part,
 * 1 .. count - 1. */
void quicksort_fill(int64_t *values, long count);
long quicksort_partition(int64_t *values, long count);
void quicksort_insertion(int64_t *values, long count);
int64_t quicksort_check(const int64_t *values, long count);

/* matmul: square matrices in row order. The kernel adds the product of two blocks of
 * MATMUL_BASE x MATMUL_BASE, whose rows are `stride` apart, to a third. */
bool matmul_has_size(long n);
void matmul_fill(double *a, double *b, double *c, long n);
void matmul_block(const double *a, const double *b, double *c, long stride);
int64_t matmul_check(const double *a, const double *b, const double *c, long n);

/* for: the sum of sin(i / 1000) for begin <= i < end. */
double for_range(long begin, long end);
int64_t for_check(double sum);

/* small_for: y = y + x / 1000 for begin <= i < end. */
void small_for_fill(double *x, double *y, long count);
void small_for_range(double *y, const double *x, long begin, long end);
int64_t small_for_check(const double *y, long count);

/* lumps: the sum of sin in a loop with LUMPS_COUNT iterations, of which LUMPS_LONG add `size` sines
 * each, and all others one. To be checked by for_check. */
double lumps_range(long size, long begin, long end);

/*
 * hidden: the sum of `for` in HIDDEN_PARTS parts, to be checked by for_check.
 *
 *     part 0                    5 %    a task that keeps the other worker busy
 *     parts 1 to HIDDEN_TASKS   4.5 %  each: tasks forked meanwhile
 *     the last part             50 %   the root's own
 *
 * The root calls hidden_await_first between its first fork and the others. With one worker the call
 * returns at once; otherwise when part 0 has begun. After HIDDEN_AWAIT_NS it returns in any case: a
 * runtime may have fewer threads than requested.
 */
enum { HIDDEN_AWAIT_NS = 10 * 1000 * 1000 };
double hidden_part(long size, int part);
void hidden_await_first(int workers);

#ifdef __cplusplus
}
#endif

#endif
