/* SPDX-License-Identifier: MIT */
/*
 * Operations: each completes once, its task sees the result, and no thread touches it afterwards.
 *
 * T1 is the task, and stands in for the kernel, too. It starts operations, publishes their
 * completions, and frees the memory of each operation as soon as it is complete. T2 and T3 read the
 * completions, one at a time, as the thread of a ring and the lookout do. A script says how T1
 * waits for each operation:
 *
 *     w   until it is complete
 *     t   its time is up before it has parked: it stops waiting, and then waits again
 *     d   it checks whether the operation is complete, and waits if not
 *
 * The result, the buffer and the index of the next completion to read are plain variables.
 */
#include "io/op.h"
#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS_MAX 2

typedef struct frame {
    filch_op op; /* first: a completion is a pointer to it */
    int buffer;
} frame;

static filch_strand strand;
static frame *completions[OPS_MAX];
static filch_atomic_u32 completion_count, read_count, resumed;
static filch_lock reading;
static unsigned head; /* under the lock */
static const char *script;
static unsigned op_count, parked_count;

/* ---- the task -------------------------------------------------------------------------------- */

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
                mc_check(wait_once(own, false) == 0,
                         "without a deadline the wait ends with the operation");
        mc_check(filch_load_relaxed(&own->op.state) == FILCH_OP_STATE_DONE, "it is complete");
        mc_check(own->op.result == (ssize_t)i && own->buffer == (int)i + 1,
                 "with its result, and what was read");
        free(own);
    }
    mc_check(filch_load_relaxed(&resumed) == parked_count,
             "the strand is resumed as often as it parked");
}

/* ---- readers of completions ------------------------------------------------------------------ */

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

/* ---- programs -------------------------------------------------------------------------------- */

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
