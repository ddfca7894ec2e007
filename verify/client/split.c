/* SPDX-License-Identifier: MIT */
/*
 * The split stack: every forked task runs once, its forker sees its effects, and a thief that asks
 * is heard.
 *
 * The owner runs a script on a strand, through the shipped slow paths. f forks a task, j joins the
 * newest, q publishes all tasks quietly, as loops do. The client generates all scripts up to a
 * length. Thieves try to steal, ask when nothing is public, and try again. They count as idle in a
 * sleep word on which no thread sleeps, so the owner publishes as it does in a pool.
 *
 * Scripts with a `?` are about questions. The thief begins at `>`, and asks only once. At `?` the
 * owner waits until the thief has asked, or has a task. After the fork that follows, the thief must
 * find a task; the owner waits for that at `!`. At `a` the strand is armed, as when it is shown. A
 * lost question would leave both of them spinning.
 *
 * Programs with `reach` begin with a strand that no thief has asked, and whose budget may be used
 * up.
 * Their thieves publish known tasks themselves, as a second look does. Scripts with `=` show that
 * the oldest private task is always known: at `=` the owner waits, without a fork or a join, until
 * a thief has run a task that was private.
 *
 * The last programs have no thieves: while more workers are idle than tasks are public, each fork
 * publishes at once.
 */
#include "fork/fork.h"
#include "mc/mc.h"
#include "worker/worker.h"

#include <filch/task.h>
#include <stdio.h>

#define TASKS 8
#define STACK_BYTES ((size_t)16 << 10)

static filch_pool *pool; /* without workers: only its sleep word and its strands are used */
static filch_worker *worker;
static filch_strand *strand;
static filch_atomic_u32 begun; /* the thief may ask */
static filch_atomic_u32 told;  /* the thief has asked, or got a task */
static filch_atomic_u32 ended; /* tasks that thieves have run */

static struct {
    int runs; /* plain: the thread that runs a task, or has joined it, has it alone */
} tasks[TASKS];

static const char *script;
static unsigned tries;  /* of each thief; 0: until it has a task */
static unsigned idle;   /* workers that only count: more than there are ever tasks, or 0 */
static bool is_reached; /* thieves publish known tasks; the strand begins unasked */
static unsigned budget; /* of such a strand */

static void run_task(filch_frame *f, void *task)
{
    (void)f;
    tasks[(size_t)task].runs++;
}

static void setup(void)
{
    pool = calloc(1, sizeof *pool);
    worker = calloc(1, sizeof *worker);
    worker->pool = pool;
    pool->alive = calloc(1, sizeof *pool->alive);
    filch_store_relaxed(pool->alive, 1);
    filch_timers_init(&pool->timers);
    filch_strands_init(&pool->strands, pool, STACK_BYTES);
    strand = filch_strand_take(&pool->strands);
    strand->worker = worker;
    for (unsigned i = 0; i < idle; i++)
        filch_sleep_search(&pool->sleep, idle);
}

/* ---- owner ----------------------------------------------------------------------------------- */

static void await(filch_atomic_u32 *word)
{
    while (filch_load_acquire(word) == 0)
        filch_pause();
}

static void run_script(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *bottom = f;
    size_t count = 0, forked[TASKS], open = 0;

    for (const char *c = script; *c || open > 0; c += *c != '\0') {
        if (*c == '>') {
            filch_store_release(&begun, 1);
        } else if (*c == '?') {
            await(&told);
        } else if (*c == '!' || *c == '=') {
            await(&ended);
        } else if (*c == 'a') {
            filch_split_arm(&self->split);
        } else if (*c == 'q') {
            filch_publish_quietly(f);
        } else if (*c == 'f') {
            forked[open++] = count;
            f = filch_fork(f, run_task, (void *)count++);
            mc_check(!idle || filch_split_public_count(&self->split) == open,
                     "a fork is published");
        } else {
            f = filch_join(f, f - 1);
            mc_check(tasks[forked[--open]].runs == 1, "a task that was joined has run once");
        }
    }
    mc_check(f == bottom, "all is joined");
    mc_check(filch_split_now(&self->split) == 0, "the last join leaves the split at 0");
}

