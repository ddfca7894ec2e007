// SPDX-License-Identifier: MIT
// C++ exceptions and waits: a task keeps its own exceptions over every wait, and a new task has
// none, whatever ran on its thread before.
#include <filch/filch.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

static const char *place;

static void expect_at(int line, bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "%s, line %d: not so: %s\n", place, line, what);
        std::_Exit(1);
    }
}

#define EXPECT(condition) expect_at(__LINE__, condition, #condition)

/* No exception is handled or in flight. */
static bool is_clean()
{
    return !std::current_exception() && std::uncaught_exceptions() == 0;
}

static std::string current_text()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception &e) {
        return e.what();
    }
}

struct meeting {
    filch_event ready, go;
};

/* Let the other task run, and wait until it has. */
static void meet(filch_frame *f, meeting *m)
{
    filch_event_set(&m->ready);
    filch_event_wait(f, &m->go);
}

static void throw_and_catch(const char *text)
{
    EXPECT(is_clean());
    try {
        throw std::runtime_error(text);
    } catch (const std::exception &e) {
        EXPECT(!std::strcmp(e.what(), text));
    }
    EXPECT(is_clean());
}

/* ---- a wait in a catch ----------------------------------------------------------------------- */

static int wait_in_catch(filch_frame *f, void *arg)
{
    auto *m = static_cast<meeting *>(arg);

    EXPECT(is_clean());
    try {
        try {
            throw std::runtime_error("mine");
        } catch (const std::exception &e) {
            meet(f, m);
            EXPECT(!std::strcmp(e.what(), "mine"));
            EXPECT(current_text() == "mine");
            EXPECT(std::uncaught_exceptions() == 0);
            throw;
        }
    } catch (const std::runtime_error &e) {
        EXPECT(!std::strcmp(e.what(), "mine"));
        filch_yield(f);
        EXPECT(current_text() == "mine");
    }
    EXPECT(is_clean());
    return 0;
}

/* It throws while the task above waits in its catch, and lets that end while it is in its own. */
static int answer_in_catch(filch_frame *f, void *arg)
{
    auto *m = static_cast<meeting *>(arg);

    filch_event_wait(f, &m->ready);
    throw_and_catch("between");
    try {
        throw std::logic_error("other");
    } catch (const std::exception &) {
        filch_event_set(&m->go);
        for (int i = 0; i < 10; i++) {
            filch_yield(f);
            EXPECT(current_text() == "other");
        }
    }
    EXPECT(is_clean());
    return 0;
}

/* ---- a wait while an exception is in flight -------------------------------------------------- */

struct waits_at_end {
    filch_frame *f;
    meeting *m;

    ~waits_at_end()
    {
        EXPECT(std::uncaught_exceptions() == 1);
        meet(f, m);
        EXPECT(std::uncaught_exceptions() == 1);
        throw_and_catch_in_flight();
    }

    static void throw_and_catch_in_flight()
    {
        try {
            throw 1;
        } catch (int) {
            EXPECT(std::uncaught_exceptions() == 1);
        }
    }
};

static int wait_in_flight(filch_frame *f, void *arg)
{
    EXPECT(is_clean());
    try {
        waits_at_end guard{f, static_cast<meeting *>(arg)};
        throw std::runtime_error("in flight");
    } catch (const std::exception &) {
        EXPECT(current_text() == "in flight");
    }
    EXPECT(is_clean());
    return 0;
}

/* ---- a join in a catch ----------------------------------------------------------------------- */

/* Either a thief runs it, or another strand of the same worker: the parent waits for it before the
 * join. So it starts with no exceptions, although its parent is in a catch. */
FILCH_TASK(int, child_task, (meeting *, m))
{
    throw_and_catch("child");
    filch_event_set(&m->ready);
    try {
        throw std::runtime_error("child");
    } catch (const std::exception &) {
        filch_event_wait(FILCH_HERE, &m->go);
        EXPECT(current_text() == "child");
    }
    return 7;
}

FILCH_TASK(void, parent_task)
{
    meeting m{};
    try {
        throw std::runtime_error("parent");
    } catch (const std::exception &) {
        FILCH_FORK(child, child_task, &m);
        filch_event_wait(FILCH_HERE, &m.ready);
        EXPECT(current_text() == "parent");
        filch_event_set(&m.go);
        EXPECT(FILCH_JOIN(child) == 7);
        EXPECT(current_text() == "parent");
    }
    EXPECT(is_clean());
}

/* A deep recursion: with several workers, joins in a catch wait for thieves now and then. */
FILCH_TASK(long, fib_in_catch, (long, n))
{
    if (n < 2)
        return n;
    try {
        throw n;
    } catch (const long &value) {
        FILCH_FORK(left, fib_in_catch, n - 1);
        long right = FILCH_CALL(fib_in_catch, n - 2);
        long sum = FILCH_JOIN(left) + right;
        EXPECT(value == n);
        try {
            throw;
        } catch (const long &again) {
            EXPECT(again == n);
        }
        return sum;
    }
}

/* ---- filch_run in a catch -------------------------------------------------------------------- */

static void clean_job(filch_frame *f, void *arg)
{
    throw_and_catch("job");
    try {
        throw std::runtime_error("job");
    } catch (const std::exception &) {
        filch_yield(f);
        if (arg)
            filch_run(static_cast<filch_pool *>(arg), clean_job, nullptr);
        EXPECT(current_text() == "job");
    }
    EXPECT(is_clean());
}

static void run_in_catch(filch_pool *pool, filch_pool *other)
{
    try {
        throw std::runtime_error("outside");
    } catch (const std::exception &e) {
        EXPECT(filch_run(pool, clean_job, other) == 0);
        EXPECT(filch_run(pool, clean_job, pool) == 0);
        EXPECT(!std::strcmp(e.what(), "outside"));
        EXPECT(current_text() == "outside");
    }
    EXPECT(is_clean());
}

struct pools {
    filch_pool *mine, *other;
};

static void run_in_catch_of_task(filch_frame *, void *arg)
{
    auto *p = static_cast<pools *>(arg);
    run_in_catch(p->other, p->mine);
    run_in_catch(p->mine, p->other);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void run_pair(filch_pool *pool, filch_task_fn *first)
{
    for (int i = 0; i < 20; i++) {
        meeting m{};
        filch_scope scope;
        EXPECT(filch_scope_open(nullptr, &scope, pool, nullptr) == 0);
        EXPECT(filch_scope_spawn(nullptr, &scope, first, &m) == 0);
        EXPECT(filch_scope_spawn(nullptr, &scope, answer_in_catch, &m) == 0);
        EXPECT(filch_scope_close(nullptr, &scope) == 0);
    }
}

int main()
{
    for (unsigned workers : {1u, 2u, 4u}) {
        filch_options options{};
        filch_pool *pool, *other;

        options.size = sizeof options;
        options.workers = workers;
        EXPECT(filch_pool_create(&pool, &options) == 0);
        EXPECT(filch_pool_create(&other, &options) == 0);

        place = "a wait in a catch";
        run_pair(pool, wait_in_catch);

        place = "a wait while an exception is in flight";
        run_pair(pool, wait_in_flight);

        place = "a join in a catch";
        FILCH_RUN(pool, parent_task);
        EXPECT(FILCH_RUN(pool, fib_in_catch, 16) == 987);

        place = "a run in a catch";
        run_in_catch(pool, other);
        pools both{pool, other};
        EXPECT(filch_run(pool, run_in_catch_of_task, &both) == 0);

        EXPECT(filch_pool_destroy(pool) == 0);
        EXPECT(filch_pool_destroy(other) == 0);
    }
    return 0;
}
