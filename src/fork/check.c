/* SPDX-License-Identifier: MIT */
/*
 * The checks of FILCH_CHECKED builds: joins out of order, twice, or never.
 *
 * Each fork gets a number: how many forks are open on its strand. At its join it must be the newest
 * open fork.
 *
 * Forks without macros have no numbers. They may be joined by a file that is not checked. Here the
 * rule is that all slots from the frame on are free. A slot there is not free
 *
 *   - if it has a task of filch_fork that was not begun, or
 *   - if it is public: the join of a public task moves the split below it.
 *
 * The rule is checked whenever a frame is used. A called function may not have joined a task. Then
 * the check finds that at the caller's next fork or join, or at the end of the caller's task.
 */
#include "fork/fork.h"
#include "strand/notes.h"
#include "strand/plain.h"
#include "worker/worker.h"

#include <filch/task.h>

#include <stdio.h>
#include <stdlib.h>

/* Forks that found no slot cannot be told apart: from then on the strand's current task is not
 * checked. */
#define UNKNOWN (~0u)

/* `task` is not joined. `when` says where that was noticed, as the end of the message. */
static _Noreturn void stop_for_fork(filch_slot *task, const char *when)
{
    const filch_plain *plain = filch_plain_in(task);

    if (plain->seal == filch_plain_seal(plain))
        fprintf(stderr, "filch: %s:%u: the task forked here by filch_fork is not joined: %s\n",
                plain->file, plain->line, when);
    else
        fprintf(stderr, "filch: a task was forked or spawned and not joined: %s\n", when);
    abort();
}

static unsigned generation_of(const filch_strand *strand)
{
    return strand->pool ? strand->pool->generation : 0;
}

/* All slots from `f` on must be free. Returns a task that is in one of them, or NULL. */
static filch_slot *find_open(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    size_t i = (size_t)(f - filch_split_slots(&strand->split));

    if (f >= strand->split.end)
        return NULL;
    if (filch_plain_is_live(f) && filch_plain_in(f)->generation == generation_of(strand))
        return f;
    return filch_split_now(&strand->split) > i ? f : NULL;
}

/* A frame is used at file:line. */
static void check_frame(filch_frame *f, const char *file, int line)
{
    filch_slot *task = find_open(f);
    char when[200];

    if (!task)
        return;
    snprintf(when, sizeof when, "%s:%d forks or joins with a frame from before that fork", file,
             line);
    stop_for_fork(task, when);
}

void filch_check_end(filch_strand *strand)
{
    filch_slot *first = filch_split_slots(&strand->split);

    if (find_open(first))
        stop_for_fork(first, "its forker has returned");
}

/* file:line is the place of the task's definition. */
unsigned filch_check_enter(const char *file, int line, filch_frame *f, const char *task)
{
    if (!f) {
        fprintf(stderr,
                "filch: %s:%d: the task '%s' is called without a frame, which only FILCH_RUN can "
                "do\n",
                file, line, task);
        abort();
    }
    return filch_strand_of(f)->open_forks;
}

static _Noreturn __attribute__((noinline, cold)) void
stop_at_leave(const char *file, int line, filch_frame *f, int count, const char *task)
{
    char when[200];

    if (count == 0) {
        snprintf(when, sizeof when, "%s:%d: the task '%s' has returned", file, line, task);
        stop_for_fork(f, when);
    }
    fprintf(stderr,
            "filch: %s:%d: the task '%s' returned with %d forked or spawned and not joined\n", file,
            line, task, count);
    abort();
}

static __attribute__((noinline)) void check_leave(const char *file, int line, filch_frame *f,
                                                  unsigned open, const char *task,
                                                  const void *free_below)
{
    filch_strand *strand = filch_strand_of(f);

    /* In the child of a fork(), objects in use belong to the parent: nothing will write to them. */
    if (strand->pool && filch_pool_is_alive(strand->pool))
        filch_notes_check(strand, free_below);
    int count = strand->open_forks == UNKNOWN ? 0 : (int)(strand->open_forks - open);
    if (count != 0 || find_open(f))
        stop_at_leave(file, line, f, count, task);
}

void filch_check_leave(const char *file, int line, filch_frame *f, unsigned open, const char *task)
{
    FILCH_NOTES_KEEP_STACK();
    check_leave(file, line, f, open, task, __builtin_frame_address(0));
    FILCH_NOTES_KEPT();
}

unsigned filch_check_fork(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);

    if (f >= strand->split.end)
        strand->open_forks = UNKNOWN;
    return strand->open_forks == UNKNOWN ? UNKNOWN : strand->open_forks++;
}

void filch_check_join(filch_frame *f, unsigned order, const char *name, const char *file, int line)
{
    filch_strand *strand = filch_strand_of(f);

    if (strand->open_forks == UNKNOWN)
        return;
    if (strand->open_forks == order + 1) {
        strand->open_forks = order;
        return;
    }
    if (strand->open_forks <= order)
        fprintf(stderr, "filch: %s:%d: '%s' is joined a second time\n", file, line, name);
    else
        fprintf(stderr,
                "filch: %s:%d: '%s' is joined out of order: %u forked after it, here or in a task "
                "called from here, not joined\n",
                file, line, name, strand->open_forks - order - 1);
    abort();
}

void filch_check_sync(filch_frame *f, filch_frame *mark)
{
    filch_strand *strand = filch_strand_of(f);

    if (strand->open_forks != UNKNOWN)
        strand->open_forks -= (unsigned)(f - mark);
}

filch_frame *filch_check_plain_fork(const char *file, int line, filch_frame *f, filch_fn *fn,
                                    void *arg)
{
    if (!f) {
        fprintf(stderr, "filch: %s:%d: filch_fork without a frame\n", file, line);
        abort();
    }
    check_frame(f, file, line);
    filch_notes_begin(filch_strand_of(f));
    *filch_plain_in(f) = (filch_plain){.fn = fn,
                                       .arg = arg,
                                       .file = file,
                                       .line = (unsigned)line,
                                       .generation = generation_of(filch_strand_of(f))};
    filch_plain_in(f)->seal = filch_plain_seal(filch_plain_in(f));
    filch_fork_fill(f, filch_plain_run_checked);
    return filch_fork_is_slow(f) ? filch_spawn_slow(f, f) : f + 1;
}

filch_frame *filch_check_plain_join(const char *file, int line, filch_frame *f, filch_frame *mark)
{
    if (f)
        check_frame(f, file, line);
    return filch_join(f, mark);
}
