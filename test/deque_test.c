/* SPDX-License-Identifier: MIT */
/*
 * What filch/deque.h promises of every kind of deque. Compiled once for each kind, TEST_DEQUE.
 *
 * The stress test runs for FILCH_TEST_SECONDS: one owner and some thieves, a new deque of a few slots in each round, and in the end
 * every entry was obtained once. The entries are plain memory, so that ThreadSanitizer sees whether they were handed over properly.
 *
 * Edges
 *   ended        run_owner: is_ended -> run_thief: is_ended   carries bottom: after it, EMPTY means that the owner has left nothing.
 */
#include "watchdog.h"

#include "base/clock.h"

/* Growing fails while there is no memory. */
static bool is_memory_out;
#define calloc(count, bytes) (is_memory_out ? NULL : calloc(count, bytes))

#include TEST_DEQUE_HEADER

#define PASTE(kind, name) filch_##kind##_##name
#define NAME(kind, name) PASTE(kind, name)
#define TYPE_OF(kind) filch_##kind
#define TYPE(kind) TYPE_OF(kind)

typedef TYPE(TEST_DEQUE) deque;
#define deque_init NAME(TEST_DEQUE, init)
#define deque_push NAME(TEST_DEQUE, push)
#define deque_pop NAME(TEST_DEQUE, pop)
#define deque_steal NAME(TEST_DEQUE, steal)
#define deque_size_hint NAME(TEST_DEQUE, size_hint)
#define deque_fini NAME(TEST_DEQUE, fini)

/* ---- one thread -------------------------------------------------------------------------------- */

typedef struct item {
    int taken;
} item;

static item items[1000];

TEST(a_new_deque_is_empty)
{
    deque d;
    void *entry = &d;

    assert_int_equal(deque_init(&d, 4), 0);

    assert_false(deque_pop(&d, &entry));
    assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_EMPTY);
    assert_int_equal(deque_size_hint(&d), 0);
    assert_ptr_equal(entry, &d);
    deque_fini(&d);
}

TEST(one_entry_is_popped_or_stolen)
{
    deque d;
    void *entry;

    assert_int_equal(deque_init(&d, 0), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(deque_push(&d, &items[i]), 0);
        assert_int_equal(deque_size_hint(&d), 1);

        if (i % 2) {
            assert_true(deque_pop(&d, &entry));
            assert_ptr_equal(entry, &items[i]);
        } else {
            assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_WON);
            assert_ptr_equal(entry, &items[i]);
        }

        assert_false(deque_pop(&d, &entry));
        assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_EMPTY);
        assert_int_equal(deque_size_hint(&d), 0);
    }
    deque_fini(&d);
}

TEST(null_is_an_entry)
{
    deque d;
    void *entry = &d;
    assert_int_equal(deque_init(&d, 2), 0);

    assert_int_equal(deque_push(&d, NULL), 0);
    assert_int_equal(deque_size_hint(&d), 1);
    assert_true(deque_pop(&d, &entry));
    assert_null(entry);

    entry = &d;
    assert_int_equal(deque_push(&d, NULL), 0);
    assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_WON);
    assert_null(entry);
    deque_fini(&d);
}

static void take(void *entry)
{
    item *i = entry;

    assert_true(i >= items && i < items + COUNT_OF(items));
    assert_int_equal(i->taken++, 0);
}

/* Pop and steal the rest in turns, and count it. */
static size_t drain(deque *d)
{
    size_t count = 0;
    void *entry;

    while (deque_pop(d, &entry)) {
        take(entry);
        count++;
        if (deque_steal(d, &entry) == FILCH_STEAL_WON) {
            take(entry);
            count++;
        }
    }
    assert_int_equal(deque_steal(d, &entry), FILCH_STEAL_EMPTY);
    return count;
}