/* The worker's loop for a strand that waits, without the other work. */
static void owner(void)
{
    strand->body = run_script;
    if (is_reached) {
        strand->split.budget = budget;
        filch_split_answer(&strand->split);
    } else {
        filch_split_arm(&strand->split);
    }
    for (;;) {
        filch_strand_enter(strand, &worker->native);
        filch_slot *child = worker->waits_for;
        if (!child)
            return;
        while (filch_load_acquire(&child->state) != FILCH_TASK_DONE)
            filch_pause();
        worker->waits_for = NULL;
    }
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* As run_stolen of the loop does. */
static void run_stolen(filch_slot *task)
{
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_MARKS;

    ((filch_thunk *)thunk)(NULL, task);
    filch_exchange_acq_rel(&task->state, FILCH_TASK_DONE);
    filch_fetch_add_relaxed(&ended, 1);
}

static filch_steal_result steal(bool ask)
{
    filch_slot *task;
    filch_steal_result result;

    if (is_reached && filch_split_mark(&strand->split, mc_self() + 1))
        filch_split_reach(&strand->split, mc_self() + 1, filch_barrier_all());
    result = filch_split_steal(&strand->split, &task);

    if (result == FILCH_STEAL_WON) {
        filch_sleep_found(&pool->sleep);
        run_stolen(task);
    } else if (result == FILCH_STEAL_EMPTY && ask && !is_reached) {
        filch_split_ask(&strand->split, false);
    }
    return result;
}

static void thief(void)
{
    filch_sleep_search(&pool->sleep, 8);
    for (unsigned i = 0; i < tries; i++) {
        if (steal(true) != FILCH_STEAL_WON)
            continue;
        if (!is_reached)
            return;
        filch_sleep_search(&pool->sleep, 8);
    }
    filch_sleep_found(&pool->sleep);
}

/* Looks until there is a task: a livelock if a known task cannot be published. */
static void thief_that_reaches(void)
{
    await(&begun);
    filch_sleep_search(&pool->sleep, 8);
    while (steal(false) != FILCH_STEAL_WON)
        filch_pause();
}

static void thief_that_asks_once(void)
{
    filch_steal_result result;

    await(&begun);
    filch_sleep_search(&pool->sleep, 8);
    do
        result = steal(true);
    while (result == FILCH_STEAL_LOST);
    filch_store_release(&told, 1);
    while (result != FILCH_STEAL_WON) {
        if (result == FILCH_STEAL_EMPTY)
            filch_pause();
        result = steal(false);
    }
}

/* ---- scripts --------------------------------------------------------------------------------- */

typedef struct family {
    mc_result total;
    mc_options options;
    unsigned thieves, tries;
    bool is_quiet; /* scripts have q */
    char text[2 * TASKS];
} family;

static void run(family *f)
{
    char name[64];
    bool is_question = strchr(f->text, '?');
    mc_program program = {.name = name, .setup = setup, .threads = {owner, thief}};

    if (is_question)
        program.threads[1] = thief_that_asks_once;
    if (strchr(f->text, '='))
        program.threads[1] = thief_that_reaches;
    if (f->thieves != 1)
        program.threads[f->thieves == 0 ? 1 : 2] = f->thieves == 0 ? NULL : thief;
    snprintf(name, sizeof name, "split %s %ux%u", f->text, f->thieves, f->tries);
    script = f->text;
    tries = f->tries;
    mc_run_and_add(&f->total, &program, &f->options);
}

/* All scripts of this length with this beginning, in which each j has a task to join. */
static void run_all(family *f, unsigned at, unsigned length, unsigned open)
{
    if (at == length) {
        f->text[at] = '\0';
        run(f);
        return;
    }
    f->text[at] = 'f';
    run_all(f, at + 1, length, open + 1);
    f->text[at] = 'j';
    /* The script's end joins all open tasks. */
    if (open > 0 && at + 1 < length)
        run_all(f, at + 1, length, open - 1);
    f->text[at] = 'q';
    if (f->is_quiet && open > 0 && f->text[at - 1] != 'q')
        run_all(f, at + 1, length, open);
}

static family make_family(const char *name, mc_options options, unsigned thieves, unsigned each,
                          int preemptions)
{
    if (preemptions >= 0)
        options = mc_bounded(options, (unsigned)preemptions, 3);
    return (family){.total = {.name = name}, .options = options, .thieves = thieves, .tries = each};
}

/* All scripts up to this length, as one line of the report. Negative preemptions: any number. */
static int run_scripts(const char *name, mc_options options, unsigned longest, unsigned thieves,
                       unsigned each, int preemptions)
{
    family f = make_family(name, options, thieves, each, preemptions);

    for (unsigned length = 1; length <= longest + options.is_long; length++)
        run_all(&f, 0, length, 0);
    return mc_report(f.total);
}

static int run_quiet(mc_options options)
{
    family f = make_family("split quiet 1x1", options, 1, 1, -1);

    f.is_quiet = true;
    for (unsigned length = 2; length <= 4u + options.is_long; length++)
        run_all(&f, 0, length, 0);
    return mc_report(f.total);
}

static int run_questions(mc_options options)
{
    static const char *const scripts[] = {"f>?f!",     "ff>j?f!", "f>j?f!",   "fjff>?j!",
                                          "fjf>aj?f!", ">f?f!",   "ff>jj?f!", "fjf>j?f!"};
    family f = make_family("split question", options, 1, 0, -1);

    for (unsigned i = 0; i < (options.is_long ? 8 : 5); i++) {
        strcpy(f.text, scripts[i]);
        run(&f);
    }
    return mc_report(f.total);
}

/* All scripts with strands that forks and joins leave fast, with and without a budget. Bounded, for
 * the barrier: mc_barrier_all. */
static int run_reached(const char *name, mc_options options, unsigned longest, unsigned thieves,
                       unsigned each, int preemptions)
{
    family f = make_family(name, options, thieves, each, preemptions);

    is_reached = true;
    for (budget = 0; budget <= 2; budget++)
        for (unsigned length = 1; length <= longest + options.is_long; length++)
            run_all(&f, 0, length, 0);
    is_reached = false;
    return mc_report(f.total);
}

/* A thief publishes and takes tasks while the owner publishes, or makes fewer slots known, or more.
 * In the last script, the first burst leaves thunks in slots that are not known. Then the strand
 * earns a budget, and the last fork makes such a slot known. */
static int run_raised(mc_options options)
{
    static const char *const scripts[] = {"ffq", "fqf", "fffff", "ffffjjjjfjff"};
    family f = make_family("split raised", options, 1, 4, 2);

    is_reached = true;
    for (budget = 0; budget <= 2; budget += 2)
        for (unsigned i = 0; i < (budget == 0 ? 4 : 3); i++) {
            strcpy(f.text, scripts[i]);
            f.options = mc_bounded(options, i == 3 ? 3 : 2, i == 3 ? 1 : 3);
            run(&f);
        }
    is_reached = false;
    return mc_report(f.total);
}

static int run_hidden(mc_options options)
{
    static const char *const scripts[] = {">f=", "f>f=", "fjf>=", "ffjj>f=", "fjfjf>=", "ffjf>="};
    family f = make_family("split hidden", options, 1, 0, 2);

    is_reached = true;
    for (budget = 0; budget <= 1; budget++)
        for (unsigned i = 0; i < 6; i++) {
            strcpy(f.text, scripts[i]);
            run(&f);
        }
    is_reached = false;
    return mc_report(f.total);
}

static int run_idle(mc_options options)
{
    family f = make_family("split idle", options, 0, 0, -1);

    idle = TASKS + 1;
    for (unsigned length = 1; length <= TASKS; length++)
        run_all(&f, 0, length, 0);
    idle = 0;
    return mc_report(f.total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    return run_scripts("split 1x1", options, 4, 1, 1, -1) |
           run_scripts("split 1x2", options, 2, 1, 2, -1) | run_quiet(options) | run_idle(options) |
           run_questions(options) | run_hidden(options) |
           run_reached("split reach 1x1", options, 4, 1, 1, 3) |
           run_reached("split reach 1x3", options, 3, 1, 3, 2) |
           run_reached("split reach 2x1", options, 2, 2, 1, 2) | run_raised(options) |
           run_scripts("split 1x2", options, 4, 1, 2, 2) |
           run_scripts("split 2x1", options, 2, 2, 1, 1) |
           run_scripts("split 2x2", options, 1, 2, 2, 1);
}
