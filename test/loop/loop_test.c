/* SPDX-License-Identifier: MIT */
#include "watchdog.h"

#include <filch/loop.h>

#define N 50000

static unsigned char visits[N];

static void visit(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)f;
    unsigned char *array = context;
    for (size_t i = begin; i < end; i++)
        array[i]++;
}

FILCH_TASK(void, visit_all, (size_t, begin), (size_t, end))
{
    filch_for(FILCH_HERE, begin, end, visit, visits);
}

static void for_visits_every_index_exactly_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 100, 1000, N};
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int repeat = 0; repeat < 20; repeat++) {
                memset(visits, 0, sizeof visits);
                size_t begin = (size_t)repeat < sizes[s] ? (size_t)repeat : 0;

                FILCH_RUN(pool, visit_all, begin, sizes[s]);

                for (size_t i = 0; i < N; i++)
                    assert_int_equal(visits[i], i >= begin && i < sizes[s]);
            }
        watched_pool_destroy(pool);
    }
}

static void count_visits(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)f;
    uint32_t *counts = context;
    for (size_t i = begin; i < end; i++)
        counts[i]++;
}

FILCH_TASK(void, visit_again_and_again, (uint32_t *, counts), (size_t, count), (int, repeats))
{
    for (int i = 0; i < repeats; i++)
        filch_for(FILCH_HERE, 0, count, count_visits, counts);
}

/* A loop offers halves without waking workers while thieves take them. A half that is both stolen
 * and kept would be visited twice. */
static void short_loops_in_a_row_miss_nothing(void **state)
{
    (void)state;
    enum { COUNT = 8192, REPEATS = 20000 };
    static uint32_t counts[COUNT];
    for (unsigned workers = 2; workers <= 3; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        memset(counts, 0, sizeof counts);

        FILCH_RUN(pool, visit_again_and_again, counts, COUNT, REPEATS);

        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(counts[i], REPEATS);
        watched_pool_destroy(pool);
    }
}

static void count_range(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)f;
    counter_add(context, end - begin);
}

FILCH_TASK(void, count_to, (counter *, sum), (size_t, begin), (size_t, end))
{
    filch_for(FILCH_HERE, begin, end, count_range, sum);
}

static void a_range_may_be_as_long_as_a_size(void **state)
{
    (void)state;
    filch_pool *pool = watched_pool_of(2);

    /* The body takes the same time for any range, so the chunks keep growing. */
    for (int i = 0; i < 5; i++) {
        counter sum = {0};
        FILCH_RUN(pool, count_to, &sum, 0, SIZE_MAX);
        assert_true(counter_get(&sum) == SIZE_MAX);
        FILCH_RUN(pool, count_to, &sum, SIZE_MAX - 5, SIZE_MAX);
        assert_true(counter_get(&sum) == 4);
    }
    watched_pool_destroy(pool);
}

FILCH_TASK(void, visit_backwards)
{
    filch_for(FILCH_HERE, 10, 5, visit, visits);
}

static void an_empty_or_reversed_range_calls_nothing(void **state)
{
    (void)state;
    filch_pool *pool = watched_pool_of(2);
    memset(visits, 0, sizeof visits);

    FILCH_RUN(pool, visit_backwards);

    for (size_t i = 0; i < N; i++)
        assert_int_equal(visits[i], 0);
    watched_pool_destroy(pool);
}

/* A body whose cost differs by a factor of thousands, and which contains a loop. */
static void visit_rows(filch_frame *f, void *context, size_t begin, size_t end)
{
    unsigned char *array = context;
    for (size_t row = begin; row < end; row++) {
        size_t start = row * row / 2, stop = (row + 1) * (row + 1) / 2;
        filch_for(f, start < N ? start : N, stop < N ? stop : N, visit, array);
    }
}

FILCH_TASK(void, visit_triangle)
{
    filch_for(FILCH_HERE, 0, 400, visit_rows, visits);
}

static void loops_nest_and_may_be_irregular(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        memset(visits, 0, sizeof visits);

        FILCH_RUN(pool, visit_triangle);

        for (size_t i = 0; i < N; i++)
            assert_int_equal(visits[i], 1);
        watched_pool_destroy(pool);
    }
}

/* Concatenation is associative and not commutative: the order of the indices shows. */
struct text {
    size_t length;
    size_t first, last;
    int in_order;
};

