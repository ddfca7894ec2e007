/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include "../workloads/expected.h"

#include <string.h>

const char *const variant_names[VARIANT_COUNT] = {
    [VARIANT_SERIAL] = "serial",
    [VARIANT_FILCH] = "filch",
    [VARIANT_SERIAL_O2] = "serial-O2",
    [VARIANT_FILCH_O2] = "filch-O2",
    [VARIANT_SERIAL_CLANG] = "serial-clang",
    [VARIANT_FILCH_CLANG] = "filch-clang",
    [VARIANT_TBB] = "tbb",
    [VARIANT_GOMP] = "gomp",
    [VARIANT_LIBOMP] = "libomp",
    [VARIANT_RAYON] = "rayon",
};

bench_variant variant_twin(bench_variant variant)
{
    switch (variant) {
    case VARIANT_SERIAL_O2:
    case VARIANT_FILCH_O2:
        return VARIANT_SERIAL_O2;
    case VARIANT_SERIAL_CLANG:
    case VARIANT_FILCH_CLANG:
        return VARIANT_SERIAL_CLANG;
    default:
        return VARIANT_SERIAL;
    }
}

bool variant_is_serial(bench_variant variant)
{
    return variant_twin(variant) == variant;
}

bool variant_is_peer(bench_variant variant)
{
    return variant >= VARIANT_TBB;
}

#define BIT(variant) (1u << (variant))
#define ALL (BIT(VARIANT_COUNT) - 1)
/* Only fib shows how well a compiler translates a task; elsewhere the work hides it. */
#define OTHER_BUILDS                                                                               \
    (BIT(VARIANT_SERIAL_O2) | BIT(VARIANT_FILCH_O2) | BIT(VARIANT_SERIAL_CLANG) |                  \
     BIT(VARIANT_FILCH_CLANG))
#define EACH_RUNTIME (ALL & ~OTHER_BUILDS)
#define FILCH_ONLY BIT(VARIANT_FILCH)
/* OpenMP has no submit from outside, and the serial twin has no thread to wake. */
#define WITH_SUBMIT (BIT(VARIANT_FILCH) | BIT(VARIANT_TBB) | BIT(VARIANT_RAYON))

#define MILLION (1000 * 1000)

const bench_work works[] = {
    {
        .name = "fib",
        .title = "fork and join with nothing in between",
        .unit = "fork",
        .variants = ALL,
        .size = {40, 36},
        .peer_size = {30, 25},
    },
    {
        .name = "nqueens",
        .title = "one small task per placement",
        .variants = EACH_RUNTIME,
        .size = {13, 12},
    },
    {
        .name = "quicksort",
        .title = "64-bit integers in place, tasks down to 32 elements",
        .variants = EACH_RUNTIME,
        .size = {10 * MILLION, 2 * MILLION},
    },
    {
        .name = "matmul",
        .title = "doubles, by quarters down to blocks of 32 x 32",
        .variants = EACH_RUNTIME,
        .size = {1024, 512},
    },
    {
        .name = "uts",
        .title = "an unbalanced tree, one task per node",
        .variants = EACH_RUNTIME,
        .size = {2000, 2000},
    },
    {
        .name = "for",
        .title = "the sum of sin over a long range",
        .variants = EACH_RUNTIME,
        .size = {10 * MILLION, 2 * MILLION},
    },
    {
        .name = "small_for",
        .title = "a loop of microseconds, 1000 times, no grain given",
        .variants = EACH_RUNTIME,
        .repeats = REPEATS_MAX, /* a run takes three milliseconds */
        .size = {10 * 1000, 10 * 1000},
    },
    {
        .name = "lumps",
        .title = "a loop of 20,020 iterations, of which 20 are long",
        .variants = EACH_RUNTIME,
        .is_coarse = true,
        .size = {2 * MILLION, MILLION / 2},
    },
    {
        .name = "hidden",
        .title = "ten tasks of a task that then computes for long",
        .variants = EACH_RUNTIME,
        .workers_min = 2, /* another worker runs the first task */
        .is_coarse = true,
        .size = {10 * MILLION, 2 * MILLION},
    },
    {
        .name = "flat",
        .title = "empty tasks, all forked before the first join",
        .unit = "task",
        .variants = EACH_RUNTIME,
        .size = {10 * MILLION, MILLION},
        .peer_size = {MILLION, MILLION / 5},
    },
    {
        .name = "idle",
        .title = "CPU time of a pool without work",
        .kind = WORK_IDLE,
        .variants = EACH_RUNTIME,
        .workers_min = 2,
        .size = {2000, 1000},
    },
    {
        .name = "wake",
        .title = "from submit to the start of the task, in an idle pool",
        .kind = WORK_WAKE,
        .variants = WITH_SUBMIT,
        .workers_min = 2,
        .size = {1000, 200},
    },
    {
        .name = "pool",
        .title = "create and destroy a pool",
        .kind = WORK_POOL,
        .variants = FILCH_ONLY,
        .size = {100, 100},
    },
    {
        .name = "first",
        .title = "create a pool and run its first task",
        .kind = WORK_POOL,
        .variants = FILCH_ONLY,
        .size = {100, 100},
    },
};
const int work_count = sizeof works / sizeof works[0];

