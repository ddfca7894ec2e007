/* SPDX-License-Identifier: MIT */
/*
 * Waits of strands and of threads: wait.h, README.md.
 *
 * Edges (strand/wait_word.h has those of the wait itself)
 *   bell            ring -> sleep_on_bell
 *   cancel-or-wait  filch_waiting_wait x filch_scope_cancel
 */
#include "wait/wait.h"

#include "base/clock.h"
#include "fork/fork.h"
#include "strand/inherit.h"
#include "wait/scope.h"

#include <errno.h>
#include <filch/sync.h>

/* ---- strands --------------------------------------------------------------------------------- */

/* The scope that may cancel this wait; NULL: none. */
static filch_scope *scope_of(const filch_waiting *waiting)
{
    filch_strand *strand = waiting->strand;
    return strand && strand->scope && !filch_strand_is_shielded(strand, waiting->f) ? strand->scope
                                                                                    : NULL;
}

void filch_waiting_begin(filch_waiting *waiting, filch_frame *f, enum filch_waits kind,
                         const void *object)
{
    filch_strand *strand = f ? filch_strand_of(f) : NULL;

    *waiting = (filch_waiting){.f = f};
    if (!strand || !filch_strand_can_leave(strand)) {
        waiting->wait = &waiting->own;
        waiting->turn = filch_wait_open(waiting->wait, false);
        return;
    }
    waiting->strand = strand;
    waiting->wait = &strand->wait;
    filch_scope *scope = scope_of(waiting);
    if (scope)
        filch_scope_enlist(scope, strand);
    filch_strand_waits(strand, kind, object);
    waiting->turn = filch_wait_open(waiting->wait, scope != NULL);
}

void filch_waiting_drop(filch_waiting *waiting)
{
    /* If the scope ends the wait at the same moment, this call fails. The wait has ended all the
     * same. */
    filch_wait_end(waiting->wait, waiting->turn, FILCH_WAIT_CANCELLED);
    if (waiting->strand)
        filch_strand_waits_no_more(waiting->strand);
}

