/* SPDX-License-Identifier: MIT */
/*
 * The model is RC11: on random straight-line programs, the checker finds the executions that the
 * axioms allow, and no others.
 *
 * The axioms stand below as in the paper (Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing
 * sequential consistency in C/C++11", 2017), with the release sequences of C++20. The test tries
 * them on every candidate: each way to say from which store each load reads (rf) and in which order
 * the stores of each word come (mo). It uses nothing of the engine.
 *
 * The outcome of an execution is what each operation read and what each word held at the end. Both
 * sides must have the same outcomes, and the same number of executions for each outcome, so that
 * the rest of mo is compared, too.
 *
 * usage: oracle_test [programs] [seed]
 */
#include "mc/mc.h"
#include "relation.h"

#include <filch/atomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rlx = __ATOMIC_RELAXED, acq = __ATOMIC_ACQUIRE, rel = __ATOMIC_RELEASE };
enum { ar = __ATOMIC_ACQ_REL, sc = __ATOMIC_SEQ_CST };

#define WORDS 3
#define THREADS_MAX 4
#define OPS_MAX 4
#define ACCESSES_MAX 8
#define FENCES_MAX 9

typedef enum verb { LOAD, STORE, EXCHANGE, CAS, FENCE } verb;

/* A stored value occurs nowhere else in the program, so it names the store. */
typedef struct op {
    verb verb;
    int order, failure_order;
    unsigned word, value, expected;
} op;

static filch_atomic_u32 words[WORDS];
static op script[THREADS_MAX][OPS_MAX];
static unsigned lengths[THREADS_MAX], threads;

/* ---- outcomes -------------------------------------------------------------------------------- */

#define OUTCOMES_MAX (1 << 17)

typedef struct outcomes {
    uint64_t *list;
    unsigned count;
} outcomes;

static MC_KEEP outcomes allowed, found;

