/* SPDX-License-Identifier: MIT */
/*
 * The workloads with OpenMP tasks. Compiled by gcc this is the variant gomp, by clang libomp.
 *
 * for and small_for call the kernel once per thread, on the range that `for schedule(static)` would
 * assign. So the schedule is the same, and the kernel is the same machine code as in all variants.
 */
#include "peer.h"

#include <omp.h>

#if defined(__clang__)
#define VARIANT "libomp"
#else
#define VARIANT "gomp"
#endif

static long board_size; /* constant during a run, like stride */
static long stride;

static long fib(long n)
{
    if (n < 2)
        return n;
    long left, right;
#pragma omp task shared(left)
    left = fib(n - 1);
    right = fib(n - 2);
#pragma omp taskwait
    return left + right;
}

static long place(nqueens_board board, int row)
{
    if (row == board_size)
        return 1;
    long found[NQUEENS_MAX];
    int placed = 0;
    for (int column = 0; column < board_size; column++) {
        if (!nqueens_is_safe(&board, row, column))
            continue;
        nqueens_board next = board;
        next.column[row] = (int8_t)column;
        long *result = &found[placed++];
#pragma omp task firstprivate(next, row, result)
        *result = place(next, row + 1);
    }
#pragma omp taskwait
    long sum = 0;
    for (int i = 0; i < placed; i++)
        sum += found[i];
    return sum;
}

static void sort(int64_t *values, long count)
{
    if (count <= QUICKSORT_CUTOFF) {
        quicksort_insertion(values, count);
        return;
    }
    long split = quicksort_partition(values, count);
#pragma omp task firstprivate(values, split)
    sort(values, split);
    sort(values + split, count - split);
#pragma omp taskwait
}

static void multiply(const double *a, const double *b, double *c, long n)
{
    if (n == MATMUL_BASE) {
        matmul_block(a, b, c, stride);
        return;
    }
    const long half = n / 2;
    const long down = half * stride;
#pragma omp task
    multiply(a, b, c, half);
#pragma omp task
    multiply(a, b + half, c + half, half);
#pragma omp task
    multiply(a + down, b, c + down, half);
    multiply(a + down, b + half, c + down + half, half);
#pragma omp taskwait
#pragma omp task
    multiply(a + half, b + down, c, half);
#pragma omp task
    multiply(a + half, b + down + half, c + half, half);
#pragma omp task
    multiply(a + down + half, b + down, c + down, half);
    multiply(a + down + half, b + down + half, c + down + half, half);
#pragma omp taskwait
}

static long visit(uint64_t node, long children, long *found)
{
    for (long i = 0; i < children; i++) {
        uint64_t child = uts_child(node, i);
        long *result = &found[i];
#pragma omp task firstprivate(child, result)
        {
            long below[UTS_CHILDREN];
            long count = uts_child_count(child);
            *result = count ? visit(child, count, below) : 1;
        }
    }
#pragma omp taskwait
    long sum = 1;
    for (long i = 0; i < children; i++)
        sum += found[i];
    return sum;
}

static double sum_hidden(long size, int workers)
{
    double sums[HIDDEN_PARTS];
#pragma omp task shared(sums)
    sums[0] = hidden_part(size, 0);
    hidden_await_first(workers);
    for (int part = 1; part <= HIDDEN_TASKS; part++) {
#pragma omp task shared(sums)
        sums[part] = hidden_part(size, part);
    }
    sums[HIDDEN_TASKS + 1] = hidden_part(size, HIDDEN_TASKS + 1);
#pragma omp taskwait
    double sum = 0;
    for (int part = 0; part < HIDDEN_PARTS; part++)
        sum += sums[part];
    return sum;
}

