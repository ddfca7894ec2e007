/* SPDX-License-Identifier: MIT */
/*
 * An owner and thieves on every kind of deque: each pushed entry is obtained exactly once. Compiled
 * once for each kind, TEST_DEQUE.
 *
 * FILCH_TEST_OPERATIONS sets the number of pushes plus pops and steals [10 million; a tenth with
 * sanitizers, emulators and no optimisation]. The test runs in rounds, with 1 to 8 thieves and a
 * new deque of a few slots, whose counters start shortly before they wrap. At the end of a round
 * the thieves stop and are joined; then the owner takes the remaining entries and counts. The
 * entries are plain memory, so that ThreadSanitizer sees whether they were handed over properly.
 *
 * Edges
 *   ended        run_owner: end -> run_thief: end   carries all pushes: after it, EMPTY means that
 *                no entry is left.
 */
#include "watchdog.h"

#include "deque_kind.h"

#define ROUND_ENTRIES (20000 / TEST_SLOWNESS)
#define THIEVES_MAX 8
#define BATCH_MAX 8

typedef struct node {
    unsigned number, taken; /* plain: only the thread that has the node uses them */
} node;

/* When the thieves stop. */
typedef enum round_end {
    NOT_YET,
    WHEN_EMPTY, /* at the first steal that finds nothing */
    NOW,
} round_end;

typedef struct thief {
    pthread_t thread;
    size_t batch; /* entries per steal_batch; 0: use steal */
    uint64_t won, lost, empty;
} thief;

static struct {
    deque d;
    node nodes[ROUND_ENTRIES];
    latch ready;
    filch_atomic_u32 end; /* a round_end */
    uint64_t popped, refused;
    thief thieves[THIEVES_MAX];
} game;

static uint64_t operation_count(void)
{
    const char *text = getenv("FILCH_TEST_OPERATIONS");
    return text ? strtoull(text, NULL, 0) : UINT64_C(10000000) / TEST_SLOWNESS;
}

/* Returns its number. */
static unsigned take(void *entry)
{
    node *n = entry;

    CHECK(n >= game.nodes && n < game.nodes + ROUND_ENTRIES);
    CHECK(n->number == (unsigned)(n - game.nodes));
    CHECK(n->taken++ == 0);
    return n->number;
}

static void *run_thief(void *argument)
{
    thief *self = argument;
    unsigned in_vain = 0, next = 0; /* next: greater than all numbers it got so far */
    void *entries[BATCH_MAX];

    latch_open(&game.ready);
    latch_wait(&game.ready);
    for (;;) {
        size_t count = 1;
        /* acquire [ended] */
        uint32_t end = filch_load_acquire(&game.end);
        if (end == NOW)
            return NULL;
        switch (self->batch > 0 ? deque_steal_batch(&game.d, entries, self->batch, &count)
                                : deque_steal(&game.d, entries)) {
        case FILCH_STEAL_WON:
            for (size_t i = 0; i < count; i++) {
                unsigned number = take(entries[i]);
                CHECK(!kind.is_in_order || number >= next);
                next = number + 1;
            }
            self->won += count;
            break;
        case FILCH_STEAL_LOST:
            self->lost++;
            break;
        case FILCH_STEAL_EMPTY:
            if (end == WHEN_EMPTY)
                return NULL;
            self->empty++;
            /* With fewer cores than threads, the owner may need this core. */
            if (++in_vain % 16 == 0)
                sched_yield();
            break;
        }
    }
}

static bool pop(void)
{
    void *entry;
    bool is_popped = deque_pop(&game.d, &entry);

    if (is_popped)
        take(entry);
    return is_popped;
}

