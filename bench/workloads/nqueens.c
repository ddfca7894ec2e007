/* SPDX-License-Identifier: MIT */
/*
 * nqueens: the number of ways to put n queens on a board of n x n without a threat. One task per
 * placement, down to the last row: many small tasks of unequal size, each with 16 bytes of board.
 */
#include "bench.h"

#include <errno.h>

/* Constant during a run. As an argument, it would be copied into every task. */
static int board_size;

#if BENCH_FILCH

/* The task places its queen itself, so that the parent writes each board only once. */
FILCH_TASK(long, place, (nqueens_board, board), (int, row), (int, column))
{
    board.column[row] = (int8_t)column;
    if (++row == board_size)
        return 1;

    place_forked children[NQUEENS_MAX];
    place_forked *last = children;
    for (int next = 0; next < board_size; next++) {
        if (!nqueens_is_safe(&board, row, next))
            continue;
        FILCH_FORK_INTO(*last, place, board, row, next);
        last++;
    }

    long sum = 0;
    while (last > children) {
        last--;
        sum += FILCH_JOIN_FROM(*last, place);
    }
    return sum;
}

FILCH_TASK(long, place_first)
{
    place_forked children[NQUEENS_MAX];
    for (int column = 0; column < board_size; column++)
        FILCH_FORK_INTO(children[column], place, (nqueens_board){{0}}, 0, column);

    long sum = 0;
    for (int column = board_size; column-- > 0;)
        sum += FILCH_JOIN_FROM(children[column], place);
    return sum;
}

static long compute(const bench_run *run)
{
    return FILCH_RUN(run->pool, place_first);
}

#else

static long place(nqueens_board board, int row)
{
    if (row == board_size)
        return 1;

    long sum = 0;
    for (int column = 0; column < board_size; column++) {
        if (!nqueens_is_safe(&board, row, column))
            continue;
        nqueens_board next = board;
        next.column[row] = (int8_t)column;
        sum += place(next, row + 1);
    }
    return sum;
}

static long compute(const bench_run *run)
{
    (void)run;
    return place((nqueens_board){{0}}, 0);
}

#endif

int bench_nqueens(bench_run *run)
{
    if (run->size > NQUEENS_MAX)
        return -EINVAL;
    board_size = (int)run->size;

    uint64_t start_ns = probe_clock_ns();
    run->checksum = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;
    return 0;
}
