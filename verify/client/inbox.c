/* SPDX-License-Identifier: MIT */
/*
 * The inbox of a ring: what is pushed is submitted or served, once, and seen by the thread of the ring as long as it is there.
 *
 * T1 is the thread of the ring. It computes, and may be interrupted there by the handler; then it comes to its loop, takes all, is interrupted once more, and looks whether it may go to sleep: only if nothing is left, or the bell will ring. T2 pushes: one or two
 * requests to take something back, or an operation and the request to take it back. T3 is the lookout: it makes requests urgent, and takes what was served. In the end everything was ended once.
 */
#include "io/inbox.h"
#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>

static filch_inbox inbox;
static filch_op requests[2], flying[2];
static filch_atomic_u32 bell;
static filch_atomic_u32 ended[4]; /* how often; of the requests, and of what they are about */
static unsigned look_count, request_count;
static bool is_about_waiting; /* the second pair: both are pushed */

static unsigned number_of(const filch_op *op)
{
    return op >= requests && op < requests + 2 ? (unsigned)(op - requests)
                                               : 2 + (unsigned)(op - flying);
}

static void end(filch_op *op)
{
    op->fd = -1; /* its memory is its task's again */
    mc_check(filch_fetch_add_acq_rel(&ended[number_of(op)], 1) == 0, "each ends once");
}

/* ---- the thread of the ring ---------------------------------------------------------------------- */

static void interrupt(void)
{
    filch_op *op = filch_inbox_begin_urgent(&inbox);
    if (!op)
        return;
    mc_check(op->fd == 7, "it has not ended");
    filch_inbox_end_urgent(&inbox, op);
}

static void empty(void)
{
    filch_op *next;

    if (filch_inbox_seems_empty(&inbox))
        return;
    filch_op *op = filch_inbox_take_all(&inbox);
    filch_op *served = filch_inbox_take_served(&inbox);
    if (served)
        end(served);
    for (; op; op = next) {
        next = op->next;
        end(op);
    }
}

static bool is_all_ended(void)
{
    unsigned count = request_count + is_about_waiting, sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += filch_load_acquire(&ended[i]);
    return sum == count;
}

/* As the loop does it: it sleeps after it has looked into the inbox, until the bell rings. */
static void be_thread(void)
{
    uint32_t heard = 0, rung;

    for (unsigned i = 0; i < look_count; i++)
        interrupt();
    while (!is_all_ended()) {
        empty();
        interrupt();
        if (is_all_ended())
            break;
        while ((rung = filch_load_acquire(&bell)) == heard && filch_inbox_seems_empty(&inbox)) {
            if (is_all_ended())
                return;
            filch_pause();
        }
        heard = rung;
    }
}

/* ---- the others -------------------------------------------------------------------------------- */

static void ring(void)
{
    filch_fetch_add_acq_rel(&bell, 1);
}

static void push(void)
{
    if (is_about_waiting)
        filch_inbox_push(&inbox, &flying[0]);
    for (unsigned i = 0; i < request_count; i++) {
        requests[i].fd = 7;
        filch_inbox_push(&inbox, &requests[i]);
        ring();
    }
}

static void look(void)
{
    for (unsigned i = 0; i < look_count; i++) {
        filch_op *over = filch_inbox_seems_empty(&inbox) ? NULL : filch_inbox_hasten(&inbox);
        if (over) {
            end(over->target);
            end(over);
        }
        filch_op *served = filch_inbox_take_served(&inbox);
        if (served)
            end(served);
    }
}

static void prepare(void)
{
    requests[0].target = &flying[0];
    requests[1].target = &flying[1];
}

static void look_at_end(void)
{
    mc_check(is_all_ended(), "all have ended");
    mc_check(!inbox.list && !filch_inbox_has_urgent(&inbox) && !filch_inbox_take_served(&inbox),
             "nothing is left");
}

static void run(mc_result *total, const mc_options *options)
{
    char name[40];
    mc_program program = {
        .name = name, .setup = prepare, .threads = {be_thread, push, look}, .finish = look_at_end};

    snprintf(name, sizeof name, "inbox %s %u, %u", is_about_waiting ? "waiting" : "flying",
             request_count, look_count);
    mc_run_and_add(total, &program, options);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    const mc_options few = mc_bounded(options, 1, 1), more = mc_bounded(options, 2, 2);
    mc_result total = {.name = "inbox"};

    request_count = look_count = 1;
    run(&total, &more);
    request_count = 2;
    for (unsigned k = 0; k < 4; k++) {
        is_about_waiting = k & 1;
        look_count = 1 + k / 2;
        run(&total, &few);
    }
    return mc_report(total);
}
