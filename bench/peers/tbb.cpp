/* SPDX-License-Identifier: MIT */
/* The workloads with oneTBB's task_group and parallel algorithms. */
#include "peer.h"

#include <oneapi/tbb.h>

#include <atomic>
#include <vector>

using tbb::blocked_range;
using tbb::task_group;

static long board_size; /* constant during a run, like stride */
static long stride;

static long fib(long n)
{
    if (n < 2)
        return n;
    long left, right;
    task_group group;
    group.run([&left, n] { left = fib(n - 1); });
    right = fib(n - 2);
    group.wait();
    return left + right;
}

static long place(nqueens_board board, int row)
{
    if (row == board_size)
        return 1;
    long found[NQUEENS_MAX];
    int placed = 0;
    task_group group;
    for (int column = 0; column < board_size; column++) {
        if (!nqueens_is_safe(&board, row, column))
            continue;
        nqueens_board next = board;
        next.column[row] = static_cast<int8_t>(column);
        long *result = &found[placed++];
        group.run([next, row, result] { *result = place(next, row + 1); });
    }
    group.wait();
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
    task_group group;
    group.run([values, split] { sort(values, split); });
    sort(values + split, count - split);
    group.wait();
}

static void multiply(const double *a, const double *b, double *c, long n)
{
    if (n == MATMUL_BASE) {
        matmul_block(a, b, c, stride);
        return;
    }
    const long half = n / 2;
    const long down = half * stride;
    task_group group;

    group.run([=] { multiply(a, b, c, half); });
    group.run([=] { multiply(a, b + half, c + half, half); });
    group.run([=] { multiply(a + down, b, c + down, half); });
    multiply(a + down, b + half, c + down + half, half);
    group.wait();

    group.run([=] { multiply(a + half, b + down, c, half); });
    group.run([=] { multiply(a + half, b + down + half, c + half, half); });
    group.run([=] { multiply(a + down + half, b + down, c + down, half); });
    multiply(a + down + half, b + down + half, c + down + half, half);
    group.wait();
}

static long visit(uint64_t node, long children, long *found)
{
    task_group group;
    for (long i = 0; i < children; i++) {
        uint64_t child = uts_child(node, i);
        long *result = &found[i];
        group.run([child, result] {
            long below[UTS_CHILDREN];
            long count = uts_child_count(child);
            *result = count ? visit(child, count, below) : 1;
        });
    }
    group.wait();
    long sum = 1;
    for (long i = 0; i < children; i++)
        sum += found[i];
    return sum;
}

template <typename Body> static uint64_t time_ns(const Body &body)
{
    uint64_t start_ns = probe_clock_ns();
    body();
    return probe_clock_ns() - start_ns;
}

static void run_quicksort(peer_run *run)
{
    std::vector<int64_t> values(run->size);
    quicksort_fill(values.data(), run->size);
    run->elapsed_ns = time_ns([&] { sort(values.data(), run->size); });
    run->checksum = quicksort_check(values.data(), run->size);
}

static void run_matmul(peer_run *run)
{
    const size_t count = static_cast<size_t>(run->size) * run->size;
    std::vector<double> a(count), b(count), c(count);
    matmul_fill(a.data(), b.data(), c.data(), run->size);
    stride = run->size;
    run->elapsed_ns = time_ns([&] { multiply(a.data(), b.data(), c.data(), run->size); });
    run->checksum = matmul_check(a.data(), b.data(), c.data(), run->size);
}

static void run_uts(peer_run *run)
{
    std::vector<long> found(run->size);
    run->elapsed_ns = time_ns([&] { run->checksum = visit(UTS_SEED, run->size, found.data()); });
}

static void run_for(peer_run *run)
{
    double sum = 0;
    run->elapsed_ns = time_ns([&] {
        sum = tbb::parallel_reduce(
            blocked_range<long>(0, run->size), 0.0,
            [](const blocked_range<long> &range, double partial) {
                return partial + for_range(range.begin(), range.end());
            },
            [](double left, double right) { return left + right; });
    });
    run->checksum = for_check(sum);
}

