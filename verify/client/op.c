/* SPDX-License-Identifier: MIT */
/*
 * Operations: each ends once, its task sees the result, and nobody touches it afterwards.
 *
 * T1 is the task, and stands in for the kernel, too: it starts operations, in memory that it frees as soon as they have ended, and publishes their completions. T2 and T3 read these, as the thread of a ring and
 * the lookout do, one at a time. A script says how T1 waits for each operation:
 *
 *     w   until it has ended
 *     t   its time is up before it has parked: it gives up, and then waits for the end
 *     d   it looks whether it has ended, and waits if not
 *
 * The result and the buffer are plain, and so is the place up to which completions are read.
 */
#include "io/op.h"
#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS_MAX 2

typedef struct frame {
    filch_op op; /* first: the frame of a completion */
    int buffer;
} frame;

static filch_strand strand;
static frame *completions[OPS_MAX];
static filch_atomic_u32 completion_count, read_count, resumed;
static filch_lock reading;
static unsigned head; /* under the lock */
static const char *script;
static unsigned op_count, parked_count;

/* ---- the task ---------------------------------------------------------------------------------- */

static unsigned wait_once(frame *own, bool is_late)
{
    uint64_t turn = filch_wait_open(&strand.wait, false);

    if (!filch_op_await(&own->op, turn)) {
        filch_wait_end(&strand.wait, turn, FILCH_WAIT_CANCELLED);
        return 0;
    }
    if (is_late)
        filch_wait_end(&strand.wait, turn, FILCH_WAIT_TIMED_OUT);
    if (filch_wait_park(&strand.wait)) {
        parked_count++;
        while (filch_load_acquire(&resumed) < parked_count)
            filch_pause();
    }
    unsigned outcome = filch_wait_outcome(&strand.wait);
    return outcome == FILCH_WAIT_TIMED_OUT && !filch_op_stop_waiting(&own->op, turn) ? 0 : outcome;
}

static void run_ops(void)
{
    for (unsigned i = 0; i < op_count; i++) {
        frame *own = calloc(1, sizeof *own);
        own->op.strand = &strand;
        filch_op_set_in_flight(&own->op);
        completions[i] = own;
        filch_store_release(&completion_count, i + 1);

        if (script[i] != 'd' || !filch_op_is_complete(&own->op))
            if (wait_once(own, script[i] == 't') == FILCH_WAIT_TIMED_OUT)
                mc_check(wait_once(own, false) == 0, "without a deadline the end is waited for");
        mc_check(filch_load_relaxed(&own->op.state) == FILCH_OP_STATE_DONE, "it has ended");
        mc_check(own->op.result == (ssize_t)i && own->buffer == (int)i + 1,
                 "with its result, and what was read");
        free(own);
    }
    mc_check(filch_load_relaxed(&resumed) == parked_count,
             "the strand is resumed as often as it parked");
}

/* ---- those who read completions ------------------------------------------------------------------ */

static void reap(void)
{
    if (!filch_lock_try(&reading))
        return;
    unsigned count = filch_load_acquire(&completion_count);
    for (; head < count; head++) {
        frame *own = completions[head];
        filch_op_acquire(&own->op);
        own->buffer = (int)head + 1;
        if (filch_op_complete(&own->op, (ssize_t)head))
            filch_fetch_add_acq_rel(&resumed, 1);
        filch_fetch_add_acq_rel(&read_count, 1);
    }
    filch_lock_release(&reading);
}

static void read_all(void)
{
    for (reap(); filch_load_acquire(&read_count) < op_count; reap())
        filch_pause();
}

/* ---- programs ---------------------------------------------------------------------------------- */

static int run_all(const char *name, mc_options options, unsigned length)
{
    mc_result total = {.name = name};
    char text[OPS_MAX + 1] = "", program_name[40];
    unsigned count = 1;

    script = text;
    op_count = length;
    for (unsigned i = 0; i < length; i++)
        count *= 3;
    for (unsigned k = 0; k < count; k++) {
        for (unsigned i = 0, rest = k; i < length; i++, rest /= 3)
            text[i] = "wtd"[rest % 3];
        mc_program program = {.name = program_name, .threads = {run_ops, read_all, reap}};
        snprintf(program_name, sizeof program_name, "op %s", text);
        mc_run_and_add(&total, &program, &options);
    }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    options.check_leaks = true;
    return run_all("op", options, 1) |
           (options.is_long ? run_all("op, two", mc_bounded(options, 1, 1), 2) : 0);
}
