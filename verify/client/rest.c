/* SPDX-License-Identifier: MIT */
/*
 * The rest of a part of a loop (src/loop/README.md): every iteration runs once, and its effects are
 * seen after the loop.
 *
 * The owner runs filch_for or filch_reduce over a few iterations, one for each call of the body. A
 * thief publishes and steals the rest meanwhile, as a second look does. It runs the rest as a part
 * of its own. The body does something at one iteration:
 *
 *     -   nothing
 *     p   publishes all tasks, as a wait does
 *     j   forks and joins a task
 *     =   waits until a thief has run an iteration: a livelock if the rest cannot be stolen while a
 *         call runs
 *
 * The thief's part begins with an offer of half of it, which the thief takes back itself: there are
 * two threads. With `a`, the thief asks first, so the owner offers halves.
 */
#include "fork/fork.h"
#include "mc/mc.h"
#include "worker/worker.h"

#include <filch/loop.h>
#include <filch/task.h>
#include <stdio.h>

#define ITERATIONS 5
#define STACK_BYTES ((size_t)16 << 10)

static filch_pool *pool; /* no worker runs its loop */
static filch_worker *workers[2];
static filch_strand *strands[2]; /* of the owner and of the thief */
static filch_atomic_u32 ended;   /* the thief has run an iteration */
static int runs[ITERATIONS];     /* plain: the thread that has an iteration has it alone */
static int joined;

static char act;
static size_t count, act_at;
static unsigned tries;
static bool is_reduction, asks;
static unsigned budget;

/* ---- the loop -------------------------------------------------------------------------------- */

static void join_one(filch_frame *f, void *arg)
{
    (void)f;
    ++*(int *)arg;
}

static void body(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)context;
    mc_check(begin < end && end <= count, "a call gets iterations of the loop");
    for (size_t i = begin; i < end; i++) {
        runs[i]++;
        if (filch_strand_of(f) == strands[1])
            filch_store_release(&ended, 1);
        if (i != act_at)
            continue;
        if (act == 'p')
            filch_publish_all(f);
        if (act == 'j')
            filch_join(filch_fork(f, join_one, &joined), f);
        while (act == '=' && !filch_load_acquire(&ended))
            filch_pause();
    }
}

/* An accumulator: a range without gaps. */
typedef struct range {
    size_t begin, end;
} range;

static void add(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    range *r = accumulator;

    mc_check(r->begin == r->end || r->end == begin, "the accumulator has all smaller indices");
    if (r->begin == r->end)
        r->begin = begin;
    r->end = end;
    body(f, context, begin, end);
}

static void merge(void *left, const void *right, void *context)
{
    range *l = left;
    const range *r = right;

    (void)context;
    if (r->begin == r->end)
        return;
    mc_check(l->begin == l->end || l->end == r->begin, "the right range comes next");
    if (l->begin == l->end)
        l->begin = r->begin;
    l->end = r->end;
}

static const filch_reducer ranges = {.size = sizeof(range), .add = add, .merge = merge};

static void run_loop(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split);
    range all = {0, count};

    if (is_reduction)
        filch_reduce(f, 0, count, &ranges, NULL, &all);
    else
        filch_for(f, 0, count, body, NULL);
    for (size_t i = 0; i < count; i++)
        mc_check(runs[i] == 1, "an iteration has run once");
    mc_check(all.begin == 0 && all.end == count, "the result has all iterations");
    mc_check(act != 'j' || joined == 1, "the task of the body has run once");
    mc_check(filch_split_now(&self->split) == 0, "the loop leaves the split at 0");
    mc_check(!filch_split_is_live(filch_split_slots(&self->split)) ||
                 filch_split_known(&self->split) == 0,
             "a free slot that is known holds no task");
}

/* ---- threads --------------------------------------------------------------------------------- */

