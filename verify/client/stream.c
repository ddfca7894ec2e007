/* SPDX-License-Identifier: MIT */
/*
 * Streams: items are taken once and in order, a waiting task is resumed, and no thread touches a
 * stream that its task found at rest.
 *
 * T1 is the task. It takes items until the stream is at rest and no item is left, and frees it at
 * once. T2 and T3 read completions, one at a time, as the thread of a ring and the lookout do. They
 * stand in for the kernel, too. When two items wait for the task, the reader submits the request
 * that stops the stream. The next completion is then the last. A script says
 *
 *     how T1 waits:          w  until an item comes
 *                            t  the first time, its time is up before it has parked: it stops
 *                               waiting, and looks again
 *     the request completes: b  before the last item
 *                            a  after it
 */
#define FILCH_STREAM_AHEAD 2
#include "io/stream.h"
#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>

static filch_strand strand;
static filch_stream *stream;
static filch_lock reading;
/* Under that lock. */
static unsigned put_count;
static bool has_ended, is_stopped, owes_stop;
static unsigned refused_count;

static filch_atomic_u32 resumed, is_over;
static unsigned item_count, room, parked_count;
static bool is_late, is_stop_first;

/* ---- the task -------------------------------------------------------------------------------- */

static void leave(void)
{
    if (!filch_wait_park(&strand.wait))
        return;
    parked_count++;
    while (filch_load_acquire(&resumed) < parked_count)
        filch_pause();
}

/* False: no item follows. */
static bool wait_for_items(bool is_in_vain)
{
    uint64_t turn = filch_wait_open(&strand.wait, false);
    filch_stream_wait wait = filch_stream_await(stream, &strand, turn, false);

    if (wait != FILCH_STREAM_WAITS) {
        filch_wait_end(&strand.wait, turn, FILCH_WAIT_CANCELLED);
        return wait == FILCH_STREAM_HAS;
    }
    if (is_in_vain)
        filch_wait_end(&strand.wait, turn, FILCH_WAIT_TIMED_OUT);
    leave();
    if (filch_wait_outcome(&strand.wait) == FILCH_WAIT_TIMED_OUT)
        filch_stream_stop_waiting(stream);
    return true;
}

static void use(void)
{
    filch_stream_item item;
    int next = 0;

    for (bool is_first = true;; is_first = false) {
        if (filch_stream_take(stream, &item))
            mc_check(item.result == next++, "items come in order, each once");
        else if (!wait_for_items(is_late && is_first))
            break;
    }
    mc_check(stream->has_lost || next > 0, "what was put is taken");
    mc_check(filch_load_relaxed(&resumed) == parked_count,
             "the strand is resumed as often as it parked");
    if (stream->items != stream->few)
        free(stream->items);
    free(stream);
    filch_store_release(&is_over, (uint32_t)next + 1);
}

/* ---- readers of completions ------------------------------------------------------------------ */

static void resume(filch_strand *waiter)
{
    if (waiter)
        filch_fetch_add_acq_rel(&resumed, 1);
}

static void end_stop(void)
{
    owes_stop = false;
    resume(filch_stream_end_stop(stream));
}

/* True: the last completion was read. */
static bool reap(void)
{
    if (!filch_lock_try(&reading))
        return false;
    if (!has_ended && !(owes_stop && is_stop_first)) {
        bool is_last = put_count + 1 == item_count || is_stopped;
        has_ended = is_last;
        filch_stream_news news =
            filch_stream_put(stream, (filch_stream_item){(int)put_count, FILCH_NO_BUFFER}, is_last);
        refused_count += news.is_refused;
        put_count++;
        if (news.is_to_stop)
            is_stopped = owes_stop = true;
        resume(news.strand);
    } else if (owes_stop) {
        end_stop();
    }
    bool is_done = has_ended && !owes_stop;
    filch_lock_release(&reading);
    return is_done;
}

static void read_all(void)
{
    while (!reap())
        ;
}

static void read_patiently(void)
{
    while (!reap())
        filch_pause();
}

static void read_once(void)
{
    reap();
}

static void prepare(void)
{
    stream = calloc(1, sizeof *stream);
    *stream = (filch_stream){.items = stream->few, .room = room, .is_armed = true};
    stream->stop.target = &stream->op;
}

static void look_at_end(void)
{
    unsigned taken = filch_load_relaxed(&is_over) - 1;
    mc_check(has_ended && !owes_stop, "it was not freed before its end");
    mc_check(taken + refused_count == put_count, "nothing is lost");
}

/* ---- programs -------------------------------------------------------------------------------- */

static int run_all(const char *name, mc_options options, unsigned count, unsigned first_room,
                   bool has_two)
{
    mc_result total = {.name = name};
    char program_name[60];

    item_count = count;
    room = first_room;
    for (unsigned k = 0; k < (count > FILCH_STREAM_AHEAD ? 4 : 2); k++) {
        is_late = k & 1;
        is_stop_first = k & 2;
        mc_program program = {
            .name = program_name,
            .setup = prepare,
            .threads = {use, has_two ? read_patiently : read_all, has_two ? read_once : NULL},
            .finish = look_at_end};
        snprintf(program_name, sizeof program_name, "%s %c%c", name, "wt"[is_late],
                 "ab"[is_stop_first]);
        mc_run_and_add(&total, &program, &options);
    }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv), failing = options;

    options.check_leaks = failing.check_leaks = true;
    failing.faults = 1;
    return run_all("stream, one", options, 1, 4, false) |
           run_all("stream, one, two readers", mc_bounded(options, 1, 1), 1, 4, true) |
           run_all("stream, two", mc_bounded(options, 2, 1), 2, 4, false) |
           run_all("stream, stopped", mc_bounded(options, 1, 1), 3, 4, false) |
           run_all("stream, grows", mc_bounded(failing, 1, 1), 2, 1, false);
}
