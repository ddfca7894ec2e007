/* SPDX-License-Identifier: MIT */
/*
 * Random work in random pools: the counts add up, and nothing waits for ever.
 *
 * Each test runs for FILCH_TEST_SECONDS. FILCH_TEST_SEED repeats the same choices, but not the same
 * schedule.
 */
#include "watchdog.h"

#include "base/clock.h"

static uint64_t end_ns;

static void start_clock(void)
{
    end_ns = filch_clock_ns() + (uint64_t)(test_seconds() * 1e9);
}

static bool is_time_left(void)
{
    watchdog_kick();
    return filch_clock_ns() < end_ns;
}

/* ---- random trees ---------------------------------------------------------------------------- */

/* The number of a node determines its subtree. */
typedef struct node {
    uint64_t number;
    int depth;
} node;

typedef struct sum {
    uint64_t nodes, numbers;
} sum;

#define MOST_CHILDREN 6

/* The ways to run the children of a node. */
enum shape { FORKS, SPAWNS, PLAIN, CALLS, SHAPES };

static uint64_t mix(uint64_t z)
{
    filch_rng rng = {z};
    return filch_rng_next(&rng);
}

static enum shape shape_of(node n)
{
    return (enum shape)(mix(n.number ^ 1) % SHAPES);
}

static unsigned children_of(node n)
{
    return n.depth == 0 ? 0 : (unsigned)(mix(n.number ^ 2) % (MOST_CHILDREN + 1));
}

static unsigned grain_of(node n)
{
    /* Mostly small, sometimes a hundred times larger. */
    uint64_t choice = mix(n.number ^ 3);
    return (unsigned)(choice % 32 == 0 ? choice / 32 % 10000 : choice / 32 % 100);
}

static node child_of(node n, unsigned i)
{
    return (node){mix(n.number + i + 10), n.depth - 1};
}

static sum serial_sum(node n)
{
    sum s = {1, n.number};
    for (unsigned i = 0; i < children_of(n); i++) {
        sum below = serial_sum(child_of(n, i));
        s.nodes += below.nodes;
        s.numbers += below.numbers;
    }
    return s;
}

typedef struct plain_work {
    node n;
    sum s;
} plain_work;

static void sum_plain(filch_frame *f, void *arg);

FILCH_DECLARE(void, sum_into, (node, n), (sum *, s));

FILCH_TASK(sum, sum_of, (node, n))
{
    sum s = {1, n.number}, below[MOST_CHILDREN];
    unsigned count = children_of(n);

    spin(grain_of(n));
    switch (shape_of(n)) {
    case FORKS: {
        sum_of_forked child[MOST_CHILDREN];
        for (unsigned i = 0; i < count; i++)
            FILCH_FORK_INTO(child[i], sum_of, child_of(n, i));
        for (unsigned i = count; i-- > 0;)
            below[i] = FILCH_JOIN_FROM(child[i], sum_of);
        break;
    }
    case SPAWNS:
        for (unsigned i = 0; i < count; i++)
            FILCH_SPAWN(sum_into, child_of(n, i), &below[i]);
        FILCH_SYNC();
        break;
    case PLAIN: {
        plain_work work[MOST_CHILDREN];
        filch_frame *f = FILCH_HERE, *const mark = f;
        for (unsigned i = 0; i < count; i++) {
            work[i].n = child_of(n, i);
            f = filch_fork(f, sum_plain, &work[i]);
        }
        filch_join(f, mark);
        for (unsigned i = 0; i < count; i++)
            below[i] = work[i].s;
        break;
    }
    default:
        for (unsigned i = 0; i < count; i++)
            below[i] = FILCH_CALL(sum_of, child_of(n, i));
    }
    for (unsigned i = 0; i < count; i++) {
        s.nodes += below[i].nodes;
        s.numbers += below[i].numbers;
    }
    return s;
}

FILCH_BODY(void, sum_into, (node, n), (sum *, s))
{
    *s = FILCH_CALL(sum_of, n);
}

