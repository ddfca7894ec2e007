/* SPDX-License-Identifier: MIT */
/*
 * The Chase-Lev deque: every entry that was pushed is obtained once, with what was written before its push, and in the promised order.
 *
 * The owner runs a script: p pushes an entry, t takes one (pops). All scripts of a length are generated; shorter ones are their beginnings. Thieves
 * try to steal a number of times: 2x1 are two thieves that try once. What is left at the end is popped. The deque begins with a capacity
 * of 2 or 1, so that it grows and shrinks in most scripts, and its arrays are used again. What it takes many operations to reach is
 * prepared by one thread before the others start; there s steals.
 *
 *     each entry     is obtained once; its data is plain, so that a race for it is found; a refused one is never seen
 *     pop            returns the newest that was not stolen; false only if thieves have, or are about to have, all the others
 *     steal          returns the oldest: whatever lay below an entry that was stolen was stolen, too
 *     EMPTY          is said only when it was: in the scripts of `empty` the owner announces each push and the thief what it was told
 *     LOST           has a winner
 *     memory         is all freed
 *
 * Everything is exhaustive. Without arguments it takes what make check can afford; with --long, as first argument, the scripts are longer.
 *
 * Weaker orders than those that ship are found, with exceptions that the checker cannot see (mc/README.md: Limits):
 *
 *     make_room: top acquire    guards against load buffering: a thief that reads what is written to the slot after it is free
 *     pop: cas release,         here the order of seq_cst operations is that of execution. In C11, and on ARM, a store to top that is not at least
 *     steal: top seq_cst        release may be seen before the seq_cst store to bottom that precedes it, and a load of top that is relaxed may come
 *                               after the seq_cst load of bottom that follows it
 */
#include "mc/mc.h"

#include <stdio.h>
#include <string.h>

/* Allocations that may fail yet. */
static unsigned faults;

static bool is_fault(void)
{
    return faults > 0 && mc_choose(2) && faults--;
}

#undef calloc
#define calloc(count, bytes) (is_fault() ? NULL : mc_calloc(count, bytes))

#include <filch/deque/chaselev.h>

#define LENGTH_MAX 10
#define ENTRIES_MAX 40
#define THIEVES_MAX 2

typedef struct entry {
    int data;   /* plain: written before the push, read by who obtains the entry */
    int taken;  /* plain, too: who obtains it has it alone */
    int thief;  /* who has stolen it; 0: nobody */
    int below;  /* the entry under it when it was pushed, or -1 */
    bool is_in; /* it was pushed */
} entry;

static filch_chaselev deque;
static entry entries[ENTRIES_MAX];
static int pushed; /* how many pushes were tried; owner */
static int stack[ENTRIES_MAX],
    depth; /* what the owner has pushed and, as far as it knows, nobody has taken */
static unsigned pops, losses[THIEVES_MAX + 2]; /* by thread */
static filch_atomic_u32 announced, seen_empty[THIEVES_MAX + 2];

/* What is run. */
static const char *before, *script;
static unsigned tries, capacity;
static uint64_t start;
static bool is_announced; /* pushes, and that a thief found nothing */
static bool is_dead;      /* there was no memory for the deque */

static void take(entry *e)
{
    mc_check(e->is_in, "only what was pushed is obtained");
    mc_check(e->data == 100 + (int)(e - entries), "the data of the entry is there");
    mc_check(e->taken++ == 0, "an entry is obtained once");
}

/* ---- owner ------------------------------------------------------------------------------------- */

static void push(void)
{
    entry *e = &entries[pushed++];

    *e = (entry){.data = 99 + pushed, .below = depth > 0 ? stack[depth - 1] : -1, .is_in = true};
    int err = filch_chaselev_push(&deque, e);
    if (err) {
        mc_check(err == -ENOMEM, "a push fails for lack of memory");
        e->is_in = false;
        return;
    }
    stack[depth++] = (int)(e - entries);
    if (is_announced)
        filch_store_release(&announced, (uint32_t)pushed);
}

static void pop(void)
{
    uint32_t empty_at = 0;

    for (int i = 1; is_announced && i <= THIEVES_MAX; i++) {
        uint32_t at = filch_load_acquire(&seen_empty[i]);
        empty_at = at > empty_at ? at : empty_at;
    }
    void *got;
    if (!filch_chaselev_pop(&deque, &got)) {
        depth = 0; /* thieves have them */
        return;
    }
    entry *e = got;
    pops++;
    take(e);
    mc_check(depth > 0 && e == &entries[stack[depth - 1]], "the newest entry is popped");
    mc_check((uint32_t)(e - entries) >= empty_at, "a thief that found nothing was right");
    depth--;
}

static void owner(void)
{
    for (const char *c = script; *c && !is_dead; c++) {
        if (*c == 'p')
            push();
        else
            pop();
    }
}

/* ---- thieves ----------------------------------------------------------------------------------- */

/* What was stolen, or NULL. */
static entry *steal(int self)
{
    void *got = NULL;
    uint32_t told = is_announced ? filch_load_acquire(&announced) : 0;

    switch (filch_chaselev_steal(&deque, &got)) {
    case FILCH_STEAL_WON:
        mc_check(got, "an entry was stolen");
        take(got);
        ((entry *)got)->thief = self;
        break;
    case FILCH_STEAL_LOST:
        losses[self]++;
        break;
    case FILCH_STEAL_EMPTY:
        if (is_announced)
            filch_store_release(&seen_empty[self], told);
        break;
    }
    return got;
}

