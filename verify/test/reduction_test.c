/* SPDX-License-Identifier: MIT */
/*
 * The reduction leaves nothing out, on random small programs:
 *
 * - The reduced search finds the same set of executions as the search that tries every order of
 *   operations.
 * - Bounded search finds the same set as a search that preempts everywhere.
 *
 * The test compares each thread's operations with what they read, and the modification order of
 * each word.
 *
 * usage: reduction_test [programs] [seed]
 */
#include "mc/mc.h"

#include <filch/atomic.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4 /* two, and for bounded search two more, which fewer threads use */
#define THREADS_MAX 3
#define OPS_MAX 6

typedef enum verb {
    LOAD,
    STORE,
    ADD,
    EXCHANGE,
    CAS,
    FENCE,
    WAIT,
    WAKE,
    AWAIT,
    SKIP_IF,
    CHOOSE,
    VERBS
} verb;

typedef struct op {
    verb verb;
    int order;
    unsigned word, value, expected;
} op;

static filch_atomic_u32 words[WORDS];
static op script[THREADS_MAX][OPS_MAX];
static unsigned lengths[THREADS_MAX];

/* ---- the program ----------------------------------------------------------------------------- */

static int load_order(int order)
{
    return order == __ATOMIC_RELEASE   ? __ATOMIC_RELAXED
           : order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE
                                       : order;
}

static int store_order(int order)
{
    return order == __ATOMIC_ACQUIRE   ? __ATOMIC_RELAXED
           : order == __ATOMIC_ACQ_REL ? __ATOMIC_RELEASE
                                       : order;
}

/* True: leave out the next operation. */
static bool run_op(const op *o)
{
    filch_atomic_u32 *word = &words[o->word];
    uint32_t expected = o->expected;

    switch (o->verb) {
    case LOAD:
        (void)MC_LOAD(word, load_order(o->order));
        break;
    case STORE:
        MC_STORE(word, o->value, store_order(o->order));
        break;
    case ADD:
        MC_MODIFY(word, MC_ADD, o->value, o->order);
        break;
    case EXCHANGE:
        MC_MODIFY(word, MC_EXCHANGE, o->value, o->order);
        break;
    case CAS:
        return MC_CAS(word, &expected, o->value, o->order, load_order(o->order));
    case FENCE:
        mc_fence(o->order, MC_SITE("fence"));
        break;
    case WAIT:
        mc_futex(&word->filch_value, FUTEX_WAIT, o->expected, NULL);
        break;
    case WAKE:
        mc_futex(&word->filch_value, FUTEX_WAKE, 1, NULL);
        break;
    case AWAIT:
        while (MC_LOAD(word, load_order(o->order)) == 0 &&
               MC_LOAD(&words[o->word ^ 1], load_order(o->order)) == 0)
            mc_pause(MC_SITE("pause"));
        break;
    case SKIP_IF:
        return MC_LOAD(word, load_order(o->order)) != 0;
    case CHOOSE:
        MC_STORE(word, mc_choose(2), store_order(o->order));
        break;
    default:
        break;
    }
    return false;
}

static void run_script(void)
{
    int t = mc_self() - 1;

    for (unsigned i = 0; i < lengths[t]; i++)
        i += run_op(&script[t][i]);
}

/* ---- generated ------------------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

/* Everything; or no waiting; or no waiting and more seq_cst; or only seq_cst and relaxed. */
static op generate_op(unsigned profile, unsigned word_count)
{
    static const int orders[] = {__ATOMIC_RELAXED, __ATOMIC_RELAXED, __ATOMIC_ACQUIRE,
                                 __ATOMIC_RELEASE, __ATOMIC_ACQ_REL, __ATOMIC_SEQ_CST};
    static const verb fenced[] = {LOAD, LOAD, STORE, STORE, FENCE, FENCE, ADD};
    op o = {(verb)below(profile ? FENCE + 1 : VERBS), orders[below(6)], below(word_count),
            1 + below(2), below(2)};

    if (profile == 3 && below(2))
        o.order = __ATOMIC_SEQ_CST;
    if (profile == 2) {
        o.verb = fenced[below(7)];
        o.order = o.verb == FENCE || below(4) == 0 ? __ATOMIC_SEQ_CST : __ATOMIC_RELAXED;
    }
    return o;
}

