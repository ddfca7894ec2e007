/* SPDX-License-Identifier: MIT */
/*
 * A beat: the next one is computed from the last, never from the clock, so it does not drift.
 */
#include "base/clock.h"

#include <errno.h>
#include <filch/scope.h>

void filch_period_init(filch_period *period, uint64_t start_ns, uint64_t period_ns)
{
    *period = (filch_period){.next_ns = start_ns, .period_ns = period_ns};
}

/* If several beats have passed, all but the latest are missed. */
static void skip(filch_period *period, uint64_t now_ns)
{
    uint64_t count = period->period_ns ? (now_ns - period->next_ns) / period->period_ns : 0;

    period->missed += count;
    period->next_ns += count * period->period_ns;
}

int filch_period_wait(filch_frame *f, filch_period *period)
{
    uint64_t now_ns = filch_clock_ns();
    int err;

    if (now_ns >= period->next_ns) {
        skip(period, now_ns);
        err = filch_is_cancelled(f) ? -ECANCELED : 0;
    } else {
        err = filch_sleep_until(f, period->next_ns);
    }
    if (!err && __builtin_add_overflow(period->next_ns, period->period_ns, &period->next_ns))
        period->next_ns = FILCH_NO_DEADLINE;
    return err;
}
