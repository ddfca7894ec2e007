/* SPDX-License-Identifier: MIT */
/*
 * A join that waits: the forker leaves its strand, and either the thief that completes the child or
 * the forker's own worker enters it.
 *
 * T1 runs a strand, and T2 and perhaps T3 steal from it. All call the functions of the loop
 * (worker_loop.h), which is part of this file, on a pool without threads. The strand runs a script:
 * f forks a task, F forks a task that forks and joins another, j joins the newest. The client
 * generates all scripts up to a length. Slots, and the thieves' strands, are reused as soon as they
 * are free.
 *
 * Variants of this file:
 *
 *   - join_pop.c and join_claim.c use other deques;
 *   - in join_back.c guests find foreign tasks in a deque for all, and give them back or run them.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <filch/task.h>
#include <stdio.h>

#define TASKS 8
#ifndef LENGTH /* of the longest script; shorter for deques with more operations */
#define LENGTH 3
#define LETTERS "fFj"
#define IS_BOUNDED false
#endif
#ifndef HAS_GUESTS
#define HAS_GUESTS false
#endif

static filch_pool *pool;
static filch_strand *first, *helped; /* guests help the second: no tasks, but the same deque */
/* Plain: the thread that runs a task, or has joined it, has it alone. */
static int runs[TASKS], inner_runs[TASKS];
static int script_runs;
static const char *script;
static unsigned thieves, tries;

static void run_inner(filch_frame *f, void *task)
{
    (void)f;
    inner_runs[(size_t)task]++;
}

static void run_task(filch_frame *f, void *task)
{
    (void)f;
    runs[(size_t)task]++;
}

static void run_outer(filch_frame *f, void *task)
{
    filch_frame *mark = f;

    f = filch_fork(f, run_inner, task);
    runs[(size_t)task]++;
    filch_join(f, mark);
    mc_check(inner_runs[(size_t)task] == 1, "an inner task that was joined has run once");
}

static void run_script(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split);
    size_t count = 0, forked[TASKS], open = 0;

    for (const char *c = script; *c || open > 0; c += *c != '\0') {
        if (*c == 'f' || *c == 'F') {
            forked[open++] = count;
            f = filch_fork(f, *c == 'f' ? run_task : run_outer, (void *)count++);
        } else {
            f = filch_join(f, f - 1);
            mc_check(runs[forked[--open]] == 1, "a task that was joined has run once");
        }
    }
    script_runs++;
}

static void setup(void)
{
    pool = make_small_pool(1 + thieves + HAS_GUESTS);
    filch_worker_have_spare(pool->workers[0]); /* the other workers make their strands */
    first = filch_worker_prepare(pool->workers[0], run_script, NULL, NULL);
    if (HAS_GUESTS) {
        filch_worker *worker = pool->workers[1 + thieves];
        filch_worker_have_spare(worker);
        helped = filch_worker_prepare(worker, run_script, NULL, worker);
        filch_store_relaxed(&worker->strand, helped);
    }
}

/* The loop, while there is a strand to go on with. */
static void go_on(filch_worker *worker, filch_strand *strand)
{
    while (strand) {
        filch_worker_run(worker, strand);
        strand = worker->next;
        worker->next = NULL;
    }
}

static void forker(void)
{
    go_on(pool->workers[0], first);
}

static void thief(void)
{
    filch_worker *worker = pool->workers[mc_self() - 1];

    if (HAS_GUESTS)
        worker->root = pool->workers[1 + thieves];
    else
        filch_sleep_search(&pool->sleep, 8);
    for (unsigned i = 0; i < tries; i++) {
        filch_strand *strand = filch_worker_steal(worker, true);
        if (!strand)
            continue;
        if (!HAS_GUESTS)
            filch_sleep_found(&pool->sleep);
        go_on(worker, strand);
        return;
    }
}

static void finish(void)
{
    mc_check(script_runs == 1, "the script has come to its end");
}

static void run_text(mc_result *total, const mc_options *options, const char *text,
                     unsigned thief_count, unsigned each)
{
    char name[40];
    mc_program program = {
        .name = name, .setup = setup, .threads = {forker, thief}, .finish = finish};

    snprintf(name, sizeof name, "join %s %ux%u", text, thief_count, each);
    if (thief_count == 2)
        program.threads[2] = thief;
    script = text;
    thieves = thief_count;
    tries = each;
    mc_run_and_add(total, &program, options);
}

/* All scripts up to this length. The digits of the number k are letters; k is a script if each j
 * has a task to join. */
static int run_all(const char *name, mc_options options, unsigned longest, unsigned thief_count,
                   unsigned each)
{
    mc_result total = {.name = name};
    char text[TASKS + 1];

    const unsigned letters = sizeof LETTERS - 1;

    longest += options.is_long;
    for (unsigned length = 1, count = letters; length <= longest; length++, count *= letters)
        for (unsigned k = 0; k < count; k++) {
            unsigned rest = k, open = 0, i = 0;
            for (; i < length; i++, rest /= letters) {
                text[i] = LETTERS[rest % letters];
                if (text[i] == 'j' && open-- == 0)
                    break;
                open += text[i] != 'j';
            }
            text[i] = '\0';
            /* The script's end joins all open tasks. */
            if (i == length && text[length - 1] != 'j')
                run_text(&total, &options, text, thief_count, each);
        }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    return run_all("join 1x1", IS_BOUNDED ? mc_bounded(options, 2, 1) : options, LENGTH, 1, 1) |
           run_all("join 1x2", mc_bounded(options, IS_BOUNDED ? 1 : 2, 1), LENGTH - 1, 1, 2) |
           run_all("join 2x1", mc_bounded(options, 1, 1), LENGTH - 1, 2, 1);
}
