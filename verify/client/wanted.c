/* SPDX-License-Identifier: MIT */
/*
 * A strand that works while workers are idle: they ask it for tasks, and take the tasks that it
 * publishes.
 *
 * T1 runs a strand, through filch_worker_run of the loop (worker_loop.h), which is part of this
 * file. The others are workers in filch_worker_main: awake (a) or asleep (s) at first. The strand
 * runs a script:
 *
 *     f   forks a task
 *     j   joins the newest
 *     q   waits until it is asked: while a worker is idle, this must happen
 *     w   forks a task and waits until it was run; only at the start or after q, where the fork
 *         must publish
 *
 * The client generates all scripts up to a length. wanted_pop.c does the same with another deque.
 * With + there is a job in the inject queue that never ends: it keeps one worker busy, and another
 * must come. A worker that sleeps on beside work leaves the strand waiting for ever, which the
 * checker reports.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <filch/task.h>
#include <stdio.h>
#include <string.h>

#define TASKS 4
#ifndef LENGTH /* of the longest script; shorter for deques with more operations */
#define LENGTH 2
#endif
#define LENGTH_MAX 6

static filch_pool *pool;
static filch_strand *first;
static filch_job endless;
static filch_atomic_u32 never, has_run[TASKS];
static int runs[TASKS]; /* plain: the thread that runs a task, or has joined it, has it alone */
static bool is_done;

static const char *script, *beginnings;
static bool has_job;

static void run_task(filch_frame *f, void *task)
{
    (void)f;
    runs[(size_t)task]++;
    filch_store_release(&has_run[(size_t)task], 1);
}

static void never_end(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    for (;;)
        filch_futex_wait(&never, 0, NULL);
}

static void run_script(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split);
    size_t count = 0, forked[TASKS], open = 0;

    for (const char *c = script; *c || open > 0; c += *c != '\0') {
        switch (*c) {
        case 'w':
        case 'f':
            forked[open++] = count;
            f = filch_fork(f, run_task, (void *)count++);
            while (*c == 'w' && !filch_load_acquire(&has_run[count - 1]))
                filch_pause();
            break;
        case 'q':
            while (self->kind
                       ? filch_load_relaxed(&self->split.asked) == 0
                       : filch_load_relaxed(&self->split.limits.fork_limit) != FILCH_FORK_ASKED)
                filch_pause();
            break;
        default:
            f = filch_join(f, f - 1);
            mc_check(runs[forked[--open]] == 1, "a task that was joined has run once");
        }
    }
    is_done = true;
}

static void setup(void)
{
    unsigned others = (unsigned)strlen(beginnings);

    pool = make_small_pool(1 + others);
    for (unsigned i = 0; i < others; i++)
        if (beginnings[i] == 's')
            filch_sleep_push(&pool->sleep, i + 1, FILCH_ROLE_RUNNING);
        else
            filch_sleep_search(&pool->sleep, others);
    for (unsigned i = 0; i <= others; i++)
        filch_worker_have_spare(pool->workers[i]);
    if (has_job) {
        endless = (filch_job){.fn = never_end};
        filch_queue_push(&pool->inject, &endless.link);
    }
    first = filch_worker_prepare(pool->workers[0], run_script, NULL, NULL);
}

/* This thread ends here: the others do the next steps of its worker. */
static void forker(void)
{
    filch_worker *worker = pool->workers[0];

    filch_worker_run(worker, first);
    while (worker->next) {
        filch_strand *strand = worker->next;
        worker->next = NULL;
        filch_worker_run(worker, strand);
    }
}

static void work(void)
{
    filch_worker *worker = pool->workers[mc_self() - 1];

    if (beginnings[worker->index - 1] == 's')
        filch_seat_nap(&worker->seat, NULL);
    filch_worker_main(worker);
}

static MC_OUTSIDE bool may_rest(void)
{
    return is_done;
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool is_script(const char *text)
{
    unsigned open = 0, forks = 0;

    for (const char *c = text; *c; c++) {
        if (*c == 'j' && open-- == 0)
            return false;
        if (*c == 'w' && c != text && c[-1] != 'q')
            return false;
        if (*c == 'q' && c[1] == 'q')
            return false;
        open += *c == 'f' || *c == 'w';
        forks += *c == 'f' || *c == 'w';
    }
    /* After the last wait, nothing is promised. */
    return forks <= TASKS && strchr("qw", text[strlen(text) - 1]);
}

static int run_all(const char *name, mc_options options, const char *begin, bool job,
                   unsigned longest)
{
    mc_result total = {.name = name};
    char text[LENGTH_MAX + 1], program_name[40];
    mc_program program = {.name = program_name, .setup = setup, .threads = {forker}};

    longest += options.is_long;
    options.may_rest = may_rest;
    for (unsigned i = 0; begin[i]; i++)
        program.threads[i + 1] = work;
    beginnings = begin;
    has_job = job;
    script = text;
    for (unsigned length = 1, count = 4; length <= longest; length++, count *= 4)
        for (unsigned k = 0; k < count; k++) {
            unsigned rest = k;
            for (unsigned i = 0; i < length; i++, rest /= 4)
                text[i] = "fjqw"[rest % 4];
            text[length] = '\0';
            if (!is_script(text))
                continue;
            snprintf(program_name, sizeof program_name, "wanted %s%s %s", begin, job ? "+" : "",
                     text);
            mc_run_and_add(&total, &program, &options);
        }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    int code = 0;

    code |= run_all("wanted s", options, "s", false, LENGTH);
    options.timeouts = 3; /* for second looks */
    code |= run_all("wanted a", mc_bounded(options, 1, 1), "a", false, LENGTH);
    code |= run_all("wanted as +", mc_bounded(options, 1, 1), "as", true, LENGTH);
    return code;
}