long work_size(const bench_work *work, bench_variant variant, bool is_short)
{
    if (!variant_is_peer(variant) || work->peer_size[is_short] == 0)
        return work->size[is_short];
    /* Rayon's join allocates nothing, so its fib can be larger by 6. */
    if (variant == VARIANT_RAYON && strcmp(work->name, "fib") == 0)
        return work->peer_size[is_short] + 6;
    return work->peer_size[is_short];
}

double work_units(const bench_work *work, long size)
{
    if (strcmp(work->name, "fib") == 0)
        return (double)fib_fork_count(size);
    return work->unit ? (double)size : 1;
}

const bench_target targets[] = {
    {"fib", 1, TARGET_SLOWDOWN_MAX, 1.35},      {"fib", 2, TARGET_SPEEDUP_MIN, 1.40},
    {"nqueens", 1, TARGET_SLOWDOWN_MAX, 1.06},  {"nqueens", 2, TARGET_SPEEDUP_MIN, 1.85},
    {"quicksort", 2, TARGET_SPEEDUP_MIN, 1.95}, {"matmul", 2, TARGET_SPEEDUP_MIN, 1.95},
    {"uts", 1, TARGET_SLOWDOWN_MAX, 1.02},      {"uts", 2, TARGET_SPEEDUP_MIN, 1.94},
    {"for", 2, TARGET_SPEEDUP_MIN, 1.96},       {"small_for", 1, TARGET_SPEEDUP_MIN, 0.97},
    {"small_for", 2, TARGET_SPEEDUP_MIN, 1.60}, {"lumps", 2, TARGET_SPEEDUP_MIN, 1.80},
    {"hidden", 2, TARGET_SPEEDUP_MIN, 1.90},    {"flat", 1, TARGET_UNIT_NS_MAX, 5},
    {"flat", 2, TARGET_UNIT_NS_MAX, 5},         {"idle", 2, TARGET_CPU_MS_MAX, 0.2},
    {"wake", 2, TARGET_MEDIAN_MAX, 1.3},        {"wake", 2, TARGET_P99_MAX, 2},
};
const int target_count = sizeof targets / sizeof targets[0];

const char *work_name(int index)
{
    return index < work_count ? works[index].name : NULL;
}

const char *variant_name(int index)
{
    return index < VARIANT_COUNT ? variant_names[index] : NULL;
}

/* Levenshtein distance: letters to insert, drop or replace to turn one name into the other. */
static int edit_distance(const char *from, const char *to)
{
    enum { LENGTH_MAX = 32 };
    int row[LENGTH_MAX + 1];
    int length = (int)strlen(to);

    if (length > LENGTH_MAX)
        return length;
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 1; *from; from++, i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int best = diagonal + (*from != to[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[length];
}

const char *nearest_name(const char *typed, const char *(*name)(int index))
{
    const char *nearest = NULL;
    int nearest_distance = 4; /* from this distance on, it is no typing error */
    for (int i = 0; name(i); i++) {
        int distance = edit_distance(typed, name(i));
        /* At least one letter of a short name must remain, or it would be near to everything. */
        if (distance < nearest_distance && distance < (int)strlen(name(i))) {
            nearest = name(i);
            nearest_distance = distance;
        }
    }
    return nearest;
}
