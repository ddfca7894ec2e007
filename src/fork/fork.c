/* SPDX-License-Identifier: MIT */
/*
 * The slow halves of fork and join on the split stack. The fast halves are in filch/strand.h and
 * filch/task.h, those on other deques in kinds.c.
 *
 * The edges are in README.md, src/deque/README.md and src/sleep/README.md.
 */
#include "fork/fork.h"

#include "fork/kinds.h"
#include "strand/plain.h"
#include "strand/unwind.h"
#include "worker/worker.h"

#include <filch/task.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thief may want work: publish the slots below `count`. While more workers are idle than tasks
 * are public, forks stay slow and each publishes its task. Otherwise they are fast again. */
static void serve(filch_strand *strand, uint32_t count)
{
    filch_split *split = &strand->split;
    filch_worker *worker = strand->worker;

    if (!worker) { /* a serial strand has no thieves */
        filch_split_answer(split);
        return;
    }
    if (strand->keeps_all)
        count = 0;
    filch_pool *pool = worker->pool;
    bool is_published = false;
    do {
        is_published |= filch_split_publish(split, count);
        if (filch_pool_idle_count(pool) > filch_split_public_count(split)) {
            filch_split_arm(split);
            break;
        }
    } while (filch_split_answer(split));
    if (is_published) {
        filch_count(worker, FILCH_COUNT_published, 1);
        filch_pool_notify(pool, worker);
    }
}

/* How many slots lie below `f`. */
static uint32_t count_below(filch_strand *strand, filch_frame *f)
{
    filch_slot *last = f < strand->split.end ? f : strand->split.end;
    return (uint32_t)(last - filch_split_slots(&strand->split));
}

void filch_publish(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind)
        filch_fork_slow(f - 1);
    else
        serve(strand, count_below(strand, f));
}

void filch_publish_all(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind)
        filch_serve_deque(strand);
    else
        serve(strand, count_below(strand, f));
}

void filch_publish_quietly(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind) {
        filch_kind_fork_quietly(strand, f - 1);
        return;
    }
    if (strand->keeps_all || !filch_split_publish(&strand->split, count_below(strand, f)))
        return;
    filch_split_follow(&strand->split);
    filch_count(strand->worker, FILCH_COUNT_published, 1);
}

bool filch_is_wanted(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    filch_split *split = &strand->split;

    if (f >= split->end || !strand->worker)
        return false;
    if (strand->kind && filch_load_relaxed(&split->asked)) /* relaxed: a hint */
        filch_serve_deque(strand);
    size_t public_count =
        strand->kind ? strand->kind->size_hint(strand->deque) : filch_split_public_count(split);
    if (filch_pool_idle_count(strand->worker->pool) > public_count)
        return true;
    /* The request was answered meanwhile: go back to fast forks and joins. */
    if (!strand->kind)
        serve(strand, 0);
    return false;
}

filch_slot *filch_fork_split(filch_strand *strand, filch_frame *f)
{
    if (f >= strand->split.end)
        return strand->split.end;
    serve(strand, count_below(strand, f + 1));
    return f;
}

filch_slot *filch_spawn_slow(filch_frame *f, filch_frame *mark)
{
    filch_strand *strand = filch_strand_of(f);

    if (f < strand->split.end) {
        filch_fork_slow(f);
        return f + 1;
    }
    /* The region is full. Make room by joining the tasks that the calling function has spawned
     * before. */
    filch_slot task = *f;
    filch_slot *room = filch_join(f, mark);
    if (room >= strand->split.end) {
        /* relaxed: own slot, never published. */
        filch_thunk *thunk = (filch_thunk *)filch_load_relaxed(&task.state);
        thunk(room, &task);
        return room;
    }
    memcpy(room->room, task.room, sizeof task.room);
    /* relaxed: as for every fork, and the copy is local. */
    filch_store_relaxed(&room->state, filch_load_relaxed(&task.state));
    return filch_fork_is_slow(room) ? filch_spawn_slow(room, mark) : room + 1;
}

bool filch_join_split(filch_strand *strand, filch_frame *f)
{
    filch_split *split = &strand->split;
    uint32_t i = (uint32_t)(f - filch_split_slots(split));

    if (filch_split_is_armed(split))
        serve(strand, count_below(strand, f));
    if (i >= split->split)
        return true;
    /* acquire [task-done]: only a thief completes it, so a DONE task cannot be taken back. */
    if (filch_load_acquire(&f->state) != FILCH_TASK_DONE) {
        if (filch_split_take_back(split, i)) {
            filch_count(strand->worker, FILCH_COUNT_taken_back, 1);
            return true;
        }
        filch_stolen_wait(strand, f);
    }
    filch_split_reset(split, i);
    return false;
}

/* ---- without macros -------------------------------------------------------------------------- */

filch_slot *filch_fork(filch_frame *f, filch_fn *fn, void *arg)
{
    filch_plain *plain = filch_plain_in(f);

    plain->fn = fn;
    plain->arg = arg;
    /* relaxed: carried to thieves by [task-ready] when the slot is published. */
    filch_store_relaxed(&f->state, (uintptr_t)filch_plain_run);
    return filch_fork_is_slow(f) ? filch_spawn_slow(f, f) : f + 1;
}

filch_slot *filch_join(filch_frame *f, filch_frame *mark)
{
    while (f > mark) {
        f--;
        if (filch_join_is_slow(f) && !filch_join_slow(f))
            continue;
        /* relaxed: own slot, private or taken back. */
        filch_thunk *thunk = (filch_thunk *)filch_load_relaxed(&f->state);
        thunk(f, f);
    }
    return f;
}

FILCH_NOT_INLINED int filch_run_serially(filch_fn *fn, void *arg)
{
    filch_strand *strand = filch_strand_create_serial();

    if (!strand)
        return -ENOMEM;
    fn(filch_split_slots(&strand->split), arg);
    FILCH_STOP_UNWIND();
    filch_check_end(strand);
    filch_strand_destroy_serial(strand);
    return 0;
}

void filch_run_always(filch_pool *pool, filch_fn *fn, void *arg)
{
    if (filch_run(pool, fn, arg) == 0 || filch_run_serially(fn, arg) == 0)
        return;
    fputs("filch: there is no memory to run a task serially, without a pool\n", stderr);
    abort();
}
