/* SPDX-License-Identifier: MIT */
/*
 * Choices: which thread goes on, which store a load reads, which thread a wake wakes.
 *
 * An execution is the list of its choices. Random walks draw them. All other modes search depth
 * first. They find the last choice that has an alternative left, and repeat the choices before it.
 * Then they take that alternative, and the first one at every later choice.
 */
#include "mc/engine.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct node {
    bool is_thread; /* otherwise one of `count` */
    uint32_t chosen, count;
    unsigned enabled;   /* threads that could go on */
    unsigned asleep;    /* of these, threads that need not be tried: another node finds the same */
    unsigned backtrack; /* threads to be tried */
    unsigned done;      /* threads that were tried */
} node;

#define NODES_MAX (2 * MC_STEPS_MAX)

static MC_KEEP struct {
    node *nodes;
    int at, depth;   /* the next choice; choices before depth are repeated */
    int last;        /* thread that went on last */
    int thread_node; /* where it was chosen */
    unsigned preemptions, preemption_limit;
    unsigned stale_reads;
    uint64_t random, switch_mask;
    uint32_t *choices; /* made in this execution, where there were alternatives */
    unsigned choice_count;
    const char *replay; /* the choices still to be repeated */
    uint32_t repeated, repeat_count;
} ex;

void mc_explore_begin(unsigned preemptions)
{
    if (!ex.nodes) {
        ex.nodes = mc_reserve(NODES_MAX * sizeof *ex.nodes);
        ex.choices = mc_reserve(NODES_MAX * sizeof *ex.choices);
    }
    ex.at = ex.depth = 0;
    ex.replay = NULL;
    ex.preemption_limit = preemptions;
    ex.random = (mc.options.seed + 1) * 0x9e3779b97f4a7c15u;
}

