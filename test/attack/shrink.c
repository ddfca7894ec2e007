/* SPDX-License-Identifier: MIT */
/*
 * One seed, made smaller as long as it fails.
 *
 * A candidate leaves something out. Each step keeps the first candidate that fails, too. The steps
 * repeat until no candidate fails:
 *
 *     operations  single ones, with all that they contain
 *     parts       kinds of operations, faults, surroundings
 *     numbers     threads, pools, workers, operations, depth, sizes within operations
 */
#include "supervise.h"

#include <time.h>

#define TRIES_MAX 60u
#define SAMPLE 3u     /* failures that tell how often the seed fails */
#define RUNS_FACTOR 3 /* a program that fails again fails in so many times the usual runs */

typedef struct shrinker {
    const run *r;
    settings s;
    trial last;     /* of these settings; it failed */
    bool is_hang;   /* a failure of the other kind is another failure */
    unsigned tries; /* of a candidate */
    double runs;    /* until a failure, on average of the last candidates */
} shrinker;

/* ---- candidates ------------------------------------------------------------------------------ */

static void run_trial(trial *t, const settings *s, bool is_brief, unsigned limit_s)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    trial_start(t, s);
    t->is_brief = is_brief;
    while (!trial_poll(t, limit_s))
        nanosleep(&moment, NULL);
}

/* A candidate need not hang for the whole limit. The smallest program has to, at the end. */
static unsigned brief_limit_s(const run *r)
{
    return 2 + r->limit_s / 20;
}

/* A program that fails rarely needs more tries, or many a step would be missed. A smaller program
 * may fail more rarely than the seed. */
static void set_tries(shrinker *x, double runs)
{
    double tries = RUNS_FACTOR * runs;

    x->runs = runs;
    x->tries = tries < TRIES_MAX ? (unsigned)tries : TRIES_MAX;
    if (x->tries < x->r->tries)
        x->tries = x->r->tries;
}

/* Run it until it fails in the same way. Then it is the program to make smaller. */
static bool fails(shrinker *x, const settings *candidate)
{
    trial t;

    for (unsigned i = 0; i < x->tries; i++) {
        run_trial(&t, candidate, true, brief_limit_s(x->r));
        if (trial_has_failed(&t) && t.is_hung == x->is_hang) {
            trial_end(&x->last);
            x->last = t;
            x->s = *candidate;
            set_tries(x, 0.7 * x->runs + 0.3 * (i + 1));
            return true;
        }
        trial_end(&t);
    }
    return false;
}

static unsigned operations_left(const shrinker *x)
{
    uint32_t ids[ENTRIES_MAX];
    return record_operations(&x->last.b->record, false, ids, ENTRIES_MAX);
}

