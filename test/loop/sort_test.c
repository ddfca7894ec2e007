/* SPDX-License-Identifier: MIT */
/* filch_sort and filch_sort_stable: elements of all sizes, in any order, by any comparison. */
#include "watchdog.h"

#include "base/fault.h"
#include "base/rng.h"

#include <filch/filch.h>
#include <stdalign.h>

static const unsigned worker_counts[] = {1, 2, 4};
static filch_pool *pools[COUNT_OF(worker_counts)];

static int create_pools(void **state)
{
    for (size_t i = 0; i < COUNT_OF(pools); i++)
        pools[i] = watched_pool_of(worker_counts[i]);
    return watchdog_start(state);
}

static int kick(void **state __attribute__((unused)))
{
    watchdog_kick();
    return 0;
}

static int destroy_pools(void **state)
{
    for (size_t i = 0; i < COUNT_OF(pools); i++)
        watched_pool_destroy(pools[i]);
    return watchdog_stop(state);
}

static filch_atomic_u32 has_no_memory;

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: the thread that sets it waits for the sort that reads it. */
    return kind == FILCH_FAULT_MALLOC && filch_load_relaxed(&has_no_memory);
}

typedef void sort_fn(filch_pool *, void *, size_t, size_t, filch_compare_fn *, void *);

static void sort_stable_in_place(filch_pool *pool, void *base, size_t count, size_t size,
                                 filch_compare_fn *compare, void *context)
{
    /* relaxed: as above. */
    filch_store_relaxed(&has_no_memory, 1);
    filch_pool_sort_stable(pool, base, count, size, compare, context);
    /* relaxed: as above. */
    filch_store_relaxed(&has_no_memory, 0);
}

static void sort_without_frame(filch_pool *pool, void *base, size_t count, size_t size,
                               filch_compare_fn *fn, void *context)
{
    (void)pool;
    filch_sort(NULL, base, count, size, fn, context);
}

static void sort_stable_without_frame(filch_pool *pool, void *base, size_t count, size_t size,
                                      filch_compare_fn *fn, void *context)
{
    (void)pool;
    filch_sort_stable(NULL, base, count, size, fn, context);
}

static const struct {
    sort_fn *sort;
    bool is_stable;
} sorts[] = {
    {filch_pool_sort, false},    {filch_pool_sort_stable, true},    {sort_stable_in_place, true},
    {sort_without_frame, false}, {sort_stable_without_frame, true},
};

/* ---- Elements: a key, then where it was before sorting, then bytes that follow from the two -- */

static size_t key_bytes(size_t size)
{
    return size < 2 ? 1 : size < 8 ? 2 : 4;
}

/* As many bytes as are left, up to four. */
static size_t place_bytes(size_t size)
{
    size_t left = size - key_bytes(size);
    return left < 4 ? left : 4;
}

static uint32_t number_at(const unsigned char *at, size_t bytes)
{
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint32_t)at[i] << (8 * i);
    return number;
}

static void write_element(unsigned char *at, size_t size, uint32_t key, size_t place)
{
    for (size_t i = 0; i < size; i++) {
        size_t from_place = i - key_bytes(size);
        if (i < key_bytes(size))
            at[i] = (unsigned char)(key >> (8 * i));
        else if (from_place < place_bytes(size))
            at[i] = (unsigned char)(place >> (8 * from_place));
        else
            at[i] = (unsigned char)(key * 31 + place * 7 + i);
    }
}

static int by_key(const void *a, const void *b, void *context)
{
    size_t bytes = key_bytes(*(size_t *)context);
    uint32_t x = number_at(a, bytes), y = number_at(b, bytes);
    return (x > y) - (x < y);
}

/* A sum over the elements that does not depend on their order. */
static uint64_t checksum(const unsigned char *base, size_t count, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = UINT64_C(14695981039346656037);
        for (size_t byte = 0; byte < size; byte++)
            hash = (hash ^ base[i * size + byte]) * UINT64_C(1099511628211);
        sum += hash ^ hash >> 29;
    }
    return sum;
}

static void assert_sorted(const unsigned char *base, size_t count, size_t size, bool is_stable)
{
    size_t bytes = key_bytes(size);
    uint64_t places = UINT64_C(1) << (8 * place_bytes(size));

    for (size_t i = 1; i < count; i++) {
        const unsigned char *b = base + i * size, *a = b - size;
        assert_true(number_at(a, bytes) <= number_at(b, bytes));
        if (is_stable && count <= places && number_at(a, bytes) == number_at(b, bytes))
            assert_true(number_at(a + bytes, place_bytes(size)) <
                        number_at(b + bytes, place_bytes(size)));
    }
}

/* ---- Orders ---------------------------------------------------------------------------------- */

typedef uint32_t order_fn(filch_rng *rng, uint32_t i, uint32_t n);

