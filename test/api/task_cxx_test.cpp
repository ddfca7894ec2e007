/* SPDX-License-Identifier: MIT */
/* The macros of filch/task.h in C++17, with and without a namespace. */
#include <filch/task.h>

#include <cstdio>
#include <initializer_list>

#ifdef TEST_NAMESPACE
namespace TEST_NAMESPACE
{
#endif

struct large {
    long values[20];
};

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

FILCH_TASK(void, add_to, (long *, sum), (long, value))
{
    __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

FILCH_TASK(int, take_const, (const int, a), (const char *const, b))
{
    return a + b[0];
}

FILCH_TASK(large, spread, (long, value), (const char *, text))
{
    large result{};
    long sum = 0;

    for (long i = 0; i < 20; i++)
        FILCH_SPAWN(add_to, &sum, value);
    FILCH_SYNC();
    for (long &v : result.values)
        v = text ? sum : 0;
    return result;
}

FILCH_DECLARE(bool, is_even, (unsigned, n));

FILCH_TASK(bool, is_odd, (unsigned, n))
{
    if (n == 0)
        return false;
    FILCH_FORK(child, is_even, n - 1);
    return FILCH_JOIN(child);
}

FILCH_BODY(bool, is_even, (unsigned, n))
{
    if (n == 0)
        return true;
    FILCH_FORK(child, is_odd, n - 1);
    return FILCH_JOIN(child);
}

FILCH_TASK(long, wide)
{
    fib_forked child[16];
    spread_forked other;
    long sum = 0;

    for (long i = 0; i < 16; i++)
        FILCH_FORK_INTO(child[i], fib, i);
    FILCH_FORK_INTO(other, spread, 2, "text");
    sum += FILCH_JOIN_FROM(other, spread).values[19];
    for (int i = 16; i-- > 0;)
        sum += FILCH_JOIN_FROM(child[i], fib);
    return sum;
}

#ifdef TEST_NAMESPACE
} // namespace TEST_NAMESPACE
using namespace TEST_NAMESPACE;
#endif

static void plain(filch_frame *f, void *arg)
{
    (void)f;
    *static_cast<int *>(arg) += 1;
}

static int failures;

static void expect(bool holds, const char *what, unsigned workers)
{
    if (!holds) {
        std::fprintf(stderr, "with %u workers, not so: %s\n", workers, what);
        failures++;
    }
}

int main()
{
    for (unsigned workers : {0u, 1u, 2u, 4u}) {
        filch_options options{};
        filch_pool *pool = nullptr;
        int count = 0;

        options.size = sizeof options;
        options.workers = workers;
        if (workers > 0)
            expect(filch_pool_create(&pool, &options) == 0, "a pool", workers);
        expect(FILCH_RUN(pool, fib, 20) == 6765, "fib", workers);
        expect(FILCH_RUN(pool, spread, 3, "text").values[7] == 60, "spread", workers);
        expect(FILCH_RUN(pool, is_even, 100), "is_even", workers);
        expect(FILCH_RUN(pool, take_const, 3, "a") == 100, "const arguments", workers);
        expect(FILCH_RUN(pool, wide) == 1596 + 40, "wide", workers);
        if (pool) {
            expect(FILCH_SUBMIT(pool, fib, 10) == 0, "submit", workers);
            fib_future answer;
            expect(FILCH_FUTURE_SUBMIT(pool, &answer, fib, 10) == 0, "submit a future", workers);
            expect(filch_future_get(nullptr, &answer.future, nullptr) == 0 && answer.result == 55,
                   "a typed future", workers);
            expect(filch_run(pool, plain, &count) == 0 && count == 1, "plain", workers);
            expect(filch_pool_destroy(pool) == 0, "destroy", workers);
        }
    }
    return failures > 0;
}
