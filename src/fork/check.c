/* SPDX-License-Identifier: MIT */
/*
 * The checks of FILCH_CHECKED builds: joins out of order, twice, or never.
 *
 * Each fork gets a number: how many forks are open on its strand. At its join it must be the newest
 * open fork.
 */
#include "strand/strand.h"

#include <filch/task.h>

#include <stdio.h>
#include <stdlib.h>

/* Forks that found no slot cannot be told apart: from then on the strand's current task is not
 * checked. */
#define UNKNOWN (~0u)

unsigned filch_check_enter(filch_frame *f)
{
    return filch_strand_of(f)->open_forks;
}

void filch_check_leave(filch_frame *f, unsigned open, const char *task)
{
    unsigned now = filch_strand_of(f)->open_forks;

    if (now == UNKNOWN || now == open)
        return;
    fprintf(stderr, "filch: the task '%s' returned with %d forked or spawned and not joined\n",
            task, (int)(now - open));
    abort();
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