static void setup(void)
{
    uintptr_t key = is_reduction ? (uintptr_t)add : (uintptr_t)body;

    pool = calloc(1, sizeof *pool);
    pool->alive = calloc(1, sizeof *pool->alive);
    pool->worker_count = 2;
    filch_store_relaxed(pool->alive, 1);
    filch_timers_init(&pool->timers);
    filch_strands_init(&pool->strands, pool, STACK_BYTES);
    for (unsigned i = 0; i < 2; i++) {
        workers[i] = calloc(1, sizeof *workers[i]);
        workers[i]->pool = pool;
        strands[i] = filch_strand_take(&pool->strands);
        strands[i]->worker = workers[i];
        strands[i]->split.budget = budget;
        filch_split_answer(&strands[i]->split);
        /* Four iterations make a chunk: there is one for each call. */
        for (unsigned k = 0; k < FILCH_PACE_NOTES; k++)
            workers[i]->paces[k] = (filch_pace_note){key, 4};
    }
}

/* The worker's loop for a strand that waits, without the other work. */
static void owner(void)
{
    strands[0]->body = run_loop;
    for (;;) {
        filch_strand_enter(strands[0], &workers[0]->native);
        filch_slot *child = workers[0]->waits_for;
        if (!child)
            return;
        while (filch_load_acquire(&child->state) != FILCH_TASK_DONE)
            filch_pause();
        workers[0]->waits_for = NULL;
    }
}

/* As run_stolen of the loop does. */
static void run_stolen(filch_strand *self)
{
    filch_slot *task = self->argument;
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_MARKS;

    ((filch_thunk *)thunk)(filch_split_slots(&self->split), task);
    filch_exchange_acq_rel(&task->state, FILCH_TASK_DONE);
}

/* LOST: the owner was faster, so look again. */
static filch_steal_result steal(void)
{
    filch_split *split = &strands[0]->split;
    filch_steal_result reached = FILCH_STEAL_EMPTY;
    filch_slot *task;

    if (filch_split_mark(split, 2))
        reached = filch_split_reach(split, 2, filch_barrier_all());
    if (filch_split_steal(split, &task) != FILCH_STEAL_WON)
        return reached;
    filch_sleep_found(&pool->sleep);
    strands[1]->body = run_stolen;
    strands[1]->argument = task;
    filch_strand_enter(strands[1], &workers[1]->native);
    filch_sleep_search(&pool->sleep, 8);
    return FILCH_STEAL_WON;
}

static void thief(void)
{
    filch_sleep_search(&pool->sleep, 8);
    if (asks)
        filch_split_ask(&strands[0]->split, true);
    for (unsigned i = 0; i < tries; i++)
        steal();
    /* The owner waits for this thief. */
    while (act == '=' && !filch_load_acquire(&ended))
        if (steal() == FILCH_STEAL_EMPTY)
            filch_pause();
    filch_sleep_found(&pool->sleep);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void run(mc_result *total, mc_options options)
{
    char name[64];
    mc_program program = {.name = name, .setup = setup, .threads = {owner, thief}};

    snprintf(name, sizeof name, "rest %s%s %zu%c%zu %u %u", is_reduction ? "reduce" : "for",
             asks ? "a" : "", count, act, act_at, tries, budget);
    mc_run_and_add(total, &program, &options);
}

static int run_all(const char *name, mc_options options, unsigned longest)
{
    mc_result total = {.name = name};

    for (budget = 0; budget <= 2; budget += 2)
        for (count = 2; count <= longest + options.is_long; count++)
            for (const char *c = "-pj="; *c; c++)
                for (act_at = 0; act_at < (*c == '-' ? 1 : count); act_at++) {
                    /* There is no rest while the last iteration runs. */
                    if (*c == '=' && act_at + 1 == count)
                        continue;
                    act = *c;
                    tries = *c == '=' ? 0 : 2;
                    run(&total, options);
                }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    int code = 0;

    code |= run_all("rest for", mc_bounded(options, 2, 2), 3);
    asks = true;
    code |= run_all("rest for asked", mc_bounded(options, 1, 1), 3);
    asks = false;
    is_reduction = true;
    code |= run_all("rest reduce", mc_bounded(options, 2, 1), 3);
    return code;
}