static void add_outcome(outcomes *o, uint64_t outcome)
{
    if (o->count == OUTCOMES_MAX) {
        fputs("oracle_test: too many executions\n", stderr);
        exit(2);
    }
    o->list[o->count++] = outcome;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort(outcomes *o)
{
    qsort(o->list, o->count, sizeof *o->list, compare);
}

/* Values are below 16, operations and words fewer than 16. */
static uint64_t with(uint64_t outcome, unsigned value)
{
    return outcome << 4 | value;
}

/* ---- what the axioms allow ------------------------------------------------------------------- */

#define NOWHERE WORDS /* the place of fences */
_Static_assert(WORDS + 2 * ACCESSES_MAX + FENCES_MAX <= EVENTS_MAX, "a set has room for all");

/* A read-modify-write is two events, the read and the write. */
typedef struct event {
    unsigned word, value;
    const op *op;
} event;

static event events[EVENTS_MAX];
static set reads, writes, fences; /* that can be */
static set absent;                /* stores of a CAS that fails */
static set is_acq, is_rel, is_sc; /* by their orders */
static relation sb, rmw, rf, mo, loc;
static unsigned read_from[EVENTS_MAX];

static relation happens_before(void)
{
    relation sequence = maybe(closure(then(rf, rmw)));
    relation released = then(maybe(then(only(fences), sb)), then(only(writes), sequence));
    relation acquired = then(only(reads), maybe(then(sb, only(fences))));
    relation sw = then(then(only(is_rel), released), then(rf, then(acquired, only(is_acq))));

    return closure(either(sb, sw));
}

static bool is_consistent(relation hb)
{
    relation fr = except(then(inverse(rf), mo), only(~(set)0));
    relation eco = closure(either(rf, either(mo, fr)));

    if (!is_irreflexive(then(hb, maybe(eco))) || !is_empty(both(rmw, then(fr, mo))))
        return false;

    relation sb_elsewhere = except(sb, loc);
    relation scb = either(either(sb, THEN3(sb_elsewhere, hb, sb_elsewhere)),
                          either(both(hb, loc), either(mo, fr)));
    relation sc_fence = only(is_sc & fences);
    relation psc_base = THEN3(either(only(is_sc), then(sc_fence, maybe(hb))), scb,
                              either(only(is_sc), then(maybe(hb), sc_fence)));
    relation psc_fence = THEN3(sc_fence, either(hb, THEN3(hb, eco, hb)), sc_fence);

    return is_acyclic(either(psc_base, psc_fence));
}

/* ---- every candidate ------------------------------------------------------------------------- */

static unsigned add_event(unsigned word, unsigned value, const op *o)
{
    events[event_count] = (event){word, value, o};
    return event_count++;
}

static void add_op(const op *o)
{
    bool reads_it = o->verb != STORE && o->verb != FENCE;
    bool writes_it = o->verb != LOAD && o->verb != FENCE;
    unsigned first = event_count;

    if (reads_it)
        reads |= (set)1 << add_event(o->word, 0, o);
    if (writes_it)
        writes |= (set)1 << add_event(o->word, o->value, o);
    if (reads_it && writes_it)
        rmw.to[first] = (set)2 << first;
    if (o->verb == FENCE)
        fences |= (set)1 << add_event(NOWHERE, 0, o);
}

static void make_events(void)
{
    event_count = 0;
    reads = writes = fences = 0;
    sb = rmw = loc = (relation){{0}};
    for (unsigned w = 0; w < WORDS; w++)
        writes |= (set)1 << add_event(w, 0, NULL);
    for (unsigned t = 0; t < threads; t++) {
        unsigned first = event_count;
        for (unsigned i = 0; i < lengths[t]; i++)
            add_op(&script[t][i]);
        for (unsigned e = first; e < event_count; e++)
            sb.to[e] = ((set)1 << event_count) - ((set)2 << e);
    }
    for (unsigned e = 0; e < event_count; e++) {
        if (e < WORDS)
            sb.to[e] = ((set)1 << event_count) - ((set)1 << WORDS);
        for (unsigned to = 0; to < event_count; to++)
            if (events[e].word == events[to].word && events[e].word != NOWHERE)
                loc.to[e] |= (set)1 << to;
    }
}

static bool fails(unsigned read)
{
    const op *o = events[read].op;
    return o->verb == CAS && events[read_from[read]].value != o->expected;
}

/* What a CAS reads decides about orders, and about which stores are there. False: a load reads from
 * a store that is not there. */
static bool settle_orders(void)
{
    absent = is_acq = is_rel = is_sc = 0;
    for (unsigned e = 0; e < event_count; e++)
        if (has(reads, e) && fails(e))
            absent |= (set)2 << e;
    for (unsigned e = 0; e < event_count; e++) {
        const op *o = events[e].op;
        if (!o)
            continue;
        int order = has(reads, e) && fails(e) ? o->failure_order : o->order;
        if (has(reads, e) && has(absent, read_from[e]))
            return false;
        is_acq |= (set)(!has(writes, e) && (order == acq || order == ar || order == sc)) << e;
        is_rel |= (set)(!has(reads, e) && (order == rel || order == ar || order == sc)) << e;
        is_sc |= (set)(order == sc) << e;
    }
    is_acq &= ~absent;
    is_rel &= ~absent;
    is_sc &= ~absent;
    return true;
}

static void note_allowed(void)
{
    uint64_t outcome = 0;

    for (unsigned e = 0; e < event_count; e++)
        if (has(reads, e))
            outcome = with(outcome, events[read_from[e]].value);
    for (unsigned w = 0; w < WORDS; w++)
        for (unsigned e = 0; e < event_count; e++)
            if (events[e].word == w && has(writes & ~absent, e) && !mo.to[e])
                outcome = with(outcome, events[e].value);
    add_outcome(&allowed, outcome);
}

static set stores_of(unsigned word)
{
    set s = 0;

    for (unsigned e = WORDS; e < event_count; e++)
        if (events[e].word == word)
            s |= writes & ~absent & (set)1 << e;
    return s;
}

/* Try all orders of `rest`, the last stores to a word, then of the stores to the words after it. */
static void try_orders(relation hb, unsigned word, set rest)
{
    if (rest) {
        for (unsigned e = 0; e < event_count; e++)
            if (has(rest, e)) {
                mo.to[e] = rest & ~((set)1 << e);
                try_orders(hb, word, mo.to[e]);
                mo.to[e] = 0;
            }
    } else if (++word < WORDS) {
        mo.to[word] = stores_of(word);
        try_orders(hb, word, mo.to[word]);
    } else if (is_consistent(hb)) {
        note_allowed();
    }
}

static void try_reads(unsigned read)
{
    while (read < event_count && !has(reads, read))
        read++;
    if (read == event_count) {
        if (!settle_orders() || !is_acyclic(either(sb, rf)))
            return;
        relation all_sb = sb;
        for (unsigned e = 0; e < event_count; e++)
            sb.to[e] = has(absent, e) ? 0 : sb.to[e] & ~absent;
        relation hb = happens_before();
        mo = (relation){{0}};
        mo.to[0] = stores_of(0);
        if (is_irreflexive(then(hb, rf)))
            try_orders(hb, 0, mo.to[0]);
        sb = all_sb;
        return;
    }
    for (unsigned w = 0; w < event_count; w++)
        if (has(writes, w) && events[w].word == events[read].word) {
            read_from[read] = w;
            rf.to[w] |= (set)1 << read;
            try_reads(read + 1);
            rf.to[w] &= ~((set)1 << read);
        }
}

/* ---- what the checker finds ------------------------------------------------------------------ */

#define SEEN_MAX (1 << 16)

static unsigned read_values[THREADS_MAX][OPS_MAX];
static MC_KEEP uint64_t last_outcome;
static MC_KEEP uint64_t seen[SEEN_MAX]; /* fingerprints; 0 is free */
static MC_KEEP unsigned seen_count;

static void run_op(const op *o, unsigned *value)
{
    filch_atomic_u32 *word = &words[o->word];
    uint32_t expected = o->expected;

    switch (o->verb) {
    case LOAD:
        *value = MC_LOAD(word, o->order);
        break;
    case STORE:
        MC_STORE(word, o->value, o->order);
        break;
    case EXCHANGE:
        *value = MC_MODIFY(word, MC_EXCHANGE, o->value, o->order);
        break;
    case CAS:
        MC_CAS(word, &expected, o->value, o->order, o->failure_order);
        *value = expected;
        break;
    case FENCE:
        mc_fence(o->order, MC_SITE("fence"));
        break;
    }
}

static void run_script(void)
{
    int t = mc_self() - 1;

    for (unsigned i = 0; i < lengths[t]; i++)
        run_op(&script[t][i], &read_values[t][i]);
}

static void finish(void)
{
    uint64_t outcome = 0;

    for (unsigned t = 0; t < threads; t++)
        for (unsigned i = 0; i < lengths[t]; i++)
            if (script[t][i].verb != STORE && script[t][i].verb != FENCE)
                outcome = with(outcome, read_values[t][i]);
    for (unsigned w = 0; w < WORDS; w++)
        outcome = with(outcome, words[w].filch_value);
    last_outcome = outcome;
}

/* The same execution may come in several orders. */
static void note_found(uint64_t execution)
{
    unsigned at = (unsigned)(execution >> 40) % SEEN_MAX;

    while (seen[at] && seen[at] != execution)
        at = (at + 1) % SEEN_MAX;
    if (seen[at])
        return;
    seen[at] = execution;
    if (++seen_count == SEEN_MAX / 2) {
        fputs("oracle_test: too many executions\n", stderr);
        exit(2);
    }
    add_outcome(&found, last_outcome);
}

static mc_result explore(void)
{
    mc_options options = {.each = note_found};
    mc_program program = {.name = "random", .finish = finish};

    for (unsigned t = 0; t < threads; t++)
        program.threads[t] = run_script;
    memset(seen, 0, sizeof seen);
    seen_count = 0;
    return mc_run(&program, &options);
}

/* ---- generated ------------------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static int load_order(int order)
{
    return order == rel ? rlx : order == ar ? acq : order;
}

static int store_order(int order)
{
    return order == acq ? rlx : order == ar ? rel : order;
}

/* Much seq_cst: all orders, or some of them. */
static int generate_order(unsigned profile)
{
    static const int orders[4][6] = {{rlx, acq, rel, ar, sc, sc},
                                     {rlx, sc, sc, sc, sc, sc},
                                     {rlx, rlx, rlx, acq, rel, sc},
                                     {ar, ar, sc, sc, sc, sc}};
    return orders[profile][below(6)];
}

static op generate_fence(void)
{
    return (op){.verb = FENCE, .order = below(3) ? sc : acq + (int)below(3)};
}

static op generate_access(verb v, unsigned word, unsigned profile, unsigned value)
{
    op o = {.verb = v, .word = word, .value = value, .order = generate_order(profile)};

    if (o.verb == LOAD)
        o.order = load_order(o.order);
    if (o.verb == STORE)
        o.order = store_order(o.order);
    o.failure_order = load_order(generate_order(profile));
    o.expected = below(3) ? 0 : 1 + below(ACCESSES_MAX);
    return o;
}

static verb generate_verb(void)
{
    static const verb verbs[] = {LOAD, LOAD, LOAD, STORE, STORE, STORE, EXCHANGE, CAS};
    return verbs[below(8)];
}

/* Two threads of up to four operations, three of up to three, four of up to two. */
static void generate_any(unsigned profile, bool has_fences)
{
    unsigned word_count = 2 + (below(4) == 0), accesses = 0, length = 6 - threads;

    for (unsigned t = 0; t < threads; t++) {
        lengths[t] = length - (below(3) == 0);
        for (unsigned i = 0; i < lengths[t]; i++)
            if ((has_fences && below(4) == 0) || accesses == ACCESSES_MAX)
                script[t][i] = generate_fence();
            else
                script[t][i] =
                    generate_access(generate_verb(), below(word_count), profile, ++accesses);
    }
}

static op generate_leg(unsigned word, unsigned profile, unsigned value)
{
    verb v = below(4) ? (verb)below(2) : generate_verb();
    return generate_access(v, word, profile, value);
}

/*
 * Programs whose threads form a circle, as in SB, MP and IRIW: each thread ends at the word where
 * the next one begins. In between there may be a fence or another access. Some threads only store.
 *
 *     T1: x, y    T2: y    T3: y, fence, z    T4: z, x
 */
static void generate_circle(unsigned profile, bool has_fences)
{
    unsigned word_count = 2 + (threads > 2 && below(2)), left = word_count, accesses = 0;
    unsigned spare = ACCESSES_MAX - threads - word_count;

    for (unsigned t = 0; t < threads; t++) {
        unsigned word = (word_count - left) % word_count;
        op *o = script[t];
        if (below(threads - t) >= left) {
            *o++ = generate_access(below(4) ? STORE : EXCHANGE, word, profile, ++accesses);
        } else {
            *o++ = generate_leg(word, profile, ++accesses);
            if (has_fences && below(4)) {
                *o++ = generate_fence();
            } else if (spare > 0 && below(2)) {
                *o++ = generate_leg(below(word_count), profile, ++accesses);
                spare--;
            }
            *o++ = generate_leg((word + 1) % word_count, profile, ++accesses);
            left--;
        }
        lengths[t] = (unsigned)(o - script[t]);
    }
}

static void generate(void)
{
    unsigned profile = below(4);
    bool has_fences = below(3) == 0;

    threads = 2 + below(3);
    if (below(4) == 0)
        generate_any(profile, has_fences);
    else
        generate_circle(profile, has_fences);
}

/* A rare program: whether T1's cas fails depends on T3's, although T3's reads an old store. */
static const op late_cas[3][3] = {
    {{STORE, rlx, rlx, 0, 1, 0}, {CAS, rlx, rlx, 1, 2, 0}},
    {{STORE, rlx, rlx, 1, 3, 0}, {STORE, rlx, rlx, 0, 4, 0}},
    {{LOAD, rlx, rlx, 0, 0, 0}, {LOAD, rlx, rlx, 0, 0, 0}, {CAS, rlx, rlx, 1, 5, 0}},
};

static void take_late_cas(void)
{
    threads = 3;
    for (unsigned t = 0; t < threads; t++) {
        lengths[t] = t < 2 ? 2 : 3;
        memcpy(script[t], late_cas[t], sizeof late_cas[t]);
    }
}

static void print_script(void)
{
    static const char *const names[] = {"load", "store", "exchange", "cas", "fence"};
    static const char *const orders[] = {"rlx", "con", "acq", "rel", "ar", "sc"};

    for (unsigned t = 0; t < threads; t++) {
        printf("  T%u:", t + 1);
        for (unsigned i = 0; i < lengths[t]; i++) {
            const op *o = &script[t][i];
            printf(" %s.%s", names[o->verb], orders[o->order]);
            if (o->verb == CAS)
                printf("/%s(%c, %u, %u)", orders[o->failure_order], "xyz"[o->word], o -> expected,
                       o -> value);
            else if (o->verb == LOAD)
                printf("(%c)", "xyz"[o->word]);
            else if (o->verb != FENCE)
                printf("(%c, %u)", "xyz"[o->word], o -> value);
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, wrong = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, sum = 0;

    allowed.list = malloc(OUTCOMES_MAX * sizeof *allowed.list);
    found.list = malloc(OUTCOMES_MAX * sizeof *found.list);
    for (unsigned i = 0; i < programs; i++) {
        random_state = seed * 1000003 + i;
        if (i == 0)
            take_late_cas();
        else
            generate();
        allowed.count = found.count = 0;
        make_events();
        rf = (relation){{0}};
        try_reads(0);
        mc_result result = explore();

        sort(&allowed);
        sort(&found);
        sum += allowed.count;
        if (result.verdict == MC_OK && allowed.count == found.count &&
            memcmp(allowed.list, found.list, found.count * sizeof *found.list) == 0)
            continue;
        printf("program %u differs: %u executions are allowed, %u were found\n", i, allowed.count,
               found.count);
        print_script();
        wrong++;
    }
    printf("%u programs, %llu executions are allowed; %u differ\n", programs,
           (unsigned long long)sum, wrong);
    return wrong > 0;
}