static void thief(void)
{
    const entry *last = NULL;

    for (unsigned i = 0; i < tries && !is_dead; i++) {
        entry *e = steal(mc_self() - 1);
        mc_check(!e || e > last, "older entries are stolen first");
        last = e ? e : last;
    }
}

/* ---- before and after -------------------------------------------------------------------------- */

static void setup(void)
{
    is_dead = filch_chaselev_init_at(&deque, capacity, start) != 0;
    for (const char *c = before; *c && !is_dead; c++) {
        if (*c == 'p')
            push();
        else if (*c == 't')
            pop();
        else
            mc_check(steal(THIEVES_MAX + 1), "nobody else is there");
    }
    /* What was stolen is not the owner's any more. */
    while (depth > 0 && entries[stack[0]].thief)
        memmove(stack, stack + 1, (size_t)--depth * sizeof *stack);
}

static void finish(void)
{
    unsigned steals = 0, others;

    if (is_dead)
        return;
    while (filch_chaselev_size_hint(&deque) > 0)
        pop();
    pop();
    for (int i = 0; i < pushed; i++) {
        const entry *e = &entries[i];
        mc_check(e->taken == e->is_in, "every entry is obtained");
        mc_check(!e->thief || e->below < 0 || entries[e->below].thief, "the oldest is stolen");
        steals += e->thief != 0;
    }
    for (int i = 1; i <= THIEVES_MAX; i++) {
        others = pops + steals;
        for (int k = 0; k < pushed; k++)
            others -= entries[k].thief == i;
        mc_check(losses[i] <= others, "who lost was not alone");
    }
    filch_chaselev_fini(&deque);
}

/* ---- scripts ----------------------------------------------------------------------------------- */

typedef struct family {
    const char *name;
    unsigned length, long_length; /* of the scripts */
    unsigned thieves, tries, capacity;
    uint64_t start;
    unsigned faults; /* allocations that may fail */
    bool is_announced;
    const char *before; /* NULL: nothing */
} family;

#define SIGNED_END ((uint64_t)INT64_MAX - 1)
#define UNSIGNED_END (UINT64_MAX - 1)

/* clang-format off */
/* The array of 16 exists; that of 8 is in use and full of stolen entries, all but one: the next push goes on with that of 4. */
#define ROUND "ppppppppp" "ttttttttt" "t" "ppppppp" "ssssss"

static const family families[] = {
    /*                      length  thieves  capacity, first index */
    {"chaselev",            6, 9,   1, 1,    2, 0, 0, false, NULL},
    {"chaselev",            6, 8,   1, 2,    2, 0, 0, false, NULL},
    {"chaselev",            5, 6,   1, 3,    2, 0, 0, false, NULL},
    {"chaselev",            6, 7,   2, 1,    2, 0, 0, false, NULL},
    {"chaselev",            4, 6,   2, 2,    2, 0, 0, false, NULL},
    {"chaselev shrinks",    8, 9,   1, 1,    1, 0, 0, false, NULL},
    {"chaselev shrinks",    6, 7,   1, 2,    1, 0, 0, false, NULL},
    {"chaselev shrinks",    5, 6,   2, 1,    1, 0, 0, false, NULL},
    {"chaselev goes round", 4, 6,   1, 2,    1, 0, 0, false, ROUND},
    {"chaselev goes round", 3, 5,   2, 1,    1, 0, 0, false, ROUND},
    {"chaselev no memory",  6, 7,   1, 2,    1, 0, 1, false, NULL},
    {"chaselev empty",      5, 6,   1, 2,    2, 0, 0, true,  NULL},
    {"chaselev empty",      4, 5,   2, 1,    2, 0, 0, true,  NULL},
    {"chaselev signed end", 6, 7,   1, 2,    2, SIGNED_END, 0, false, NULL},
    {"chaselev wrap",       6, 7,   1, 2,    2, UNSIGNED_END, 0, false, NULL},
    {"chaselev wrap",       4, 6,   2, 1,    2, UNSIGNED_END, 0, false, NULL},
};
/* clang-format on */

static void run(const family *f, mc_options options, mc_result *total)
{
    char name[64];
    mc_program program = {
        .name = name, .setup = setup, .threads = {owner, thief}, .finish = finish};

    if (f->thieves == 2)
        program.threads[2] = thief;
    snprintf(name, sizeof name, "%s %ux%u %s", f->name, f->thieves, f->tries, script);
    mc_add(total, mc_run(&program, &options));
}

static int run_family(const family *f, mc_options options, bool is_long)
{
    char name[64];
    mc_result total = {.name = name};
    unsigned length = is_long ? f->long_length : f->length;
    char text[LENGTH_MAX + 1] = "";

    snprintf(name, sizeof name, "%s %ux%u", f->name, f->thieves, f->tries);
    options.check_leaks = true;
    before = f->before ? f->before : "";
    script = text;
    faults = f->faults;
    tries = f->tries;
    capacity = f->capacity;
    start = f->start;
    is_announced = f->is_announced;
    for (unsigned bits = 0; bits < 1u << length && total.verdict != MC_FAILED; bits++) {
        for (unsigned i = 0; i < length; i++)
            text[i] = bits >> (length - 1 - i) & 1 ? 't' : 'p';
        run(f, options, &total);
    }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    mc_options options = mc_arguments(argc - is_long, argv + is_long);
    int code = 0;

    for (size_t i = 0; i < sizeof families / sizeof families[0] && code == 0; i++)
        code = run_family(&families[i], options, is_long);
    return code;
}
