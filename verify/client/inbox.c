/* SPDX-License-Identifier: MIT */
/*
 * The inbox of a ring: each pushed request is submitted or served once, and the ring's thread sees
 * it while it is there.
 *
 *   T1   the thread of the ring. It computes, and the handler may interrupt it there. Then it comes
 *        to its loop, takes all, and is interrupted once more. It goes to sleep only if nothing is
 *        left, or the bell will ring.
 *   T2   pushes one or two requests to cancel; or an operation and the request to cancel it.
 *   T3   the lookout: it makes requests urgent, and takes those that were served.
 *
 * In the end each operation and each request was completed once.
 */
#include "io/inbox.h"
#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>

static filch_inbox inbox;
static filch_op requests[2], in_flight[2];
static filch_atomic_u32 bell;
static filch_atomic_u32 ended[4]; /* how often: the requests, then their targets */
static unsigned look_count, request_count;
static bool is_about_waiting; /* the target of the request is in the inbox, too */

static unsigned number_of(const filch_op *op)
{
    return op >= requests && op < requests + 2 ? (unsigned)(op - requests)
                                               : 2 + (unsigned)(op - in_flight);
}

static void end(filch_op *op)
{
    op->fd = -1; /* its memory belongs to its task again */
    mc_check(filch_fetch_add_acq_rel(&ended[number_of(op)], 1) == 0, "each is completed once");
}

/* ---- the thread of the ring ------------------------------------------------------------------ */

static void interrupt(void)
{
    filch_op *op = filch_inbox_begin_urgent(&inbox);
    if (!op)
        return;
    mc_check(op->fd == 7, "it is not complete");
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

/* As the loop of a worker: look into the inbox, then sleep until the bell rings. */
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

/* ---- the other threads ----------------------------------------------------------------------- */

static void ring(void)
{
    filch_fetch_add_acq_rel(&bell, 1);
}

static void push(void)
{
    if (is_about_waiting)
        filch_inbox_push(&inbox, &in_flight[0]);
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
    requests[0].target = &in_flight[0];
    requests[1].target = &in_flight[1];
}

static void look_at_end(void)
{
    mc_check(is_all_ended(), "all are complete");
    mc_check(!inbox.list && !filch_inbox_has_urgent(&inbox) && !filch_inbox_take_served(&inbox),
             "nothing is left");
}

static void run(mc_result *total, const mc_options *options)
{
    char name[40];
    mc_program program = {
        .name = name, .setup = prepare, .threads = {be_thread, push, look}, .finish = look_at_end};

    snprintf(name, sizeof name, "inbox %s %u, %u", is_about_waiting ? "waiting" : "in flight",
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