static bool try_without(shrinker *x, const settings *candidate, const char *what)
{
    if (!fails(x, candidate))
        return false;
    printf("  it also fails without %s (%u operations)\n", what, operations_left(x));
    fflush(stdout);
    return true;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool leave_out_parts(shrinker *x, uint64_t parts, const char *what)
{
    settings smaller = x->s;

    smaller.parts &= ~parts;
    return smaller.parts != x->s.parts && try_without(x, &smaller, what);
}

static uint64_t unused_parts(const shrinker *x)
{
    uint64_t parts = 0;

    for (unsigned i = 0; i < PART_COUNT; i++)
        if ((i < OPERATION_COUNT || i >= FIRST_FAULT) && get(&x->last.b->counts[i]) == 0)
            parts |= 1ull << i;
    return parts;
}

static bool shrink_parts(shrinker *x)
{
    const uint64_t faults = ((1ull << PART_COUNT) - 1) & ~((1ull << FIRST_FAULT) - 1),
                   operations = (1ull << OPERATION_COUNT) - 1;
    bool is_smaller = leave_out_parts(x, unused_parts(x), "parts that it does not use");

    is_smaller |= leave_out_parts(x, faults, "faults");
    is_smaller |= leave_out_parts(x, ~(faults | operations), "surroundings");
    for (unsigned i = PART_COUNT; i-- > 0;)
        is_smaller |= leave_out_parts(x, 1ull << i, part_names[i]);
    return is_smaller;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool try_number(shrinker *x, size_t offset, unsigned value, const char *what)
{
    settings smaller = x->s;
    char text[100];

    *(unsigned *)((char *)&smaller + offset) = value;
    snprintf(text, sizeof text, "more than %u %s", value, what);
    return try_without(x, &smaller, text);
}

/* Try the least; then look between numbers that do not fail and those that do. */
static bool shrink_number(shrinker *x, size_t offset, unsigned least, unsigned most,
                          const char *what)
{
    unsigned *now = (unsigned *)((char *)&x->s + offset), too_small = least;

    *now = *now < most ? *now : most;
    bool is_smaller = *now > least && try_number(x, offset, least, what);
    while (*now > too_small + 1) {
        unsigned middle = too_small + (*now - too_small) / 2;
        if (try_number(x, offset, middle, what))
            is_smaller = true;
        else
            too_small = middle;
    }
    return is_smaller;
}

/* Larger limits than `most` change nothing. */
static bool shrink_numbers(shrinker *x)
{
    static const struct {
        size_t offset;
        unsigned least, most;
        const char *what;
    } numbers[] = {
        {offsetof(settings, thread_limit), 0, 4, "threads"},
        {offsetof(settings, loose_limit), 0, 8, "submitted tasks"},
        {offsetof(settings, pool_limit), 1, POOLS_MAX, "pools"},
        {offsetof(settings, worker_limit), 1, 8, "workers"},
        {offsetof(settings, budget), 1, UINT32_MAX, "operations in the budget"},
        {offsetof(settings, depth), 1, UINT32_MAX, "levels of operations"},
        {offsetof(settings, size_limit), 1, 200000, "tasks or bytes in an operation"},
    };
    bool is_smaller = false;

    for (unsigned i = 0; i < COUNT_OF(numbers); i++)
        is_smaller |=
            shrink_number(x, numbers[i].offset, numbers[i].least, numbers[i].most, numbers[i].what);
    return is_smaller;
}

/* The usual deque and way of I/O are not fewer, but easier to look at. */
static void choose_usual(shrinker *x)
{
    settings usual = x->s;

    usual.deque = "split";
    if (!x->s.deque)
        try_without(x, &usual, "another deque than split");
    usual = x->s;
    usual.io = "uring";
    if (!x->s.io)
        try_without(x, &usual, "another way of I/O than uring");
}

/* ---- single operations ----------------------------------------------------------------------- */

static bool run_only(shrinker *x, const uint32_t *ids, unsigned count, const char *what)
{
    settings smaller = x->s;

    memcpy(smaller.only, ids, count * sizeof *ids);
    /* No operation has the id 0. */
    if (count == 0)
        smaller.only[count++] = 0;
    smaller.only_count = count;
    return try_without(x, &smaller, what);
}

/* Those of the last failure. */
static unsigned operations_of(const shrinker *x, bool is_unended_only, uint32_t *ids)
{
    return record_operations(&x->last.b->record, is_unended_only, ids, ONLY_MAX + 1);
}

/* Without one operation, those that it contains do not run either. So few candidates are needed if
 * the list is in the order in which they began. */
static bool shrink_operations(shrinker *x)
{
    uint32_t ids[ONLY_MAX + 1], rest[ONLY_MAX + 1];
    unsigned first = operations_of(x, false, ids), count;

    if (first > ONLY_MAX)
        return false;
    if (first < x->s.only_count)
        run_only(x, ids, first, "operations that did not run");
    count = operations_of(x, true, rest);
    if (count > 0 && count < first)
        run_only(x, rest, count, "operations that had ended");
    count = operations_of(x, false, ids);
    for (unsigned size = count; size > 0; size /= 2)
        for (unsigned at = 0; at < count;) {
            unsigned end = at + size < count ? at + size : count, old = count;
            memcpy(rest, ids, at * sizeof *ids);
            memcpy(rest + at, ids + end, (count - end) * sizeof *ids);
            if (run_only(x, rest, count - (end - at), "some operations"))
                count = operations_of(x, false, ids);
            if (count >= old)
                at += size;
        }
    return count < first;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Does the seed fail, and how often? */
static bool measure(shrinker *x)
{
    unsigned failures = 0, runs = 0;
    trial t;

    for (; failures < SAMPLE && runs < (failures ? 2 : 1) * x->tries; runs++) {
        run_trial(&t, &x->s, failures > 0, failures ? brief_limit_s(x->r) : x->r->limit_s);
        if (trial_has_failed(&t) && failures++ == 0) {
            trial_print(&t, stdout);
            fflush(stdout);
            x->is_hang = t.is_hung;
            x->last = t;
            continue;
        }
        trial_end(&t);
    }
    if (failures == 0)
        return false;
    set_tries(x, (double)runs / failures);
    printf("attack: %u of %u runs failed, so each candidate has %u runs\n", failures, runs,
           x->tries);
    return true;
}

/* Once more, with a whole report. */
static void print_smallest(shrinker *x)
{
    trial t;
    bool has_failed = false;

    printf("attack: the smallest program that still fails:\n");
    for (unsigned i = 0; i < 2 * TRIES_MAX && !has_failed; i++) {
        run_trial(&t, &x->s, false, x->r->limit_s);
        has_failed = trial_has_failed(&t) && t.is_hung == x->is_hang;
        if (has_failed) {
            trial_end(&x->last);
            x->last = t;
        } else {
            trial_end(&t);
        }
    }
    if (!has_failed)
        printf("attack: it did not fail again; this is how it failed before\n");
    trial_print(&x->last, stdout);
    trial_print_program(&x->last, stdout);
    printf("Repeat it by:\n  ");
    print_command(x->r, &x->s, stdout);
}

int shrink(run *r)
{
    static shrinker x;
    bool is_smaller = true;

    x = (shrinker){.r = r, .s = r->first, .tries = r->tries};
    printf("attack: running seed %llu up to %u times\n", (unsigned long long)x.s.seed, x.tries);
    if (!measure(&x)) {
        printf("attack: it does not fail (--tries runs it more often)\n");
        return 0;
    }
    while (is_smaller) {
        is_smaller = shrink_operations(&x);
        is_smaller |= shrink_parts(&x);
        is_smaller |= shrink_numbers(&x);
    }
    choose_usual(&x);
    print_smallest(&x);
    trial_end(&x.last);
    return 1;
}
