/* SPDX-License-Identifier: MIT */
/*
 * The clients of the deques: each pushed entry is obtained once, in the order that the kind
 * promises, with all that was written before its push.
 *
 *     #define DEQUE abp
 *     #define DEQUE_HEADER <filch/deque/abp.h>
 *     #include "client/deque.h"
 *
 *     static const deque_promise promise = {...};
 *     static const family families[] = {...};
 *     int main(int argc, char **argv)
 *     {
 *         return check_deque(&promise, families, COUNT_OF(families), argc, argv);
 *     }
 *
 * The owner runs a script: p pushes an entry, t takes (pops) one. The client generates all scripts
 * of a length; their beginnings are the shorter ones. Each thief tries to steal a number of times:
 * 2x1 means two thieves that try once. The owner pops the rest at the end. If a state takes many
 * operations to reach, one thread prepares it before the others start. In its script s steals, e
 * finds nothing to steal, and x may do either.
 *
 *     each entry  is obtained once: its data is plain, so the checker reports a race between two
 *                 threads that obtain it. No thread obtains an entry that was refused
 *     pop         returns the newest, or the oldest, that was not stolen; false only if thieves
 *                 have, or are about to have, all the others
 *     steal       returns the oldest, where that is promised: all entries before a stolen one were
 *                 obtained before it
 *     EMPTY       is returned only if the deque was empty. In the scripts of `empty`, the owner
 *                 announces each push, and the thief each EMPTY
 *     LOST        is returned only if another thread has taken an entry
 *     a push      is refused only for the reasons of its kind
 *     memory      is all freed
 *
 * The search is exhaustive, except in families with a number of preemptions. With --long the
 * scripts are longer.
 */
#ifndef VERIFY_CLIENT_DEQUE_H
#define VERIFY_CLIENT_DEQUE_H

#include "mc/mc.h"

#include <stdio.h>
#include <string.h>

/* How many more allocations may fail. */
static unsigned faults;

static bool is_fault(void)
{
    return faults > 0 && mc_choose(2) && faults--;
}

#undef calloc
#define calloc(count, bytes) (is_fault() ? NULL : mc_calloc(count, bytes))
#undef aligned_alloc
#define aligned_alloc(alignment, bytes) (is_fault() ? NULL : mc_aligned_alloc(alignment, bytes))

#include DEQUE_HEADER

#define PASTE(kind, name) filch_##kind##_##name
#define NAME(kind, name) PASTE(kind, name)
#define TYPE_OF(kind) filch_##kind
#define TYPE(kind) TYPE_OF(kind)
#define TEXT_OF(kind) #kind
#define TEXT(kind) TEXT_OF(kind)

#define deque_push NAME(DEQUE, push)
#define deque_pop NAME(DEQUE, pop)
#define deque_steal NAME(DEQUE, steal)
#define deque_size_hint NAME(DEQUE, size_hint)
#define deque_fini NAME(DEQUE, fini)
#ifndef DEQUE_INIT /* (deque, capacity, start): 0 or an error */
#define DEQUE_INIT NAME(DEQUE, init_at)
#endif
#ifdef DEQUE_HAS_BATCH
#define deque_steal_batch NAME(DEQUE, steal_batch)
#else
#define deque_steal_batch(d, entries, max, count) (*(count) = 0, FILCH_STEAL_EMPTY)
#endif
#ifdef DEQUE_HAS_TAKE
#define deque_take NAME(DEQUE, take)
#else
#define deque_take deque_steal_batch
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* The promises of a kind beyond the contract. */
typedef struct deque_promise {
    bool pops_oldest;   /* and not the newest */
    bool steals_oldest; /* no entry older than a stolen one is left */
    int refusal;        /* -ENOMEM: when it could not allocate. -ENOBUFS: when there is no room */
} deque_promise;

typedef struct family {
    const char *name;             /* behind that of the kind; "": none */
    unsigned length, long_length; /* of the scripts; the second with --long */
    unsigned thieves, tries;
    unsigned capacity;
    uint64_t start;    /* of the counters inside */
    unsigned batch;    /* entries that a thief takes at a time; 0: steal instead of steal_batch */
    unsigned faults;   /* allocations that may fail */
    bool is_announced; /* the owner announces each push, and a thief each EMPTY */
    bool is_silent;    /* thieves that find nothing make no request: take, which is half of steal */
    const char *before; /* a script for one thread, in setup */
    const char *only;   /* this script, and no other */
    /* At most so many preemptions, and one read of an old value; one more of each with --long. 0:
     * any number. */
    unsigned preemptions;
} family;