static void init_text(void *accumulator, void *context)
{
    (void)context;
    *(struct text *)accumulator = (struct text){.in_order = 1};
}

static void add_text(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    (void)f;
    (void)context;
    struct text *text = accumulator;
    if (text->length == 0)
        text->first = begin;
    else if (text->last != begin)
        text->in_order = 0;
    text->last = end;
    text->length += end - begin;
}

static void merge_text(void *left, const void *right, void *context)
{
    (void)context;
    struct text *l = left;
    const struct text *r = right;
    if (r->length == 0)
        return;
    if (l->length == 0) {
        *l = *r;
        return;
    }
    l->in_order = l->in_order && r->in_order && l->last == r->first;
    l->last = r->last;
    l->length += r->length;
}

static const filch_reducer text_reducer = {sizeof(struct text), init_text, add_text, merge_text};

FILCH_TASK(struct text, reduce_text, (size_t, n), (bool, fixed), (size_t, leaf))
{
    struct text text;
    if (fixed)
        CHECK(filch_reduce_fixed(FILCH_HERE, 3, n, leaf, &text_reducer, NULL, &text) == 0);
    else
        filch_reduce(FILCH_HERE, 3, n, &text_reducer, NULL, &text);
    return text;
}

static void reduce_keeps_the_order_of_the_indices(void **state)
{
    (void)state;
    static const size_t sizes[] = {3, 4, 5, 10, 1000, 1000000};
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int variant = 0; variant < 4; variant++) {
                struct text text = FILCH_RUN(pool, reduce_text, sizes[s], variant > 0,
                                             variant == 2   ? 1000
                                             : variant == 3 ? sizes[s]
                                                            : 0);

                assert_int_equal(text.length, sizes[s] - 3);
                assert_true(text.in_order);
                assert_true(text.length == 0 || (text.first == 3 && text.last == sizes[s]));
            }
        watched_pool_destroy(pool);
    }
}

static void add_float(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    (void)f;
    (void)context;
    for (size_t i = begin; i < end; i++)
        *(float *)accumulator += 1.0f / (float)(i + 1);
}

static void merge_float(void *left, const void *right, void *context)
{
    (void)context;
    *(float *)left += *(const float *)right;
}

FILCH_TASK(float, reduce_float)
{
    const filch_reducer reducer = {.size = sizeof(float), .add = add_float, .merge = merge_float};
    float sum;
    filch_reduce_fixed(FILCH_HERE, 0, 300000, 0, &reducer, NULL, &sum);
    return sum;
}

static void a_fixed_reduction_gives_the_same_bits_with_any_number_of_workers(void **state)
{
    (void)state;
    const float expected = FILCH_RUN(NULL, reduce_float);
    for (unsigned workers = 1; workers <= 8; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        for (int repeat = 0; repeat < 5; repeat++) {
            float sum = FILCH_RUN(pool, reduce_float);

            assert_memory_equal(&sum, &expected, sizeof sum);
        }
        watched_pool_destroy(pool);
    }
}

/* An accumulator that is too large for the stack of the loop. */
struct histogram {
    unsigned count[1000];
};

static void add_histogram(filch_frame *f, void *accumulator, void *context, size_t begin,
                          size_t end)
{
    (void)f;
    (void)context;
    struct histogram *histogram = accumulator;
    for (size_t i = begin; i < end; i++)
        histogram->count[i % 1000]++;
}

static void merge_histogram(void *left, const void *right, void *context)
{
    (void)context;
    for (int i = 0; i < 1000; i++)
        ((struct histogram *)left)->count[i] += ((const struct histogram *)right)->count[i];
}

static struct histogram histogram;

FILCH_TASK(void, reduce_histogram)
{
    const filch_reducer reducer = {
        .size = sizeof histogram, .add = add_histogram, .merge = merge_histogram};
    filch_reduce(FILCH_HERE, 0, 1000000, &reducer, NULL, &histogram);
}

static void accumulators_may_be_large(void **state)
{
    (void)state;
    filch_pool *pool = watched_pool_of(4);

    FILCH_RUN(pool, reduce_histogram);

    for (int i = 0; i < 1000; i++)
        assert_int_equal(histogram.count[i], 1000);
    watched_pool_destroy(pool);
}

static void increment(filch_frame *f, void *arg)
{
    (void)f;
    ++*(int *)arg;
}