static uint64_t next_random(void)
{
    uint64_t x = ex.random += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Before each execution. */
void mc_explore_rewind(void)
{
    ex.at = 0;
    ex.choice_count = 0;
    ex.preemptions = 0;
    ex.stale_reads = 0;
    ex.last = 0;
    /* Some walks change threads at every other operation, some at one in sixteen. */
    ex.switch_mask = ((uint64_t)2 << (next_random() & 3)) - 1;
}

/* ---- the choices of one execution, for a replay ---------------------------------------------- */

static void note_choice(uint32_t choice)
{
    if (ex.choice_count == NODES_MAX)
        mc_fatal("limit", "more than %u choices in one execution", ex.choice_count);
    ex.choices[ex.choice_count++] = choice;
}

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* One character per choice, larger numbers in brackets, a run of equal choices as "1*24.". A
 * leading ~ says that stores have places. */
char *mc_choices(void)
{
    char *text = malloc(24 * (size_t)ex.choice_count + 2), *to = text;

    if (mc.has_places)
        *to++ = '~';
    for (unsigned i = 0, run; i < ex.choice_count; i += run) {
        uint32_t choice = ex.choices[i];
        for (run = 1; i + run < ex.choice_count && ex.choices[i + run] == choice;)
            run++;
        to += choice < 62 ? sprintf(to, "%c", digits[choice]) : sprintf(to, "(%u)", choice);
        if (run > 4)
            to += sprintf(to, "*%u.", run);
        else
            run = 1;
    }
    *to = '\0';
    return text;
}

void mc_replay(const char *choices)
{
    mc.has_places = choices[0] == '~';
    ex.replay = choices + mc.has_places;
    ex.repeat_count = 0;
}

/* Parse the number at `ex.replay + 1`, and move behind it and the character that ends it. */
static uint32_t parse_number(void)
{
    char *end;
    uint32_t number = (uint32_t)strtoul(ex.replay + 1, &end, 10);

    ex.replay = *end ? end + 1 : end;
    return number;
}

static uint32_t next_replayed(void)
{
    const char *found;

    if (ex.repeat_count > 0) {
        ex.repeat_count--;
        return ex.repeated;
    }
    if (*ex.replay == '(') {
        ex.repeated = parse_number();
    } else {
        if (*ex.replay == '\0' || !(found = strchr(digits, *ex.replay)))
            mc_fatal("replay", "the choices end too early: they are of another program");
        ex.repeated = (uint32_t)(found - digits);
        ex.replay++;
    }
    if (*ex.replay == '*')
        ex.repeat_count = parse_number() - 1;
    return ex.repeated;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

int mc_node(void)
{
    return ex.thread_node;
}

/* All choices so far are those of the execution before. */
bool mc_is_repeated(void)
{
    return ex.at < ex.depth;
}

static node *repeat(bool is_thread, unsigned shape)
{
    node *n = &ex.nodes[ex.at++];

    if (n->is_thread != is_thread || (is_thread ? n->enabled : n->count) != shape)
        mc_fatal("client", "the program is not deterministic: the same choices led elsewhere");
    return n;
}

static node *append(const node *n)
{
    if (ex.depth == NODES_MAX)
        mc_fatal("limit", "more than %d choices in one execution", NODES_MAX);
    ex.nodes[ex.depth++] = *n;
    return &ex.nodes[ex.at++];
}

static bool try_another(node *n)
{
    if (!n->is_thread)
        return ++n->chosen < n->count;
    n->done |= 1u << n->chosen;
    unsigned rest = n->backtrack & ~n->done & ~n->asleep;
    if (!rest)
        return false;
    n->chosen = (uint32_t)__builtin_ctz(rest);
    return true;
}

bool mc_explore_next(void)
{
    while (ex.depth > 0 && !try_another(&ex.nodes[ex.depth - 1]))
        ex.depth--;
    return ex.depth > 0;
}

void mc_add_backtrack(int at, unsigned initials)
{
    node *n = &ex.nodes[at];

    initials &= n->enabled;
    /* One initial thread is enough: it may be in the set already, or another node finds the
     * same. */
    if (!initials || initials & (n->backtrack | n->asleep))
        return;
    n->backtrack |= initials & -initials;
}

/* ---- which thread goes on -------------------------------------------------------------------- */

static bool is_preemption(unsigned enabled, unsigned t)
{
    return (enabled >> ex.last & 1) && t != (unsigned)ex.last &&
           mc.threads[ex.last].op.kind != OP_PAUSE;
}

/* Threads that may be tried here. The last thread that ran is tried first, else the first of
 * them. */
static unsigned candidates(unsigned enabled)
{
    if (mc.options.mode == MC_FULL)
        return enabled & ~mc.asleep;
    if (!is_preemption(enabled, MC_THREADS_MAX))
        return enabled;
    bool may_preempt = ex.preemptions < ex.preemption_limit &&
                       (mc.options.no_reduction || mc_share_matters(&mc.threads[ex.last]));
    return may_preempt ? enabled : 1u << ex.last;
}

static int pick_searched(unsigned enabled)
{
    if (ex.at < ex.depth) {
        ex.thread_node = ex.at;
        node *n = repeat(true, enabled);
        if (mc.is_reduced)
            mc.asleep = n->asleep | n->done;
        return (int)n->chosen;
    }
    unsigned allowed = candidates(enabled);
    if (!allowed)
        return -1;
    unsigned t = allowed >> ex.last & 1 ? (unsigned)ex.last : (unsigned)__builtin_ctz(allowed);
    ex.thread_node = ex.at;
    append(&(node){.is_thread = true,
                   .chosen = t,
                   .enabled = enabled,
                   .asleep = mc.asleep,
                   .backtrack = mc.is_reduced ? 1u << t : allowed});
    return (int)t;
}

static int pick_random(unsigned enabled)
{
    uint64_t random = next_random();

    if ((enabled >> ex.last & 1) && random & ex.switch_mask)
        return ex.last;
    unsigned k = (unsigned)(random >> 32) % (unsigned)__builtin_popcount(enabled);
    while (k-- > 0)
        enabled &= enabled - 1;
    return __builtin_ctz(enabled);
}

int mc_pick_thread(unsigned enabled)
{
    bool is_choice = enabled & (enabled - 1);
    int t;

    if (ex.replay)
        t = is_choice ? (int)next_replayed() : __builtin_ctz(enabled);
    else if (mc.options.mode == MC_RANDOM)
        t = pick_random(enabled);
    else
        t = pick_searched(enabled);
    if (t < 0 || (!ex.replay && mc_is_preempted_in_vain(&mc.threads[t])))
        return -1;
    if (!(enabled >> t & 1))
        mc_fatal("replay", "T%d cannot go on: the choices are of another program", t);
    if (is_choice)
        note_choice((uint32_t)t);
    mc.threads[t].preempted_at = 0;
    if (is_preemption(enabled, (unsigned)t)) {
        ex.preemptions++;
        mc.threads[ex.last].preempted_at = mc.step_count + 1;
    }
    ex.last = t;
    mc.asleep &= ~(1u << t);
    return t;
}

/* ---- other choices
 * ----------------------------------------------------------------------------- */

unsigned mc_pick(unsigned count)
{
    uint32_t chosen;

    if (count <= 1)
        return 0;
    if (ex.replay)
        chosen = next_replayed();
    else if (mc.options.mode == MC_RANDOM)
        chosen = (uint32_t)(next_random() >> 32) % count;
    else if (ex.at < ex.depth)
        chosen = repeat(false, count)->chosen;
    else
        chosen = append(&(node){.count = count})->chosen;
    note_choice(chosen);
    return chosen;
}

/* Note the distance from the newest store: it does not depend on how many older stores are left
 * out. */
uint32_t mc_pick_store(uint32_t newest, const uint32_t *older, unsigned count)
{
    if (ex.replay) {
        uint32_t distance = next_replayed();
        note_choice(distance);
        return newest - distance;
    }
    if (mc.options.mode == MC_BOUNDED && mc.options.stale && ex.stale_reads == mc.options.stale)
        count = 0;
    unsigned noted = ex.choice_count;
    unsigned chosen = mc_pick(count + 1);
    uint32_t index = chosen == 0 ? newest : older[chosen - 1];
    ex.stale_reads += index != newest;
    ex.choice_count = noted;
    note_choice(newest - index);
    return index;
}

unsigned mc_choose(unsigned count)
{
    unsigned chosen = mc_pick(count);

    if (mc.is_traced)
        mc_trace(mc.current, (mc_site){0}, "chooses %u of %u", chosen, count);
    return chosen;
}