static uint32_t random_keys(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)i, (void)n;
    return (uint32_t)filch_rng_next(rng);
}
static uint32_t few_keys(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)i, (void)n;
    return filch_rng_below(rng, 4);
}
static uint32_t twice_each(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)i;
    return filch_rng_below(rng, n / 2 + 1);
}
static uint32_t all_equal(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng, (void)i, (void)n;
    return 7;
}
static uint32_t sorted(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng, (void)n;
    return i;
}
static uint32_t reversed(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return n - i;
}
static uint32_t reversed_in_pairs(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return (n - i) / 2;
}
static uint32_t organ_pipe(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return i < n / 2 ? i : n - i;
}
static uint32_t saw_teeth(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng, (void)n;
    return i % 100;
}
static uint32_t interleaved(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return i % 2 ? n - i : i;
}
static uint32_t nearly_sorted(filch_rng *rng, uint32_t i, uint32_t n)
{
    return filch_rng_below(rng, 50) ? i : filch_rng_below(rng, n);
}
static uint32_t sorted_but_the_last(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return i + 1 < n ? i : 0;
}
static uint32_t one_greater(filch_rng *rng, uint32_t i, uint32_t n)
{
    (void)rng;
    return i == n / 3;
}

static order_fn *const orders[] = {
    random_keys,   few_keys,   twice_each,  all_equal,         sorted,      reversed,
    saw_teeth,     organ_pipe, interleaved, reversed_in_pairs, one_greater, sorted_but_the_last,
    nearly_sorted,
};

static void fill(unsigned char *base, size_t count, size_t size, order_fn *order, uint64_t seed)
{
    filch_rng rng;
    filch_rng_seed(&rng, seed);
    for (size_t i = 0; i < count; i++)
        write_element(base + i * size, size, order(&rng, (uint32_t)i, (uint32_t)count), i);
}

/* The array starts `offset` bytes into its memory and ends with it, so that a sanitizer sees an
 * access behind the end. */
static void check_sorts(filch_pool *pool, size_t count, size_t size, size_t offset, order_fn *order)
{
    unsigned char *memory = malloc(offset + count * size + (offset + count * size == 0));
    unsigned char *base = memory + offset;
    assert_non_null(memory);

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        fill(base, count, size, order, count + size);
        uint64_t sum = checksum(base, count, size);

        sorts[i].sort(pool, base, count, size, by_key, &size);

        assert_true(checksum(base, count, size) == sum);
        assert_sorted(base, count, size, sorts[i].is_stable);
    }
    free(memory);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static int never_called(const void *a, const void *b, void *context)
{
    (void)a, (void)b;
    *(bool *)context = true;
    return 0;
}

TEST(an_array_without_elements_or_bytes_is_sorted)
{
    bool was_called = false;
    char byte = 1;

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        sorts[i].sort(pools[1], NULL, 0, 8, never_called, &was_called);
        sorts[i].sort(pools[1], &byte, 1000, 0, never_called, &was_called);
        sorts[i].sort(pools[1], &byte, 1, 1, never_called, &was_called);
    }

    assert_false(was_called);
}

TEST(an_array_that_cannot_exist_is_left_alone)
{
    bool was_called = false;
    char byte = 1;

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        sorts[i].sort(pools[1], &byte, SIZE_MAX, 2, never_called, &was_called);
        sorts[i].sort(pools[1], &byte, SIZE_MAX / 8 + 2, 8, never_called, &was_called);
    }

    assert_false(was_called);
}

static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 24, 100, 300};

TEST(every_count_up_to_200_of_every_size)
{
    for (size_t size = 0; size < COUNT_OF(sizes); size++)
        for (size_t count = 0; count <= 200; count++)
            check_sorts(pools[count % COUNT_OF(pools)], count, sizes[size], 0, twice_each);
}

TEST(an_array_may_start_at_any_address)
{
    for (size_t size = 0; size < COUNT_OF(sizes); size++)
        for (size_t offset = 1; offset < 16; offset++)
            check_sorts(pools[1], 300, sizes[size], offset, twice_each);
}

TEST(every_order_with_every_number_of_workers)
{
    static const size_t some_sizes[] = {4, 8, 16, 20};

    for (size_t pool = 0; pool < COUNT_OF(pools); pool++)
        for (size_t order = 0; order < COUNT_OF(orders); order++)
            for (size_t size = 0; size < COUNT_OF(some_sizes); size++)
                check_sorts(pools[pool], 3000, some_sizes[size], 0, orders[order]);
}

/* Large enough for all workers to partition together. */
TEST(every_order_of_a_large_array)
{
    for (size_t order = 0; order < COUNT_OF(orders); order++)
        check_sorts(pools[1 + order % 2], 70001, order % 3 ? 8 : 12, 0, orders[order]);
}