FILCH_TASK(void, invoke_many, (int *, numbers), (size_t, count))
{
    filch_call *calls = malloc((count + 1) * sizeof *calls);
    for (size_t i = 0; i < count; i++)
        calls[i] = (filch_call){increment, &numbers[i]};
    filch_invoke(FILCH_HERE, calls, count);
    free(calls);
}

static void invoke_makes_every_call_once(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 50, 20000};
    filch_pool *pool = watched_pool_of(3);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int *numbers = calloc(counts[c] + 1, sizeof *numbers);

        FILCH_RUN(pool, invoke_many, numbers, counts[c]);

        for (size_t i = 0; i < counts[c]; i++)
            assert_int_equal(numbers[i], 1);
        free(numbers);
    }
    watched_pool_destroy(pool);
}

/* ---- without a frame ------------------------------------------------------------------------- */

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

/* Uses its frame for everything that a frame is good for. */
static void visit_with_frame(filch_frame *f, void *context, size_t begin, size_t end)
{
    filch_frame *mark = f;
    int numbers[2] = {0, 0};

    CHECK(f != NULL);
    visit(f, context, begin, end);
    CHECK(FILCH_CALL_ON(f, fib, 10) == 55);
    f = filch_fork(f, increment, &numbers[0]);
    f = filch_fork(f, increment, &numbers[1]);
    f = filch_join(f, mark);
    CHECK(numbers[0] == 1 && numbers[1] == 1);
    CHECK(filch_yield(f) == 0);
}

static void add_with_frame(filch_frame *f, void *accumulator, void *context, size_t begin,
                           size_t end)
{
    (void)context;
    CHECK(f != NULL);
    for (size_t i = begin; i < end; i++)
        *(size_t *)accumulator += i;
    filch_for(f, begin, end, visit_with_frame, visits);
}

static void merge_sums(void *left, const void *right, void *context)
{
    (void)context;
    *(size_t *)left += *(const size_t *)right;
}

static void check_loops_without_a_frame(void)
{
    static const filch_reducer sum = {
        .size = sizeof(size_t), .add = add_with_frame, .merge = merge_sums};
    size_t result;
    int numbers[50] = {0};
    filch_call calls[50];

    memset(visits, 0, sizeof visits);
    filch_for(NULL, 3, N, visit_with_frame, visits);
    for (size_t i = 0; i < N; i++)
        CHECK(visits[i] == (i >= 3));
    filch_reduce(NULL, 0, 100, &sum, NULL, &result);
    CHECK(result == 4950);
    CHECK(filch_reduce_fixed(NULL, 0, 100, 7, &sum, NULL, &result) == 0);
    CHECK(result == 4950);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        calls[i] = (filch_call){increment, &numbers[i]};
    filch_invoke(NULL, calls, COUNT_OF(calls));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        CHECK(numbers[i] == 1);

    filch_for(NULL, 1, 0, visit_with_frame, NULL);
    filch_reduce(NULL, 1, 1, &sum, NULL, &result);
    CHECK(result == 0);
    CHECK(filch_reduce_fixed(NULL, 1, 1, 0, &sum, NULL, &result) == 0);
    filch_invoke(NULL, NULL, 0);
}

static void loop_without_frame(filch_frame *f, void *arg)
{
    (void)f;
    (void)arg;
    check_loops_without_a_frame();
}

static void without_a_frame_loops_run_serially(void **state)
{
    (void)state;

    check_loops_without_a_frame();

    filch_pool *pool = watched_pool_of(2);
    assert_int_equal(filch_run(pool, loop_without_frame, NULL), 0);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_visits_every_index_exactly_once),
        cmocka_unit_test(short_loops_in_a_row_miss_nothing),
        cmocka_unit_test(a_range_may_be_as_long_as_a_size),
        cmocka_unit_test(an_empty_or_reversed_range_calls_nothing),
        cmocka_unit_test(loops_nest_and_may_be_irregular),
        cmocka_unit_test(reduce_keeps_the_order_of_the_indices),
        cmocka_unit_test(a_fixed_reduction_gives_the_same_bits_with_any_number_of_workers),
        cmocka_unit_test(accumulators_may_be_large),
        cmocka_unit_test(invoke_makes_every_call_once),
        cmocka_unit_test(without_a_frame_loops_run_serially),
    };
    return cmocka_run_group_tests_name("loop", tests, watchdog_start, watchdog_stop);
}
