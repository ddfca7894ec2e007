/* SPDX-License-Identifier: MIT */
/*
 * Time for tasks: the clock, deadlines, sleep, yield, and periods. A task that sleeps costs no thread.
 *
 *     filch_sleep_ns(f, 1000000);                            the task sleeps; its worker does not
 *     uint64_t deadline_ns = filch_after_ms(500);            for the calls that end in _until
 *
 *     filch_period beat;
 *     filch_period_init(&beat, filch_now_ns(), 10000000);    a hundred times a second
 *     while (filch_period_wait(f, &beat) == 0) ...
 *
 * filch/filch.h has the rules for all calls that wait.
 */
#ifndef FILCH_TIME_H
#define FILCH_TIME_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is a time long past, and no way to say that there is no deadline; only options of scopes and pipelines, where zero is what was not set, take it so. */
#define FILCH_NO_DEADLINE UINT64_MAX

/* The clock of all deadlines: nanoseconds, monotonic. */
FILCH_API uint64_t filch_now_ns(void);

/* A deadline so many nanoseconds from now; FILCH_NO_DEADLINE if that is further than the clock counts. */
FILCH_API uint64_t filch_after_ns(uint64_t ns);
FILCH_INLINE uint64_t filch_after_ms(uint64_t ms)
{
    return ms > FILCH_NO_DEADLINE / 1000000 ? FILCH_NO_DEADLINE : filch_after_ns(ms * 1000000);
}

/* Wait. 0 or -ECANCELED. */
FILCH_API int filch_sleep_ns(filch_frame *f, uint64_t ns);
FILCH_API int filch_sleep_until(filch_frame *f, uint64_t deadline_ns);

/* Let others run that are ready to. 0 or -ECANCELED. */
FILCH_API int filch_yield(filch_frame *f);

/* A beat: filch_period_wait returns 0 at start_ns, start_ns + period_ns, ... and does not drift. Who comes too late for a beat has it at once; those before it
 * are skipped, and counted in `missed`. 0 or -ECANCELED: then the beat is still to come. For one task. */
typedef struct filch_period {
    uint64_t next_ns, period_ns, missed;
} filch_period;
FILCH_API void filch_period_init(filch_period *period, uint64_t start_ns, uint64_t period_ns);
FILCH_API int filch_period_wait(filch_frame *f, filch_period *period);

#ifdef __cplusplus
}
#endif

#endif