TEST(without_a_pool_it_sorts_serially)
{
    check_sorts(NULL, 1000, 8, 0, random_keys);
}

/* ---- By a task, among others ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b, void *context)
{
    long x = *(const long *)a, y = *(const long *)b;
    (void)context;
    return (x > y) - (x < y);
}

FILCH_TASK(long, nothing_but, (long, n))
{
    return n;
}

FILCH_TASK(void, sort_rows, (long *, rows), (size_t, row_count), (size_t, row_length))
{
    if (row_count > 1) {
        size_t half = row_count / 2;
        FILCH_FORK(left, sort_rows, rows, half, row_length);
        FILCH_CALL(sort_rows, rows + half * row_length, row_count - half, row_length);
        FILCH_JOIN(left);
        return;
    }
    FILCH_FORK(before, nothing_but, 42);
    filch_sort(FILCH_HERE, rows, row_length, sizeof *rows, by_value, NULL);
    filch_sort_stable(FILCH_HERE, rows, row_length / 2, sizeof *rows, by_value, NULL);
    rows[0] += FILCH_JOIN(before) - 42;
}

TEST(many_tasks_sort_at_once)
{
    enum { ROWS = 37, LENGTH_OF_ROW = 2500 };
    static long rows[ROWS * LENGTH_OF_ROW];
    filch_rng rng;

    for (size_t pool = 0; pool < COUNT_OF(pools); pool++) {
        long sum = 0;
        filch_rng_seed(&rng, pool);
        for (size_t i = 0; i < ROWS * LENGTH_OF_ROW; i++)
            sum += rows[i] = filch_rng_below(&rng, 1000000);

        FILCH_RUN(pools[pool], sort_rows, rows, ROWS, LENGTH_OF_ROW);

        for (size_t i = 0; i < ROWS * LENGTH_OF_ROW; i++) {
            sum -= rows[i];
            assert_true(i % LENGTH_OF_ROW == 0 || rows[i - 1] <= rows[i]);
        }
        assert_int_equal(sum, 0);
    }
}

/* ---- Arguments of the comparison ------------------------------------------------------------- */

typedef struct wide {
    alignas(64) unsigned key;
} wide;

static bool saw_misaligned;

static int by_wide_key(const void *a, const void *b, void *context)
{
    bool *is_misaligned = context;
    if (((uintptr_t)a | (uintptr_t)b) % alignof(wide))
        *is_misaligned = true;
    const wide *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

TEST(the_comparison_sees_elements_as_aligned_as_the_array)
{
    static wide array[500];
    filch_rng rng;
    filch_rng_seed(&rng, 1);

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        for (size_t j = 0; j < COUNT_OF(array); j++)
            array[j].key = (unsigned)filch_rng_next(&rng);
        sorts[i].sort(pools[0], array, COUNT_OF(array), sizeof *array, by_wide_key,
                      &saw_misaligned);
    }

    assert_false(saw_misaligned);
}

/* ---- Comparisons that contradict themselves -------------------------------------------------- */

static int as_the_bytes_say(const void *a, const void *b, void *context)
{
    (void)context;
    uint64_t x = (uint64_t)(uintptr_t)a * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)(uintptr_t)b;
    x = (x ^ x >> 31) * UINT64_C(0xBF58476D1CE4E5B9);
    return (int)(x >> 61) - 3;
}
static int always_less(const void *a, const void *b, void *context)
{
    (void)a, (void)b, (void)context;
    return -1;
}
static int always_greater(const void *a, const void *b, void *context)
{
    (void)a, (void)b, (void)context;
    return INT32_MAX;
}
static int never_greater(const void *a, const void *b, void *context)
{
    return by_key(a, b, context) < 0 ? INT32_MIN : 0;
}
static int in_circles(const void *a, const void *b, void *context)
{
    size_t bytes = key_bytes(*(size_t *)context);
    uint32_t x = number_at(a, bytes) % 3, y = number_at(b, bytes) % 3;
    return x == y ? 0 : (x + 1) % 3 == y ? -1 : 1;
}

TEST(a_comparison_that_contradicts_itself_spoils_only_the_order)
{
    static filch_compare_fn *const compares[] = {as_the_bytes_say, always_less, always_greater,
                                                 never_greater, in_circles};
    static const size_t counts[] = {2, 19, 20, 21, 22, 100, 999, 5000, 70000};
    static const size_t some_sizes[] = {8, 4, 24};

    for (size_t c = 0; c < COUNT_OF(compares); c++) {
        for (size_t n = 0; n < COUNT_OF(counts); n++) {
            size_t size = some_sizes[n % COUNT_OF(some_sizes)];
            unsigned char *base = malloc(counts[n] * size);
            assert_non_null(base);
            for (size_t i = 0; i < COUNT_OF(sorts); i++) {
                fill(base, counts[n], size, twice_each, n);
                uint64_t sum = checksum(base, counts[n], size);

                sorts[i].sort(pools[n % COUNT_OF(pools)], base, counts[n], size, compares[c],
                              &size);

                assert_true(checksum(base, counts[n], size) == sum);
            }
            free(base);
        }
    }
}