static unsigned generate(bool is_bounded)
{
    unsigned profile = below(4), threads = profile == 2 && below(4) ? 2 : 2 + below(2);

    for (unsigned t = 0; t < threads; t++) {
        lengths[t] = (threads == 3   ? 2 + below(2) * (t == 0)
                      : profile == 2 ? 4
                                     : 3) +
                     2 * is_bounded;
        for (unsigned i = 0; i < lengths[t]; i++)
            script[t][i] = generate_op(profile, is_bounded ? 4 : 2);
    }
    return threads;
}

static void print_script(unsigned threads)
{
    static const char *const names[] = {"load", "store", "add",   "exchange", "cas",   "fence",
                                        "wait", "wake",  "await", "skip_if",  "choose"};
    static const char *const orders[] = {"rlx", "con", "acq", "rel", "ar", "sc"};

    for (unsigned t = 0; t < threads; t++) {
        printf("  T%u:", t + 1);
        for (unsigned i = 0; i < lengths[t]; i++) {
            const op *o = &script[t][i];
            printf(" %s.%s(%c,%u,%u)", names[o->verb], orders[o->order], "xyzu"[o->word],
                   o -> value, o -> expected);
        }
        putchar('\n');
    }
}

/* ---- sets of executions ---------------------------------------------------------------------- */

#define SET_MAX (1 << 16)
#define EXECUTIONS_MAX 100000

/* A table without deletion; 0 is free. */
static MC_KEEP uint64_t seen[SET_MAX];
static MC_KEEP unsigned seen_count;

static void remember(uint64_t execution)
{
    unsigned at = (unsigned)(execution >> 40) % SET_MAX;

    while (seen[at] && seen[at] != execution)
        at = (at + 1) % SET_MAX;
    seen_count += !seen[at];
    seen[at] = execution;
    if (seen_count == SET_MAX / 2) {
        fputs("reduction_test: too many executions\n", stderr);
        exit(2);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void make_set(uint64_t *set)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SET_MAX; i++)
        if (seen[i])
            set[count++] = seen[i];
    qsort(set, count, sizeof *set, compare);
}

static mc_result explore(unsigned threads, mc_options options, bool no_reduction, uint64_t *set,
                         unsigned *count)
{
    options.no_reduction = no_reduction;
    options.allow_deadlock = true;
    options.each = remember;
    options.max_executions = EXECUTIONS_MAX;
    mc_program program = {.name = "random"};

    for (unsigned t = 0; t < threads; t++)
        program.threads[t] = run_script;
    memset(seen, 0, sizeof seen);
    seen_count = 0;
    mc_result result = mc_run(&program, &options);
    *count = seen_count;
    make_set(set);
    return result;
}

/* Returns how many programs differ. */
static unsigned compare_all(const char *name, bool is_bounded, unsigned programs, uint64_t seed)
{
    static MC_KEEP uint64_t reduced_set[SET_MAX], all_set[SET_MAX];
    uint64_t reduced_sum = 0, all_sum = 0, distinct_sum = 0;
    unsigned wrong = 0, too_large = 0;

    for (unsigned i = 0; i < programs; i++) {
        unsigned reduced_count, all_count;
        mc_options options = {
            .mode = is_bounded ? MC_BOUNDED : MC_FULL, .preemptions = i % 3, .stale = i / 3 % 3};
        random_state = seed * 1000003 + i;
        unsigned threads = generate(is_bounded);
        mc_result reduced = explore(threads, options, false, reduced_set, &reduced_count);
        mc_result all = explore(threads, options, true, all_set, &all_count);

        if (all.verdict == MC_STOPPED && (reduced.verdict == MC_OK || is_bounded)) {
            too_large++;
            continue;
        }
        reduced_sum += reduced.executions + reduced.blocked;
        all_sum += all.executions + all.blocked;
        distinct_sum += all_count;
        if (reduced.verdict == MC_OK && all.verdict == MC_OK && reduced_count == all_count &&
            memcmp(reduced_set, all_set, all_count * sizeof *all_set) == 0)
            continue;
        printf("%s: program %u differs: %u executions, %u without reduction\n", name, i,
               reduced_count, all_count);
        print_script(threads);
        wrong++;
    }
    printf("%s: %u programs (%u more are too large), %llu distinct executions: %llu explored, %llu "
           "without reduction; %u differ\n",
           name, programs - too_large, too_large, (unsigned long long)distinct_sum,
           (unsigned long long)reduced_sum, (unsigned long long)all_sum, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    unsigned wrong = compare_all("all", false, programs, seed);

    wrong += compare_all("bounded", true, 2 * programs, seed);
    return wrong > 0;
}