static void wait_on_strand(filch_waiting *waiting, uint64_t deadline_ns)
{
    filch_strand *strand = waiting->strand;
    filch_timers *timers = &strand->pool->timers;
    filch_timer timer = {.strand = strand, .turn = waiting->turn};

    /* The wait may depend on one of the strand's own tasks: let thieves take them. A firm wait goes
     * on even if there is no memory to run them. */
    strand->is_firm = waiting->is_firm || filch_strand_is_shielded(strand, waiting->f);
    filch_publish_all(waiting->f);
    if (strand->keeps_all && waiting->f > strand->split.end && !strand->is_firm)
        filch_wait_end(waiting->wait, waiting->turn, FILCH_WAIT_NO_MEMORY);
    if (deadline_ns != FILCH_NEVER_NS && filch_timer_start(timers, &timer, deadline_ns))
        strand->worker->owes_watch = true;

    do
        filch_worker_leave(strand, FILCH_LEAVE_TO_WAIT, NULL);
    while (!filch_wait_try(waiting->wait, waiting->turn));

    if (deadline_ns != FILCH_NEVER_NS)
        filch_timer_stop(timers, &timer);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The last access to a thread's wait: after the store its memory may be gone. The wake-up needs
 * only the address. */
static void ring(filch_waiting *waiting)
{
    /* release [bell] */
    filch_store_release(&waiting->bell, 1);
    filch_futex_wake(&waiting->bell, 1);
}

/* False: the deadline has passed. */
static bool sleep_on_bell(filch_waiting *waiting, uint64_t deadline_ns)
{
    int err = 0;

    /* acquire [bell] */
    while (!filch_load_acquire(&waiting->bell)) {
        if (err == -ETIMEDOUT)
            return false;
        uint64_t now_ns = deadline_ns == FILCH_NEVER_NS ? 0 : filch_clock_ns();
        uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
        struct timespec timeout = filch_timespec(left_ns);
        err = filch_futex_wait(&waiting->bell, 0, deadline_ns == FILCH_NEVER_NS ? NULL : &timeout);
    }
    return true;
}

static void wait_on_thread(filch_waiting *waiting, uint64_t deadline_ns)
{
    if (!filch_wait_park(waiting->wait) || sleep_on_bell(waiting, deadline_ns))
        return;
    /* Another ender was faster, and rings. */
    if (filch_wait_end(waiting->wait, waiting->turn, FILCH_WAIT_TIMED_OUT) == FILCH_WAIT_LATE)
        sleep_on_bell(waiting, FILCH_NEVER_NS);
}

/* ---- both ------------------------------------------------------------------------------------ */

int filch_waiting_wait(filch_waiting *waiting, uint64_t deadline_ns)
{
    filch_scope *scope = scope_of(waiting);

    /* seq_cst [cancel-or-wait] */
    if (scope && filch_load_seq_cst(&scope->mark))
        filch_wait_end(waiting->wait, waiting->turn, FILCH_WAIT_CANCELLED);
    if (waiting->strand)
        wait_on_strand(waiting, deadline_ns);
    else
        wait_on_thread(waiting, deadline_ns);

    unsigned outcome = filch_wait_outcome(waiting->wait);
    return outcome == FILCH_WAIT_TIMED_OUT   ? -ETIMEDOUT
           : outcome == FILCH_WAIT_CANCELLED ? -ECANCELED
           : outcome == FILCH_WAIT_NO_MEMORY ? -ENOMEM
                                             : (int)outcome;
}

static void wake(filch_waiting *waiting, filch_strand *strand, filch_wait_result result,
                 filch_wakes *wakes)
{
    if (result != FILCH_WAIT_RESUME)
        return;
    if (strand)
        filch_wakes_add(wakes, strand);
    else
        ring(waiting);
}

bool filch_waiting_end(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes)
{
    filch_strand *strand = waiting->strand;
    filch_wait_result result = filch_wait_end(waiting->wait, waiting->turn, outcome);

    wake(waiting, strand, result, wakes);
    return result != FILCH_WAIT_LATE;
}

bool filch_waiting_claim(filch_waiting *waiting)
{
    return filch_wait_claim(waiting->wait, waiting->turn);
}

void filch_waiting_finish(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes)
{
    filch_strand *strand = waiting->strand;
    wake(waiting, strand, filch_wait_finish(waiting->wait, waiting->turn, outcome), wakes);
}

bool filch_waiting_nudge(filch_waiting *waiting, filch_wakes *wakes)
{
    filch_wait_result result = filch_wait_nudge(waiting->wait, waiting->turn);

    if (result == FILCH_WAIT_RESUME)
        filch_wakes_add(wakes, waiting->strand);
    return result != FILCH_WAIT_LATE;
}

void filch_wakes_add(filch_wakes *wakes, filch_strand *strand)
{
    strand->link.next = NULL;
    if (wakes->last)
        *wakes->last = &strand->link;
    else
        wakes->first = strand;
    wakes->last = &strand->link.next;
}

void filch_wakes_go(filch_wakes *wakes)
{
    filch_link *link = wakes->last ? &wakes->first->link : NULL, *next;

    for (; link; link = next) {
        next = link->next;
        filch_strand_resume(filch_strand_of_link(link));
    }
    *wakes = (filch_wakes){NULL, NULL};
}

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t filch_now_ns(void)
{
    return filch_clock_ns();
}

uint64_t filch_after_ns(uint64_t ns)
{
    uint64_t deadline_ns;
    return __builtin_add_overflow(filch_clock_ns(), ns, &deadline_ns) ? FILCH_NO_DEADLINE
                                                                      : deadline_ns;
}

int filch_sleep_until(filch_frame *f, uint64_t deadline_ns)
{
    filch_waiting waiting;

    filch_waiting_begin(&waiting, f, FILCH_WAITS_SLEEP, (const void *)(uintptr_t)deadline_ns);
    waiting.is_firm = true;
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    return outcome == -ETIMEDOUT ? 0 : outcome;
}

int filch_sleep_ns(filch_frame *f, uint64_t ns)
{
    return filch_sleep_until(f, filch_after_ns(ns));
}

int filch_yield(filch_frame *f)
{
    filch_strand *strand = f ? filch_strand_of(f) : NULL;

    if (!filch_strand_can_leave(strand))
        return 0;
    filch_publish_all(f);
    filch_worker_leave(strand, FILCH_LEAVE_TO_YIELD, NULL);
    return filch_is_cancelled(f) ? -ECANCELED : 0;
}
