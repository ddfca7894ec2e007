/* SPDX-License-Identifier: MIT */
/*
 * A strand comes into view, or looks for requests, while a worker goes to sleep: the sleeper asks
 * the strand, or the strand's next fork finds the sleeper.
 *
 * T1 runs a strand as worker 0. T2 is worker 1, in the idle half of filch_worker_main without the
 * search. Both use the functions of the loop (worker_loop.h), which is part of this file, as is
 * src/fork/kinds.c for its locks. The strand runs a script:
 *
 *     f   forks a task
 *     l   looks for requests, as loops do; if no worker is idle, its forks are fast again
 *     v   runs a job inside, as filch_run does in a task: the strand is out of view meanwhile
 *     q   waits until T2 has looked for the last time before it sleeps, or has a task
 *     j   joins the newest
 *     |   leaves, as a join does, and is shown again; one thread ran what comes before
 *
 * An execution ends when T2 has a task. If T2 sleeps on beside a task that it should have seen, the
 * checker reports that. So all programs are small enough for an exhaustive search; join.c and
 * wanted.c check the steps after a steal.
 *
 * The client generates all scripts of f, l, v and q up to a length in which a task must be public.
 * These tasks are the first one since the strand was shown, if nothing comes before it, and each
 * after q. A third thread only asks (?), or is a guest (g).
 */
#include "mutex.h" /* before the code that locks one */

#include "deque/kind.c"
#include "fork/kinds.c"
#include "worker_loop.h"

static const char *deque_name;
#define SMALL_POOL_DEQUE deque_name
#include "small_pool.h"

#include <filch/task.h>
#include <stdio.h>

#define LENGTH 3

static filch_pool *pool;
static filch_strand *first;
static filch_atomic_u32 nothing, has_looked;
static filch_slot never; /* never completes */
static bool is_taken;

static const char *script;
static bool begins_searching; /* T2 counts as a searcher, and looks before it sleeps */
static void (*third)(void);

static void do_nothing(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
}

static void visit_inside(filch_worker *worker)
{
    filch_job job = {.fn = do_nothing};

    mc_check(filch_worker_visit(worker, &job), "there is a strand for a job inside");
    mc_check(filch_job_is_done(&job), "nobody else has it");
}

static void run_script(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split);

    for (const char *c = script; *c; c++) {
        switch (*c) {
        case 'f':
            f = filch_fork(f, do_nothing, NULL);
            break;
        case 'l':
            filch_is_wanted(f);
            break;
        case 'v':
            visit_inside(self->worker);
            break;
        case 'q':
            while (!filch_load_acquire(&has_looked))
                filch_pause();
            break;
        case 'j':
            f = filch_join(f, f - 1);
            break;
        case '|':
            self->worker->waits_for = &never;
            filch_strand_leave(self);
            break;
        }
    }
    /* Another thread must take the task. */
    for (;;)
        filch_futex_wait(&nothing, 0, NULL);
}

static void guest(void);

static void setup(void)
{
    pool = make_small_pool(third == guest ? 4 : 2);
    for (unsigned i = 0; i < pool->worker_count; i++)
        filch_worker_have_spare(pool->workers[i]);
    /* The guest wants to help this strand, which has no task now. */
    if (third == guest)
        filch_store_relaxed(&pool->workers[3]->strand,
                            filch_worker_prepare(pool->workers[3], run_script, NULL, pool));
    if (begins_searching)
        filch_sleep_search(&pool->sleep, 1);
    first = filch_worker_prepare(pool->workers[0], run_script, NULL, NULL);
    if (strchr(script, '|')) {
        const filch_visit visit = {.worker = pool->workers[0]};
        set_self(&visit);
        filch_worker_run(pool->workers[0], first);
        set_self(NULL);
    }
    if (third == guest)
        filch_store_relaxed(&pool->workers[0]->strand, first);
}

static void forker(void)
{
    const filch_visit visit = {.worker = pool->workers[0]};

    set_self(&visit);
    filch_worker_run(pool->workers[0], first);
}