/* Push and pop in bursts. In some rounds only push; in some, yield the core now and then. */
static void run_owner(filch_rng *rng, round_end end)
{
    unsigned next = 0, burst = 1 + (unsigned)(filch_rng_next(rng) % 40);
    uint64_t pops = filch_rng_next(rng) % 3 ? burst + 2 : 1;
    uint64_t yields = filch_rng_next(rng) % 3 ? UINT64_MAX : 8;

    latch_open(&game.ready);
    latch_wait(&game.ready);
    while (next < ROUND_ENTRIES) {
        for (uint64_t i = filch_rng_next(rng) % burst + 1; i > 0 && next < ROUND_ENTRIES; i--) {
            node *n = &game.nodes[next];
            *n = (node){.number = next++};
            if (deque_push(&game.d, n) != 0) {
                game.refused++;
                n->taken++;
                game.popped += pop(); /* a bounded deque has room again */
            }
        }
        for (uint64_t i = filch_rng_next(rng) % pops; i > 0; i--)
            game.popped += pop();
        if (filch_rng_next(rng) % yields == 0)
            sched_yield();
    }
    /* release [ended] */
    filch_store_release(&game.end, end);
}

/* One round. Returns how many entries were refused. */
static uint64_t play(filch_rng *rng, unsigned thieves, thief *total)
{
    round_end end = filch_rng_next(rng) % 2 ? NOW : WHEN_EMPTY;
    uint64_t start = (filch_rng_next(rng) % 2 ? INT64_MAX : UINT64_MAX) - filch_rng_next(rng) % 100;
    uint64_t won = 0, rest = 0;

    CHECK(deque_init_at(&game.d, 1 + filch_rng_next(rng) % 4, start) == 0);
    game.popped = game.refused = 0;
    latch_init(&game.ready, thieves + 1);
    /* relaxed: the threads start later. */
    filch_store_relaxed(&game.end, NOT_YET);
    for (unsigned i = 0; i < thieves; i++) {
        thief *t = &game.thieves[i];
        *t = (thief){.batch = filch_rng_next(rng) % (BATCH_MAX + 1)};
        CHECK(pthread_create(&t->thread, NULL, run_thief, t) == 0);
    }
    run_owner(rng, end);
    /* The owner pops until the end, or leaves the rest to the thieves. */
    while (filch_rng_next(rng) % 64 && pop())
        game.popped++;
    for (unsigned i = 0; i < thieves; i++) {
        thief *t = &game.thieves[i];
        CHECK(pthread_join(t->thread, NULL) == 0);
        won += t->won;
        total->won += t->won;
        total->lost += t->lost;
        total->empty += t->empty;
    }
    while (pop())
        rest++;

    CHECK(game.popped + game.refused + won + rest == ROUND_ENTRIES);
    CHECK(rest == 0 || end == NOW || !kind.is_open);
    CHECK(deque_size_hint(&game.d) == 0);
    for (unsigned i = 0; i < ROUND_ENTRIES; i++)
        CHECK(game.nodes[i].taken == 1);
    deque_fini(&game.d);
    return game.refused;
}

TEST(every_entry_goes_to_the_owner_or_one_thief)
{
#ifdef TEST_EMULATED
    if (kind.crosses) {
        print_message("skipped: qemu 7.2 on x86 lets an ldar overtake the stlr before it\n");
        skip();
    }
#endif
    const uint64_t operations_each = operation_count() / THIEVES_MAX;
    filch_rng rng = {test_seed()};

    for (unsigned thieves = 1; thieves <= THIEVES_MAX; thieves++) {
        uint64_t operations = 0, refused = 0;
        thief total = {0};
        while (operations < operations_each) {
            uint64_t now_refused = play(&rng, thieves, &total);
            refused += now_refused;
            operations += 2 * (ROUND_ENTRIES - now_refused);
            watchdog_kick();
        }
        print_message(
            "%u thieves: %llu operations, %llu refused; %llu stolen, %llu lost, %llu empty\n",
            thieves, (unsigned long long)operations, (unsigned long long)refused,
            (unsigned long long)total.won, (unsigned long long)total.lost,
            (unsigned long long)total.empty);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_goes_to_the_owner_or_one_thief),
    };
    return cmocka_run_group_tests_name("deque_stress", tests, watchdog_start, watchdog_stop);
}
