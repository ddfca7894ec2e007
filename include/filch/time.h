/* SPDX-License-Identifier: MIT */
/*
 * Time for tasks: the clock, deadlines, sleep, yield and periods. A task that sleeps costs no
 * thread.
 *
 *     int blink(filch_frame *f)
 *     {
 *         filch_period beat;
 *         int err = filch_sleep_ns(f, 1000000);        // the task sleeps; its worker does not
 *
 *         filch_period_init(&beat, filch_now_ns(), 10000000);
 *         while (!err && (err = filch_period_wait(f, &beat)) == 0)
 *             err = toggle(f, filch_after_ms(5));      // a hundred times a second, each time
 *         return err;                                  // with a deadline of 5 ms
 *     }
 *
 * The rules for all calls that wait are in filch/filch.h, "Calls that wait".
 */
#ifndef FILCH_TIME_H
#define FILCH_TIME_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A deadline that never passes. Zero does not mean "no deadline" but a time long past. The only
 * exceptions are the options of scopes and pipelines, where zero is a member that was not set. */
#define FILCH_NO_DEADLINE UINT64_MAX

/* The clock of all deadlines: monotonic, in nanoseconds. */
FILCH_API uint64_t filch_now_ns(void);

/* The deadline that is `ns` from now; FILCH_NO_DEADLINE if that is beyond the end of the clock. */
FILCH_API uint64_t filch_after_ns(uint64_t ns);
FILCH_INLINE uint64_t filch_after_ms(uint64_t ms)
{
    return ms > FILCH_NO_DEADLINE / 1000000 ? FILCH_NO_DEADLINE : filch_after_ns(ms * 1000000);
}

/* Sleep. Returns 0 or -ECANCELED. */
FILCH_API int filch_sleep_ns(filch_frame *f, uint64_t ns);
FILCH_API int filch_sleep_until(filch_frame *f, uint64_t deadline_ns);

/* Let other ready tasks run first. Returns 0 or -ECANCELED. On a plain thread it does
 * nothing. */
FILCH_API int filch_yield(filch_frame *f);

/* A beat at start_ns, start_ns + period_ns, and so on; it does not drift. For one task. */
typedef struct filch_period {
    uint64_t next_ns, period_ns, missed;
} filch_period;
FILCH_API void filch_period_init(filch_period *period, uint64_t start_ns, uint64_t period_ns);

/* Wait for the next beat. If the caller is late, it returns at once for the latest beat that has
 * passed. It skips earlier beats, and counts them in `missed`. Returns 0, or -ECANCELED: the beat
 * is still to come. */
FILCH_API int filch_period_wait(filch_frame *f, filch_period *period);

#ifdef __cplusplus
}
#endif

#endif