#define LENGTH_MAX 10
#define ENTRIES_MAX 40
#define THIEVES_MAX 2
#define BATCH_MAX 4
#define BEFORE (THIEVES_MAX + 1) /* the number of the thief in setup */

typedef struct entry {
    int data;     /* plain: written before the push, read by the thread that obtains the entry */
    int taken;    /* plain, too: the thread that obtains the entry has it alone */
    int thief;    /* the thief that has stolen it; 0: none */
    int below;    /* the entry held under it at its push, or -1 */
    bool is_in;   /* it was pushed */
    bool is_gone; /* the owner found that thieves must have it */
    bool is_rest; /* it was left at the end */
} entry;

static TYPE(DEQUE) deque;
static entry entries[ENTRIES_MAX];
static int pushed; /* pushes that the owner has tried */
/* The entries that, as far as the owner knows, no thief has taken: held[oldest .. newest). */
static int held[ENTRIES_MAX], oldest, newest;
static unsigned pops, losses[THIEVES_MAX + 2]; /* by thread */
static bool is_finishing;
static filch_atomic_u32 announced, seen_empty[THIEVES_MAX + 2];

/* The program that runs now. */
static const deque_promise *promise;
static const family *now;
static const char *script;
static bool is_dead; /* there was no memory for the deque */

static void take(entry *e)
{
    mc_check(e >= entries && e < entries + ENTRIES_MAX, "an entry is obtained");
    mc_check(e->is_in, "only what was pushed is obtained");
    mc_check(e->data == 100 + (int)(e - entries), "the data of the entry is there");
    mc_check(e->taken++ == 0, "an entry is obtained once");
}

/* ---- owner ----------------------------------------------------------------------------------- */

static void push(void)
{
    entry *e = &entries[pushed++];

    *e = (entry){
        .data = 99 + pushed, .below = newest > oldest ? held[newest - 1] : -1, .is_in = true};
    int err = deque_push(&deque, e);
    if (err) {
        mc_check(err == promise->refusal, "a push fails for a reason that the kind has");
        mc_check(err != -ENOBUFS || newest - oldest >= (int)now->capacity, "there is no room");
        e->is_in = false;
        return;
    }
    held[newest++] = (int)(e - entries);
    if (now->is_announced)
        filch_store_release(&announced, (uint32_t)pushed);
}

/* The owner finds that thieves have, or are about to have, these entries. */
static void give_up(int from, int to)
{
    for (int i = from; i < to; i++)
        entries[held[i]].is_gone = true;
}