TEST(what_is_pushed_is_obtained_once)
{
    filch_rng rng = {test_seed()};

    for (int round = 0; round < 2000 / TEST_SLOWNESS; round++) {
        size_t pushed = 0, taken = 0;
        deque d;
        void *entry;
        memset(items, 0, sizeof items);
        assert_int_equal(deque_init(&d, 1 + filch_rng_next(&rng) % 20), 0);

        unsigned pushes = 1 + (unsigned)(filch_rng_next(&rng) % 9); /* of 10 operations */
        for (int i = 0; i < 500; i++) {
            assert_int_equal(deque_size_hint(&d), pushed - taken);
            if (filch_rng_next(&rng) % 10 < pushes) {
                pushed += deque_push(&d, &items[pushed]) == 0;
            } else if (filch_rng_next(&rng) % 2) {
                bool is_popped = deque_pop(&d, &entry);
                assert_int_equal(is_popped, pushed > taken);
                if (is_popped)
                    take(entry), taken++;
            } else {
                filch_steal_result result = deque_steal(&d, &entry);
                assert_int_equal(result, pushed > taken ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY);
                if (result == FILCH_STEAL_WON)
                    take(entry), taken++;
            }
        }

        assert_int_equal(drain(&d), pushed - taken);
        for (size_t i = 0; i < pushed; i++)
            assert_int_equal(items[i].taken, 1);
        deque_fini(&d);
    }
}

TEST(without_memory_there_is_no_deque)
{
    deque d;

    is_memory_out = true;
    int err = deque_init(&d, 1000);
    is_memory_out = false;

    assert_int_equal(err, -ENOMEM);
}

TEST(a_push_that_fails_changes_nothing)
{
    deque d;
    size_t pushed = 0;
    void *entry = NULL;
    int err;
    memset(items, 0, sizeof items);
    assert_int_equal(deque_init(&d, 8), 0);

    is_memory_out = true;
    while ((err = deque_push(&d, &items[pushed])) == 0)
        pushed++;
    assert_true(err == -ENOMEM || err == -ENOBUFS);
    assert_true(pushed >= 8);
    assert_int_equal(deque_push(&d, &items[pushed]), err);
    assert_int_equal(deque_size_hint(&d), pushed);
    assert_true(deque_pop(&d, &entry));
    take(entry);
    assert_int_equal(deque_push(&d, &items[pushed++]), 0); /* there is room again */
    is_memory_out = false;
    if (err == -ENOMEM)
        for (int i = 0; i < 100; i++)
            assert_int_equal(deque_push(&d, &items[pushed++]), 0);

    assert_int_equal(drain(&d), pushed - 1);
    for (size_t i = 0; i < pushed; i++)
        assert_int_equal(items[i].taken, 1);
    deque_fini(&d);
}

/* ---- owner and thieves ------------------------------------------------------------------------- */

#define ROUND_ENTRIES (100000 / TEST_SLOWNESS)
#define THIEVES_MAX 4

typedef struct node {
    unsigned number, taken; /* plain: of the thread that has it */
} node;

typedef struct stolen {
    uint64_t won, lost, empty;
} stolen;

static struct {
    deque d;
    node nodes[ROUND_ENTRIES];
    latch ready;
    filch_atomic_u32 is_ended;
    uint64_t popped, refused;
    stolen stolen[THIEVES_MAX];
} game;

static void take_node(void *entry)
{
    node *n = entry;

    CHECK(n >= game.nodes && n < game.nodes + ROUND_ENTRIES);
    CHECK(n->number == (unsigned)(n - game.nodes));
    CHECK(n->taken++ == 0);
}

static void *run_thief(void *argument)
{
    stolen *s = argument;
    unsigned in_vain = 0;
    void *entry;

    latch_open(&game.ready);
    latch_wait(&game.ready);
    for (;;) {
        /* acquire [ended] */
        bool is_ended = filch_load_acquire(&game.is_ended);
        switch (deque_steal(&game.d, &entry)) {
        case FILCH_STEAL_WON:
            take_node(entry);
            s->won++;
            break;
        case FILCH_STEAL_LOST:
            s->lost++;
            break;
        case FILCH_STEAL_EMPTY:
            if (is_ended)
                return NULL;
            s->empty++;
            /* With fewer cores than threads, the owner may need this one. */
            if (++in_vain % 16 == 0)
                sched_yield();
            break;
        }
    }
}