static void run_small_for(peer_run *run)
{
    std::vector<double> x_values(run->size), y_values(run->size);
    double *x = x_values.data();
    double *y = y_values.data();
    small_for_fill(x, y, run->size);
    run->elapsed_ns = time_ns([&] {
        for (int i = 0; i < SMALL_FOR_REPEATS; i++)
            tbb::parallel_for(blocked_range<long>(0, run->size),
                              [=](const blocked_range<long> &range) {
                                  small_for_range(y, x, range.begin(), range.end());
                              });
    });
    run->checksum = small_for_check(y, run->size);
}

static void run_lumps(peer_run *run)
{
    double sum = 0;
    run->elapsed_ns = time_ns([&] {
        sum = tbb::parallel_reduce(
            blocked_range<long>(0, LUMPS_COUNT), 0.0,
            [run](const blocked_range<long> &range, double partial) {
                return partial + lumps_range(run->size, range.begin(), range.end());
            },
            [](double left, double right) { return left + right; });
    });
    run->checksum = for_check(sum);
}

static double sum_hidden(long size, int workers)
{
    double sums[HIDDEN_PARTS];
    task_group group;
    group.run([&sums, size] { sums[0] = hidden_part(size, 0); });
    hidden_await_first(workers);
    for (int part = 1; part <= HIDDEN_TASKS; part++)
        group.run([&sums, size, part] { sums[part] = hidden_part(size, part); });
    sums[HIDDEN_TASKS + 1] = hidden_part(size, HIDDEN_TASKS + 1);
    group.wait();
    double sum = 0;
    for (double part_sum : sums)
        sum += part_sum;
    return sum;
}

static void run_hidden(peer_run *run)
{
    double sum = 0;
    run->elapsed_ns = time_ns([&] { sum = sum_hidden(run->size, run->workers); });
    run->checksum = for_check(sum);
}

static void run_flat(peer_run *run)
{
    std::atomic<long> counter{0};
    task_group counted;
    for (long i = 0; i < 100000; i++)
        counted.run([&counter] { counter.fetch_add(1, std::memory_order_relaxed); });
    counted.wait();
    run->checksum = counter.load();

    run->elapsed_ns = time_ns([&] {
        task_group group;
        for (long i = 0; i < run->size; i++)
            group.run([] { asm volatile("" ::: "memory"); });
        group.wait();
    });
}

static void submit(void *arena)
{
    static_cast<tbb::task_arena *>(arena)->enqueue([] { probe_wake_started(); });
}

static void run_in_arena(peer_run *run)
{
    if (!strcmp(run->work, "fib")) {
        run->elapsed_ns = time_ns([&] { run->checksum = fib(run->size); });
    } else if (!strcmp(run->work, "nqueens")) {
        board_size = run->size;
        run->elapsed_ns = time_ns([&] { run->checksum = place(nqueens_board{}, 0); });
    } else if (!strcmp(run->work, "quicksort")) {
        run_quicksort(run);
    } else if (!strcmp(run->work, "matmul")) {
        run_matmul(run);
    } else if (!strcmp(run->work, "uts")) {
        run_uts(run);
    } else if (!strcmp(run->work, "for")) {
        run_for(run);
    } else if (!strcmp(run->work, "small_for")) {
        run_small_for(run);
    } else if (!strcmp(run->work, "lumps")) {
        run_lumps(run);
    } else if (!strcmp(run->work, "hidden")) {
        run_hidden(run);
    } else if (!strcmp(run->work, "flat")) {
        run_flat(run);
    }
}

int main(int argc, char **argv)
{
    peer_run run;
    int err = peer_parse(&run, argc, argv);
    if (err)
        return err;

    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, run.workers);
    tbb::global_control stacks(tbb::global_control::thread_stack_size, PEER_STACK_BYTES);
    tbb::task_arena arena(run.workers);

    uint64_t start_ns = probe_clock_ns();
    while (probe_clock_ns() - start_ns < PROBE_WARM_UP_NS)
        arena.execute([] { fib(15); });
    if (!strcmp(run.work, "idle")) {
        run.elapsed_ns = probe_idle(run.size);
    } else if (!strcmp(run.work, "wake")) {
        err = probe_wake(run.size, submit, &arena, &run.wake);
        if (err) {
            fprintf(stderr, "tbb: wake: %s\n", strerror(-err));
            return EXIT_FAILURE;
        }
    } else {
        arena.execute([&run] { run_in_arena(&run); });
    }
    return peer_finish("tbb", &run);
}