static bool pop(void)
{
    uint32_t empty_at = 0;
    void *got = NULL;
    int at;

    for (int i = 1; now->is_announced && i <= THIEVES_MAX; i++) {
        uint32_t then = filch_load_acquire(&seen_empty[i]);
        empty_at = then > empty_at ? then : empty_at;
    }
    if (!deque_pop(&deque, &got)) {
        give_up(oldest, newest);
        oldest = newest = 0;
        return false;
    }
    entry *e = got;
    pops++;
    take(e);
    e->is_rest = is_finishing;
    mc_check((uint32_t)(e - entries) >= empty_at, "a thief that found nothing was right");
    for (at = oldest; at < newest && held[at] != (int)(e - entries); at++)
        ;
    mc_check(at < newest, "what is popped was there");
    if (promise->pops_oldest) {
        give_up(oldest, at);
        oldest = at + 1;
    } else {
        mc_check(!promise->steals_oldest || at == newest - 1, "the newest entry is popped");
        give_up(at + 1, newest);
        newest = at;
    }
    return true;
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

/* ---- thieves --------------------------------------------------------------------------------- */

static filch_steal_result try_to_steal(int self, void **got, size_t *count)
{
    if (now->is_silent && self != BEFORE)
        return deque_take(&deque, got, now->batch > 0 ? now->batch : 1, count);
    return now->batch > 0 ? deque_steal_batch(&deque, got, now->batch, count)
                          : deque_steal(&deque, got);
}

/* Returns the newest entry that was stolen, or NULL. All stolen entries are newer than `last`. */
static entry *steal(int self, const entry *last)
{
    uint32_t told = now->is_announced ? filch_load_acquire(&announced) : 0;
    void *got[BATCH_MAX] = {NULL};
    size_t count = 1;

    switch (try_to_steal(self, got, &count)) {
    case FILCH_STEAL_WON:
        mc_check(count > 0 && (now->batch == 0 || count <= now->batch), "as many as wanted");
        for (size_t i = 0; i < count; i++) {
            entry *e = got[i];
            take(e);
            e->thief = self;
            mc_check(!promise->steals_oldest || e > last, "older entries are stolen first");
            last = e;
        }
        return got[count - 1];
    case FILCH_STEAL_LOST:
        losses[self]++;
        return NULL;
    default:
        if (now->is_announced)
            filch_store_release(&seen_empty[self], told);
        return NULL;
    }
}

static void thief(void)
{
    const entry *last = NULL;

    for (unsigned i = 0; i < now->tries && !is_dead; i++) {
        const entry *e = steal(mc_self() - 1, last);
        last = e ? e : last;
    }
}

/* ---- before and after ------------------------------------------------------------------------ */

static void setup(void)
{
    is_dead = DEQUE_INIT(&deque, now->capacity, now->start) != 0;
    for (const char *c = now->before; c && *c && !is_dead; c++) {
        if (*c == 'p')
            push();
        else if (*c == 't')
            pop();
        else
            mc_check(!steal(BEFORE, NULL) == (*c == 'e') || *c == 'x', "nobody else is there");
    }
}

/* Thieves have taken the oldest entry each time. */
static void check_order(void)
{
    bool is_left = false;

    for (int i = 0; i < pushed; i++) {
        const entry *e = &entries[i];
        if (promise->pops_oldest)
            mc_check(!is_left || !e->is_in || e->is_rest, "all take the oldest");
        else
            mc_check(!e->thief || e->below < 0 || entries[e->below].thief, "the oldest is stolen");
        is_left |= e->is_rest;
    }
}

static void finish(void)
{
    unsigned steals = 0, others;

    if (is_dead)
        return;
    is_finishing = true;
    while (pop())
        ;
    mc_check(deque_size_hint(&deque) == 0, "nothing is left");
    for (int i = 0; i < pushed; i++) {
        const entry *e = &entries[i];
        mc_check(e->taken == e->is_in, "every entry is obtained");
        mc_check(!e->is_gone || e->thief, "what the owner did not find was stolen");
        steals += e->thief != 0;
    }
    if (promise->steals_oldest)
        check_order();
    for (int i = 1; i <= THIEVES_MAX; i++) {
        others = pops + steals;
        for (int k = 0; k < pushed; k++)
            others -= entries[k].thief == i;
        mc_check(losses[i] <= others, "who lost was not alone");
    }
    deque_fini(&deque);
}

/* ---- scripts --------------------------------------------------------------------------------- */

static void run_script(mc_options options, const char *name, mc_result *total)
{
    char full_name[80];
    mc_program program = {
        .name = full_name, .setup = setup, .threads = {owner, thief}, .finish = finish};

    if (now->thieves == 2)
        program.threads[2] = thief;
    snprintf(full_name, sizeof full_name, "%s %s", name, script);
    mc_run_and_add(total, &program, &options);
}

static int run_family(mc_options options)
{
    char name[64], text[LENGTH_MAX + 1] = "";
    mc_result total = {.name = name};
    unsigned length = options.is_long ? now->long_length : now->length;

    snprintf(name, sizeof name, TEXT(DEQUE) "%s%s %ux%u", *now->name ? " " : "", now->name,
             now->thieves, now->tries);
    options.check_leaks = true;
    if (now->preemptions > 0)
        options = mc_bounded(options, now->preemptions, 1);
    script = text;
    faults = now->faults;
    for (unsigned bits = 0; bits < 1u << length && total.verdict != MC_FAILED; bits++) {
        for (unsigned i = 0; i < length; i++)
            text[i] = bits >> (length - 1 - i) & 1 ? 't' : 'p';
        run_script(options, name, &total);
    }
    return mc_report(total);
}

static int check_deque(const deque_promise *kind, const family *families, size_t family_count,
                       int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    int code = 0;

    promise = kind;
    for (size_t i = 0; i < family_count && code == 0; i++) {
        now = &families[i];
        code = run_family(options);
    }
    return code;
}

#endif
