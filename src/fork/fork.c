/* SPDX-License-Identifier: MIT */
/*
 * The slow halves of fork and join on the split stack. The fast halves are in filch/strand.h and
 * filch/task.h, those on other deques in kinds.c.
 *
 * The edges are in README.md, src/deque/README.md and src/sleep/README.md.
 */
#include "fork/fork.h"

#include "base/clock.h"
#include "fork/kinds.h"
#include "strand/plain.h"
#include "strand/unwind.h"
#include "worker/worker.h"

#include <filch/task.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- known slots ----------------------------------------------------------------------------- */

/* A slow fork or join takes about 10 ns. A strand may spend so many of them on known slots, and
 * earns one in this time. The clock is read at every 16th join only: that takes as long. */
#define EARNS_NS 1000
#ifndef BUDGET /* the model checker has less */
#define BUDGET 16
#define LEAST 4 /* when a thief has asked */
#define JOINS_TO_CLOCK 16
#define EXTENSION 8 /* a slow fork makes its slot known, and the free slots behind it */
#endif

/* Earn what is due since the last time, and at least `least`. */
static void earn(filch_strand *strand, uint32_t least)
{
    uint64_t ticks = filch_clock_ticks();
    uint64_t earned = (ticks - strand->earned_ticks) / filch_clock_ticks_in(EARNS_NS);
    uint32_t *budget = &strand->split.budget;

    if (earned == 0 && least == 0)
        return;
    strand->earned_ticks = ticks;
    earned = *budget + (earned > least ? earned : least);
    *budget = earned < BUDGET ? (uint32_t)earned : BUDGET;
}

/* The owner joins slot i, the newest, which is known and private as far as it knows. False: an idle
 * worker has published the task. */
static bool claim(filch_strand *strand, uint32_t i, uint32_t split)
{
    filch_split *s = &strand->split;
    uint32_t budget = s->budget, known = filch_split_known(s), kept = known;

    if (i > split && budget > 0)
        s->budget--;
    else if (i > split)
        kept = split + 1 + (i - split) / 2;
    else if (++strand->oldest_joins % JOINS_TO_CLOCK == 0 && budget == 0)
        earn(strand, 0);
    bool is_mine = filch_split_claim(s, i, kept);
    /* An idle worker may have published more slots than are kept known. */
    uint32_t now = filch_split_now(s);
    if (is_mine && kept <= now)
        filch_split_know(s, now + 1);
    if (filch_split_known(s) != known || (budget > 0) != (s->budget > 0))
        filch_split_follow(s);
    return is_mine;
}

/* ---- publish --------------------------------------------------------------------------------- */

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
    if (split->budget < LEAST)
        earn(strand, LEAST - split->budget);
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

/* No task is in the slot of `f`. If the slot is not known, it is about to be. */
static void clear_free(filch_strand *strand, filch_frame *f)
{
    uint32_t i = count_below(strand, f);

    if (i >= filch_split_known(&strand->split))
        filch_split_clear(&strand->split, i);
}

void filch_publish(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind) {
        filch_fork_slow(f - 1);
    } else {
        clear_free(strand, f);
        serve(strand, count_below(strand, f));
    }
}

void filch_publish_all(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind) {
        filch_serve_deque(strand);
    } else {
        clear_free(strand, f);
        serve(strand, count_below(strand, f));
    }
}

void filch_publish_quietly(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    if (strand->kind) {
        filch_kind_fork_quietly(strand, f - 1);
        return;
    }
    clear_free(strand, f);
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
    filch_split *split = &strand->split;

    if (f >= split->end)
        return split->end;
    uint32_t i = count_below(strand, f);
    if (!filch_split_is_armed(split) && split->budget > 0) {
        filch_split_extend(split, i, i + EXTENSION);
        return f;
    }
    clear_free(strand, f + 1);
    serve(strand, i + 1);
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
    /* relaxed: the copy is local. */
    filch_fork_fill(room, (filch_thunk *)filch_load_relaxed(&task.state));
    return filch_fork_is_slow(room) ? filch_spawn_slow(room, mark) : room + 1;
}

/* The task in slot `f` is public, or was stolen. As filch_join_slow. */
static bool join_public(filch_strand *strand, filch_frame *f)
{
    filch_split *split = &strand->split;
    uint32_t i = (uint32_t)(f - filch_split_slots(split));

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

bool filch_join_split(filch_strand *strand, filch_frame *f)
{
    filch_split *split = &strand->split;
    uint32_t i = (uint32_t)(f - filch_split_slots(split));

    if (filch_split_is_armed(split))
        serve(strand, count_below(strand, f));
    if (i >= filch_split_known(split))
        return true;
    uint32_t now = filch_split_now(split);
    if (i >= now && claim(strand, i, now))
        return true;
    return join_public(strand, f);
}

void filch_make_known(filch_frame *f)
{
    filch_split *split = &filch_strand_of(f)->split;
    uint32_t i = (uint32_t)(f - filch_split_slots(split));

    if (i < filch_split_known(split))
        return;
    filch_split_know(split, i + 1);
    filch_split_follow(split);
}

bool filch_join_known(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    filch_split *split = &strand->split;
    uint32_t i = (uint32_t)(f - filch_split_slots(split)), known = filch_split_known(split);

    if (i >= known)
        return true;
    return (i >= filch_split_now(split) && filch_split_claim(split, i, known)) ||
           join_public(strand, f);
}

/* ---- without macros -------------------------------------------------------------------------- */

filch_slot *filch_fork(filch_frame *f, filch_fn *fn, void *arg)
{
    filch_plain *plain = filch_plain_in(f);

    plain->fn = fn;
    plain->arg = arg;
    filch_fork_fill(f, filch_plain_run);
    return filch_fork_is_slow(f) ? filch_spawn_slow(f, f) : f + 1;
}

filch_slot *filch_join(filch_frame *f, filch_frame *mark)
{
    while (f > mark) {
        f--;
        if (filch_join_is_slow(f) && !filch_join_slow(f))
            continue;
        /* relaxed: own slot, private or taken back. */
        uintptr_t thunk = filch_load_relaxed(&f->state) & ~FILCH_TASK_TAKEN;
        ((filch_thunk *)thunk)(f, f);
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