static void sum_plain(filch_frame *f, void *arg)
{
    plain_work *work = arg;
    work->s = sum_of_body(f, f, work->n);
}

static filch_options random_options(filch_rng *rng)
{
    return (filch_options){
        .size = sizeof(filch_options),
        .workers = 1 + filch_rng_below(rng, 16),
        .victim = (filch_victim_policy)filch_rng_below(rng, 3),
        .spin = (filch_spin_policy)filch_rng_below(rng, 3),
    };
}

TEST(random_trees_give_the_result_of_the_serial_program)
{
    filch_rng rng;
    uint64_t all_nodes = 0, all_trees = 0;

    filch_rng_seed(&rng, test_seed());
    start_clock();
    while (is_time_left()) {
        filch_options options = random_options(&rng);
        filch_pool *pool = watched_pool_create(&options);

        for (int i = 0; i < 20; i++) {
            node root = {filch_rng_next(&rng), (int)filch_rng_below(&rng, 8)};
            sum expected = serial_sum(root), got = FILCH_RUN(pool, sum_of, root);
            CHECK(got.nodes == expected.nodes);
            CHECK(got.numbers == expected.numbers);
            all_nodes += got.nodes;
            all_trees++;
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    }
    print_message("%llu tasks in %llu trees\n", (unsigned long long)all_nodes,
                  (unsigned long long)all_trees);
}

/* ---- ping-pong ------------------------------------------------------------------------------- */

typedef struct pong {
    latch is_done;
    counter count;
} pong;

static void answer(filch_frame *f TEST_UNUSED, void *arg)
{
    pong *p = arg;
    counter_add(&p->count, 1);
    latch_open(&p->is_done);
}

FILCH_TASK(void, answer_stolen, (pong *, p), (latch *, is_started))
{
    latch_open(is_started);
    counter_add(&p->count, 1);
}

/* Answers once an idle worker has stolen the child. */
static void answer_by_another(filch_frame *f, void *arg)
{
    filch_slot *filch_here = f;
    latch is_started;
    latch_init(&is_started, 1);

    FILCH_FORK(child, answer_stolen, arg, &is_started);
    latch_wait(&is_started);
    FILCH_JOIN(child);
    latch_open(&((pong *)arg)->is_done);
}

static void play(filch_fn *fn, unsigned least_workers)
{
    filch_rng rng;
    uint64_t rounds = 0;

    filch_rng_seed(&rng, test_seed());
    start_clock();
    while (is_time_left()) {
        filch_options options = random_options(&rng);
        options.workers += least_workers - 1;
        filch_pool *pool = watched_pool_create(&options);
        pong p = {.count = {0}};

        for (unsigned i = 1; i <= 2000 / TEST_SLOWNESS && is_time_left(); i++) {
            latch_init(&p.is_done, 1);
            CHECK(filch_submit(pool, fn, &p) == 0);
            latch_wait(&p.is_done);
            CHECK(counter_get(&p.count) == i);
            /* Up to twice the time that a worker spins before it sleeps. */
            spin(filch_rng_below(&rng, 200000));
            rounds++;
        }
        watched_pool_destroy(pool);
    }
    print_message("%llu rounds\n", (unsigned long long)rounds);
}

TEST(an_idle_pool_runs_submitted_tasks)
{
    play(answer, 1);
}

TEST(an_idle_worker_steals_forks)
{
    play(answer_by_another, 2);
}

/* ---- all at once ----------------------------------------------------------------------------- */

typedef struct party {
    filch_pool *pool;
    counter expected, counted;
    filch_atomic_u32 guests;
} party;

FILCH_TASK(void, tree, (party *, p), (int, depth))
{
    counter_add(&p->counted, 1);
    if (depth == 0)
        return;
    FILCH_SPAWN(tree, p, depth - 1);
    FILCH_CALL(tree, p, depth - 1);
    FILCH_SYNC();
}

static void tree_of_depth_5(filch_frame *f, void *arg)
{
    tree_body(f, f, arg, 5);
}

static void tree_in_a_run(filch_frame *f TEST_UNUSED, void *arg)
{
    party *p = arg;
    CHECK(filch_run(p->pool, tree_of_depth_5, p) == 0);
}

static void tree_submitted(filch_frame *f TEST_UNUSED, void *arg)
{
    party *p = arg;
    CHECK(filch_submit(p->pool, tree_of_depth_5, p) == 0);
}

static void *be_a_guest(void *arg)
{
    static filch_fn *const kinds[] = {tree_of_depth_5, tree_in_a_run, tree_submitted};
    party *p = arg;
    filch_rng rng;

    /* relaxed: each guest needs a number of its own, in any order. */
    filch_rng_seed(&rng, test_seed() + filch_fetch_add_relaxed(&p->guests, 1));
    for (int i = 0; i < 200 / TEST_SLOWNESS; i++) {
        filch_fn *fn = kinds[filch_rng_below(&rng, COUNT_OF(kinds))];
        switch (filch_rng_below(&rng, 8)) {
        case 0:
            CHECK(filch_pool_wait(p->pool) == 0);
            break;
        case 1:
        case 2:
        case 3:
            counter_add(&p->expected, (1u << 6) - 1);
            CHECK(filch_submit(p->pool, fn, p) == 0);
            break;
        default:
            counter_add(&p->expected, (1u << 6) - 1);
            CHECK(filch_run(p->pool, fn, p) == 0);
        }
        spin(filch_rng_below(&rng, 2000));
    }
    return NULL;
}

TEST(threads_that_run_submit_and_wait_at_once_lose_nothing)
{
    filch_rng rng;
    uint64_t rounds = 0;

    filch_rng_seed(&rng, test_seed());
    start_clock();
    while (is_time_left()) {
        filch_options options = random_options(&rng);
        pthread_t threads[8];
        unsigned count = 1 + filch_rng_below(&rng, COUNT_OF(threads));
        party p = {.pool = watched_pool_create(&options)};

        for (unsigned i = 0; i < count; i++)
            CHECK(pthread_create(&threads[i], NULL, be_a_guest, &p) == 0);
        for (unsigned i = 0; i < count; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        watched_pool_destroy(p.pool);

        CHECK(counter_get(&p.counted) == counter_get(&p.expected));
        rounds++;
    }
    print_message("%llu rounds\n", (unsigned long long)rounds);
}

/* The last task ends while other workers are still about to fall asleep. */
TEST(a_pool_may_be_destroyed_right_after_its_last_task)
{
    filch_rng rng;
    uint64_t rounds = 0;

    filch_rng_seed(&rng, test_seed());
    start_clock();
    while (is_time_left()) {
        filch_options options = random_options(&rng);
        filch_pool *pool;
        party p = {.guests = {0}};
        unsigned expected = 0;

        CHECK(filch_pool_create(&pool, &options) == 0);
        p.pool = pool;
        for (unsigned i = filch_rng_below(&rng, 4); i-- > 0; expected++)
            CHECK(filch_submit(pool, tree_of_depth_5, &p) == 0);
        for (unsigned i = filch_rng_below(&rng, 3); i-- > 0; expected++)
            CHECK(filch_run(pool, tree_of_depth_5, &p) == 0);
        CHECK(filch_pool_destroy(pool) == 0);
        CHECK(counter_get(&p.counted) == expected * ((1u << 6) - 1));
        rounds++;
    }
    print_message("%llu rounds\n", (unsigned long long)rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_give_the_result_of_the_serial_program),
        cmocka_unit_test(an_idle_pool_runs_submitted_tasks),
        cmocka_unit_test(an_idle_worker_steals_forks),
        cmocka_unit_test(threads_that_run_submit_and_wait_at_once_lose_nothing),
        cmocka_unit_test(a_pool_may_be_destroyed_right_after_its_last_task),
    };
    return cmocka_run_group_tests_name("stress", tests, watchdog_start, watchdog_stop);
}