/* ---- How many comparisons; by one worker, so that they can be counted ------------------------ */

typedef struct counted {
    size_t size;
    uint64_t count;
} counted;

static int by_key_counting(const void *a, const void *b, void *context)
{
    counted *c = context;
    c->count++;
    return by_key(a, b, &c->size);
}

static uint64_t n_log2_n(uint64_t n)
{
    return n * (64 - (unsigned)__builtin_clzll(n));
}

TEST(no_order_takes_many_comparisons)
{
    enum { COUNT = 20000 };
    static uint64_t array[COUNT];

    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        for (size_t i = 0; i < COUNT_OF(sorts); i++) {
            counted c = {.size = sizeof *array};
            fill((unsigned char *)array, COUNT, sizeof *array, orders[order], 3);

            sorts[i].sort(pools[0], array, COUNT, sizeof *array, by_key_counting, &c);

            uint64_t bound = n_log2_n(COUNT) * 3 / 2;
            if (orders[order] == sorted || orders[order] == all_equal || orders[order] == reversed)
                bound = 2 * COUNT;
            else if (orders[order] == few_keys && !sorts[i].is_stable)
                bound = 8 * COUNT;
            assert_in_range(c.count, COUNT - 1, bound);
        }
    }
}

static int rarely_less(const void *a, const void *b, void *context)
{
    counted *c = context;
    (void)a, (void)b;
    return ++c->count % 4099 ? 1 : -1;
}

TEST(nonsense_does_not_take_many_comparisons_either)
{
    enum { COUNT = 20000 };
    static uint64_t array[COUNT];

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        counted c = {0};
        fill((unsigned char *)array, COUNT, sizeof *array, random_keys, 4);

        sorts[i].sort(pools[0], array, COUNT, sizeof *array, rarely_less, &c);

        assert_in_range(c.count, 4099, 4 * n_log2_n(COUNT));
    }
}

/*
 * McIlroy, "A killer adversary for quicksort" (1999): values are decided when they are compared, so
 * that the pivot is always among the least.
 */
typedef struct adversary {
    uint32_t *value, solid, gas, candidate;
    uint64_t count;
} adversary;

static int by_malice(const void *a, const void *b, void *context)
{
    adversary *m = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    m->count++;
    if (m->value[x] == m->gas && m->value[y] == m->gas)
        m->value[x == m->candidate ? x : y] = m->solid++;
    if (m->value[x] == m->gas)
        m->candidate = x;
    else if (m->value[y] == m->gas)
        m->candidate = y;
    return (m->value[x] > m->value[y]) - (m->value[x] < m->value[y]);
}

TEST(an_adversary_cannot_make_it_quadratic)
{
    enum { COUNT = 50000 };
    static uint32_t array[COUNT], value[COUNT];

    for (size_t i = 0; i < COUNT_OF(sorts); i++) {
        adversary m = {.value = value, .gas = COUNT};
        for (uint32_t j = 0; j < COUNT; j++) {
            array[j] = j;
            value[j] = m.gas;
        }

        sorts[i].sort(pools[0], array, COUNT, sizeof *array, by_malice, &m);

        assert_in_range(m.count, COUNT - 1, 4 * n_log2_n(COUNT));
        for (uint32_t j = 1; j < COUNT; j++)
            assert_true(value[array[j - 1]] <= value[array[j]]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_array_without_elements_or_bytes_is_sorted, kick),
        cmocka_unit_test_setup(an_array_that_cannot_exist_is_left_alone, kick),
        cmocka_unit_test_setup(every_count_up_to_200_of_every_size, kick),
        cmocka_unit_test_setup(an_array_may_start_at_any_address, kick),
        cmocka_unit_test_setup(every_order_with_every_number_of_workers, kick),
        cmocka_unit_test_setup(every_order_of_a_large_array, kick),
        cmocka_unit_test_setup(without_a_pool_it_sorts_serially, kick),
        cmocka_unit_test_setup(many_tasks_sort_at_once, kick),
        cmocka_unit_test_setup(the_comparison_sees_elements_as_aligned_as_the_array, kick),
        cmocka_unit_test_setup(a_comparison_that_contradicts_itself_spoils_only_the_order, kick),
        cmocka_unit_test_setup(no_order_takes_many_comparisons, kick),
        cmocka_unit_test_setup(nonsense_does_not_take_many_comparisons_either, kick),
        cmocka_unit_test_setup(an_adversary_cannot_make_it_quadratic, kick),
    };
    return cmocka_run_group_tests_name("sort", tests, create_pools, destroy_pools);
}