/* Push and pop in bursts; in some rounds only push, in some let others run now and then. */
static void run_owner(filch_rng *rng)
{
    unsigned next = 0, burst = 1 + (unsigned)(filch_rng_next(rng) % 40);
    uint64_t pops = filch_rng_next(rng) % 3 ? burst + 2 : 1;
    uint64_t yields = filch_rng_next(rng) % 3 ? UINT64_MAX : 8;
    void *entry;

    latch_open(&game.ready);
    latch_wait(&game.ready);
    while (next < ROUND_ENTRIES) {
        for (uint64_t i = filch_rng_next(rng) % burst + 1; i > 0 && next < ROUND_ENTRIES; i--) {
            node *n = &game.nodes[next++];
            n->number = next - 1;
            n->taken = 0;
            if (deque_push(&game.d, n) != 0) {
                game.refused++;
                n->taken++;
            }
        }
        for (uint64_t i = filch_rng_next(rng) % pops; i > 0; i--) {
            if (deque_pop(&game.d, &entry)) {
                take_node(entry);
                game.popped++;
            }
        }
        if (filch_rng_next(rng) % yields == 0)
            sched_yield();
    }
    /* release [ended] */
    filch_store_release(&game.is_ended, 1);
}

static void play(filch_rng *rng, unsigned thieves, stolen *total)
{
    pthread_t thread[THIEVES_MAX];
    uint64_t won = 0, rest = 0;
    void *entry;

    CHECK(deque_init(&game.d, 1 + filch_rng_next(rng) % 4) == 0);
    game.popped = game.refused = 0;
    memset(game.stolen, 0, sizeof game.stolen);
    latch_init(&game.ready, thieves + 1);
    /* relaxed: the threads start later. */
    filch_store_relaxed(&game.is_ended, 0);
    for (unsigned i = 0; i < thieves; i++)
        CHECK(pthread_create(&thread[i], NULL, run_thief, &game.stolen[i]) == 0);
    run_owner(rng);
    /* The owner takes part until the end, or leaves all to the thieves. */
    while (filch_rng_next(rng) % 64 && deque_pop(&game.d, &entry)) {
        take_node(entry);
        game.popped++;
    }
    for (unsigned i = 0; i < thieves; i++) {
        CHECK(pthread_join(thread[i], NULL) == 0);
        won += game.stolen[i].won;
        total->won += game.stolen[i].won;
        total->lost += game.stolen[i].lost;
        total->empty += game.stolen[i].empty;
    }
    while (deque_pop(&game.d, &entry)) {
        take_node(entry);
        rest++;
    }

    CHECK(game.popped + game.refused + won + rest == ROUND_ENTRIES);
    CHECK(rest == 0); /* the thieves went on until there was nothing */
    for (unsigned i = 0; i < ROUND_ENTRIES; i++)
        CHECK(game.nodes[i].taken == 1);
    deque_fini(&game.d);
}

TEST(every_entry_goes_to_the_owner_or_one_thief)
{
#ifdef TEST_EMULATED
    print_message("skipped: qemu 7.2 on x86 lets an ldar overtake the stlr before it, which ARM forbids\n");
    skip();
#endif
    static const unsigned thieves[] = {1, 2, THIEVES_MAX};
    filch_rng rng = {test_seed()};

    for (size_t i = 0; i < COUNT_OF(thieves); i++) {
        uint64_t end_ns = filch_clock_ns() + (uint64_t)(test_seconds() * 1e9 / COUNT_OF(thieves));
        stolen total = {0};
        uint64_t rounds = 0;
        do {
            play(&rng, thieves[i], &total);
            watchdog_kick();
            rounds++;
        } while (filch_clock_ns() < end_ns);
        print_message("%u thieves: %llu entries, %llu stolen, %llu lost, %llu empty\n", thieves[i],
                      (unsigned long long)rounds * ROUND_ENTRIES, (unsigned long long)total.won,
                      (unsigned long long)total.lost, (unsigned long long)total.empty);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_deque_is_empty),
        cmocka_unit_test(one_entry_is_popped_or_stolen),
        cmocka_unit_test(null_is_an_entry),
        cmocka_unit_test(what_is_pushed_is_obtained_once),
        cmocka_unit_test(without_memory_there_is_no_deque),
        cmocka_unit_test(a_push_that_fails_changes_nothing),
        cmocka_unit_test(every_entry_goes_to_the_owner_or_one_thief),
    };
    return cmocka_run_group_tests_name("deque", tests, watchdog_start, watchdog_stop);
}