/* The works that use tasks, called by one thread of a team whose other threads run tasks. */
static void run_tasks(peer_run *run)
{
    const char *work = run->work;
    uint64_t start_ns;

    if (strcmp(work, "fib") == 0) {
        start_ns = probe_clock_ns();
        run->checksum = fib(run->size);
        run->elapsed_ns = probe_clock_ns() - start_ns;
    } else if (strcmp(work, "nqueens") == 0) {
        board_size = run->size;
        start_ns = probe_clock_ns();
        run->checksum = place((nqueens_board){{0}}, 0);
        run->elapsed_ns = probe_clock_ns() - start_ns;
    } else if (strcmp(work, "quicksort") == 0) {
        int64_t *values = peer_allocate((size_t)run->size, sizeof *values);
        quicksort_fill(values, run->size);
        start_ns = probe_clock_ns();
        sort(values, run->size);
        run->elapsed_ns = probe_clock_ns() - start_ns;
        run->checksum = quicksort_check(values, run->size);
        free(values);
    } else if (strcmp(work, "matmul") == 0) {
        const size_t count = (size_t)run->size * (size_t)run->size;
        double *a = peer_allocate(3 * count, sizeof *a);
        double *b = a + count;
        double *c = b + count;
        matmul_fill(a, b, c, run->size);
        stride = run->size;
        start_ns = probe_clock_ns();
        multiply(a, b, c, run->size);
        run->elapsed_ns = probe_clock_ns() - start_ns;
        run->checksum = matmul_check(a, b, c, run->size);
        free(a);
    } else if (strcmp(work, "uts") == 0) {
        long *found = peer_allocate((size_t)run->size, sizeof *found);
        start_ns = probe_clock_ns();
        run->checksum = visit(UTS_SEED, run->size, found);
        run->elapsed_ns = probe_clock_ns() - start_ns;
        free(found);
    } else if (strcmp(work, "hidden") == 0) {
        start_ns = probe_clock_ns();
        double sum = sum_hidden(run->size, run->workers);
        run->elapsed_ns = probe_clock_ns() - start_ns;
        run->checksum = for_check(sum);
    } else if (strcmp(work, "flat") == 0) {
        long counter = 0;
        for (long i = 0; i < 100000; i++) {
#pragma omp task shared(counter)
            {
#pragma omp atomic
                counter++;
            }
        }
#pragma omp taskwait
        run->checksum = counter;
        start_ns = probe_clock_ns();
        for (long i = 0; i < run->size; i++) {
#pragma omp task
            __asm__ volatile("" ::: "memory");
        }
#pragma omp taskwait
        run->elapsed_ns = probe_clock_ns() - start_ns;
    } else {
        run->is_unknown = true; /* wake: OpenMP has no submit from outside */
    }
}

/* The start of the range that schedule(static) would give to this thread. */
static long range_begin(long size, int thread)
{
    return size * thread / omp_get_num_threads();
}

static void run_for(peer_run *run)
{
    double sum = 0;
    uint64_t start_ns = probe_clock_ns();
#pragma omp parallel reduction(+ : sum)
    {
        int thread = omp_get_thread_num();
        sum += for_range(range_begin(run->size, thread), range_begin(run->size, thread + 1));
    }
    run->elapsed_ns = probe_clock_ns() - start_ns;
    run->checksum = for_check(sum);
}

static void run_small_for(peer_run *run)
{
    double *x = peer_allocate(2 * (size_t)run->size, sizeof *x);
    double *y = x + run->size;
    small_for_fill(x, y, run->size);

    uint64_t start_ns = probe_clock_ns();
    for (int i = 0; i < SMALL_FOR_REPEATS; i++) {
#pragma omp parallel
        {
            int thread = omp_get_thread_num();
            small_for_range(y, x, range_begin(run->size, thread),
                            range_begin(run->size, thread + 1));
        }
    }
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = small_for_check(y, run->size);
    free(x);
}

/* Iterations that may be long are handed out one by one. */
static void run_lumps(peer_run *run)
{
    double sum = 0;
    uint64_t start_ns = probe_clock_ns();
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (long i = 0; i < LUMPS_COUNT; i++)
        sum += lumps_range(run->size, i, i + 1);
    run->elapsed_ns = probe_clock_ns() - start_ns;
    run->checksum = for_check(sum);
}

static void warm_up(void)
{
    uint64_t start_ns = probe_clock_ns();
    while (probe_clock_ns() - start_ns < PROBE_WARM_UP_NS) {
#pragma omp parallel
#pragma omp single
        (void)fib(15);
    }
}

int main(int argc, char **argv)
{
    peer_run run;
    int err = peer_parse(&run, argc, argv);
    if (err)
        return err;

    omp_set_dynamic(0);
    omp_set_num_threads(run.workers);
    warm_up();
    if (strcmp(run.work, "for") == 0) {
        run_for(&run);
    } else if (strcmp(run.work, "small_for") == 0) {
        run_small_for(&run);
    } else if (strcmp(run.work, "lumps") == 0) {
        run_lumps(&run);
    } else if (strcmp(run.work, "idle") == 0) {
        run.elapsed_ns = probe_idle(run.size);
    } else {
#pragma omp parallel
#pragma omp single
        run_tasks(&run);
    }
    return peer_finish(VARIANT, &run);
}