static void sleeper(void)
{
    filch_worker *worker = pool->workers[1];
    bool searching = begins_searching, looks = begins_searching;

    for (;;) {
        is_taken = looks && filch_worker_find(worker, false);
        if (is_taken)
            break;
        filch_sleep_push(&pool->sleep, worker->index,
                         searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
        filch_pool_notify_if_work(pool);
        filch_store_release(&has_looked, 1);
        filch_seat_nap(&worker->seat, NULL);
        searching = looks = true;
    }
    filch_store_release(&has_looked, 1);
}

/* The guest helps only another filch_run: tasks that it finds in a deque for all are foreign. */
static void guest(void)
{
    filch_worker *worker = pool->workers[2];

    worker->root = pool;
    mc_check(!filch_worker_steal(worker, false), "a guest takes nothing that is not its business");
}

/* Another thief, which is no longer idle. */
static void asker(void)
{
    filch_split_ask(&first->split, true);
}

static MC_OUTSIDE bool may_rest(void)
{
    return is_taken;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void run_one(mc_result *total, const mc_options *options, bool searching)
{
    char name[64];
    mc_program program = {name, setup, {forker, sleeper, third}, NULL};

    if (third == guest)
        program.threads[0] = guest, program.threads[2] = NULL;
    begins_searching = searching;
    snprintf(name, sizeof name, "shown %s %s%s%s", deque_name, script, searching ? " a" : "",
             third == guest ? " g"
             : third        ? " ?"
                            : "");
    mc_run_and_add(total, &program, options);
}

static bool is_script(const char *text)
{
    bool is_first = true, is_asked = false;

    for (; *text; text++) {
        if (*text == 'f' && (is_first || is_asked))
            return true;
        is_first = *text == 'v';
        is_asked |= *text == 'q';
    }
    return false;
}

/* Scripts with a task while the strand is out of view, and something else, take minutes each. */
static bool is_large(const char *text)
{
    const char *fork = strchr(text, 'f');
    return fork && strchr(fork, 'v') && text[2];
}

static int run_all(const char *deque, unsigned longest, const mc_options *options)
{
    char name[40], text[LENGTH + 1];
    mc_result total = {.name = name};

    snprintf(name, sizeof name, "shown %s", deque);
    longest += options->is_long && longest < LENGTH;
    deque_name = deque;
    script = text;
    for (unsigned length = 1, count = 4; length <= longest; length++, count *= 4)
        for (unsigned k = 0; k < count; k++) {
            unsigned rest = k;
            for (unsigned i = 0; i < length; i++, rest /= 4)
                text[i] = "flvq"[rest % 4];
            text[length] = '\0';
            if (!is_script(text) || (is_large(text) && !options->is_long))
                continue;
            run_one(&total, options, false);
            run_one(&total, options, true);
        }
    return mc_report(total);
}

/* A question that comes during an answer, or before a join. */
static int run_asked(const mc_options *options)
{
    mc_result total = {.name = "shown, asked"};

    deque_name = "split";
    script = "lfffqj";
    run_one(&total, options, false);
    script = "lqf";
    third = asker;
    run_one(&total, options, false);
    deque_name = "chaselev:2";
    run_one(&total, options, false);
    third = NULL;
    run_one(&total, options, false);
    return mc_report(total);
}

/* Older tasks of a strand that waited are left only in deques whose entries are claimed. */
static int run_claimed(const mc_options *options)
{
    mc_result total = {.name = "shown, claimed"};

    script = "f|";
    deque_name = "bwos_fifo:2:1";
    run_one(&total, options, false);
    run_one(&total, options, true);
    deque_name = "global:2";
    run_one(&total, options, false);
    script = "f";
    run_one(&total, options, false);
    return mc_report(total);
}

/* A guest gives a task back only to a deque for all: here a task that a strand in view has forked
 * before. */
static int run_guest(const mc_options *options)
{
    mc_result total = {.name = "shown, guest"};

    script = "f|";
    deque_name = "global:2";
    third = guest;
    run_one(&total, options, false);
    run_one(&total, options, true);
    third = NULL;
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    options.may_rest = may_rest;
    return run_claimed(&options) | run_guest(&options) | run_asked(&options) |
           run_all("split", 3, &options) | run_all("chaselev:2", 2, &options) |
           run_all("bwos_lifo:2:1", 1, &options) | run_all("bwos_fifo:2:1", 1, &options);
}
