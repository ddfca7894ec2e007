/* SPDX-License-Identifier: MIT */
/*
 * A thief inherits the values bound at the fork, while the strand it stole from binds and unbinds
 * others; a part of a pool is made once.
 *
 * T1 runs a strand, and T2 steals from it, through the functions of the loop (worker_loop.h), which
 * is part of this file. A binding is freed as soon as it is undone.
 */
#include "worker_loop.h"

#include "fork/fork.h"
#include "mc/mc.h"
#include "small_pool.h"

#include <filch/local.h>
#include <filch/scope.h>
#include <filch/task.h>

static filch_pool *pool;
static filch_strand *first;
static filch_key key, other_key;
static int runs;

static void run_task(filch_frame *f, void *expected)
{
    mc_check(filch_local_get(f, &key) == expected,
             "a task has the value that held where it was forked");
    mc_check(!filch_local_get(f, &other_key), "and none that was bound later");
    runs++;
}

static void bind_and_fork(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;
    filch_binding outer;

    filch_local_bind(f, &outer, &key, &pool);
    f = filch_fork(f, run_task, &pool);
    filch_publish(f);
    for (int i = 0; i < 2; i++) {
        filch_binding *inner = malloc(sizeof *inner);
        filch_local_bind(f, inner, i ? &other_key : &key, &runs);
        mc_check(filch_local_get(f, i ? &other_key : &key) == &runs,
                 "what was bound last holds here");
        filch_local_unbind(f, inner);
        free(inner);
    }
    filch_frame *shield = filch_shield(f);
    filch_unshield(f, shield);
    filch_join(f, mark);
    mc_check(runs == 1, "the task has run once");
    filch_local_unbind(mark, &outer);
    mc_check(!filch_local_get(mark, &key), "nothing is bound any more");
}

static void setup(void)
{
    pool = make_small_pool(2);
    filch_worker_have_spare(pool->workers[0]);
    first = filch_worker_prepare(pool->workers[0], bind_and_fork, NULL, NULL);
    filch_strand_begin_task(first, NULL, NULL);
}

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
    filch_sleep_search(&pool->sleep, 8);
    filch_strand *strand = filch_worker_steal(pool->workers[1], true);
    if (strand)
        filch_sleep_found(&pool->sleep);
    go_on(pool->workers[1], strand);
}

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct part {
    filch_part part;
    int made; /* plain */
} part;

static filch_parts parts;

static void add_part(void)
{
    filch_part *known = filch_parts_get(&parts, FILCH_PART_OFFLOAD);

    if (!known) {
        part *new_part = calloc(1, sizeof *new_part);
        new_part->made = 1;
        known = filch_parts_add(&parts, FILCH_PART_OFFLOAD, &new_part->part);
        if (known != &new_part->part)
            free(new_part);
    }
    mc_check(((part *)known)->made == 1, "a part is complete when it is found");
}

static void look_at_part(void)
{
    filch_part *known = filch_parts_get(&parts, FILCH_PART_OFFLOAD);
    mc_check(!known || ((part *)known)->made == 1, "a part is complete when it is found");
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    const mc_options two = mc_bounded(options, 2, 1);
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"inherit", setup, {forker, thief}, NULL}, &two},
        {{"parts", NULL, {add_part, add_part, look_at_part}, NULL}, &options},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
