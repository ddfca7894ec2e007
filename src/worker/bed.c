/* SPDX-License-Identifier: MIT */
/*
 * A thread sleeps in its bed, which is a futex, or in its source; then its bed is AWAY. The
 * protocols are in src/sleep/README.md and README.md.
 */
#include "worker/steps.h"

#include "base/clock.h"
#include "worker/lookout.h"
#include "worker/second_look.h"
#include "worker/source.h"

/* Sleep until the thread is called (returns CALLED or ENDED), or until time is up or an event comes
 * (EMPTY). */
static enum filch_bed_state nap(filch_worker *worker, const struct timespec *timeout)
{
    filch_source *source = filch_worker_source(worker);
    bool is_watching = source && filch_source_watch(source);
    bool is_away = is_watching && filch_seat_go_away(&worker->seat);
    filch_link *strands = is_away ? source->wait(source, timeout) : NULL;
    enum filch_bed_state bed = is_away ? filch_seat_come_back(&worker->seat) : FILCH_BED_EMPTY;

    if (bed != FILCH_BED_EMPTY && source->hush)
        source->hush(source);
    if (is_watching)
        filch_source_unwatch(source);
    /* This wakes a worker, nearly always the calling one. */
    filch_pool_resume(worker->pool, strands);
    return is_away ? bed : filch_seat_nap(&worker->seat, timeout);
}

/* Until the thread is called, another thread may hold the seat. So the loop below touches only
 * those variables of the worker that belong to its own thread. */
bool filch_worker_sleep(filch_worker *worker, uint64_t until_ns, bool is_lookout)
{
    filch_pool *pool = worker->pool;
    uint64_t second_look_ns = filch_second_look_ns(worker);
    uint64_t since_ns = second_look_ns == FILCH_NEVER_NS ? 0 : filch_clock_ns();
    enum filch_bed_state bed;
    bool was_lookout;

    do {
        uint64_t end_ns = until_ns < second_look_ns ? until_ns : second_look_ns;
        bool has_end = end_ns != FILCH_NEVER_NS || is_lookout;
        uint64_t now_ns = has_end ? filch_clock_ns() : 0;
        if (is_lookout && now_ns + filch_look_ns(pool) < end_ns)
            end_ns = now_ns + filch_look_ns(pool);
        uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
        struct timespec timeout = filch_timespec(left_ns);

        bed = nap(worker, has_end ? &timeout : NULL);
        if (bed == FILCH_BED_EMPTY && until_ns != FILCH_NEVER_NS && filch_clock_ns() >= until_ns) {
            filch_timers_unwatch(&pool->timers, worker);
            filch_pool_fire_timers(pool);
            until_ns = filch_timers_watch(&pool->timers, worker);
        }
        if (bed == FILCH_BED_EMPTY && second_look_ns != FILCH_NEVER_NS &&
            filch_clock_ns() >= second_look_ns) {
            second_look_ns = filch_second_look(worker, since_ns);
        }
        was_lookout = is_lookout;
        if (is_lookout)
            is_lookout = bed == FILCH_BED_EMPTY ? filch_lookout_look(worker)
                                                : (filch_lookout_end(worker), false);
    } while (bed == FILCH_BED_EMPTY);
    /* Others may have counted on the lookout. If it was called to search, it looks for remaining
     * work when it stops searching. If it was handed a strand, it looks now. */
    if (was_lookout && worker->next)
        filch_worker_leave_rest(worker);
    /* The worker may have watched a source or the timers, and was called for other work. Once it
     * has found a strand to run, it wakes another worker to watch. */
    worker->owes_watch = filch_source_is_alone(worker);
    if (until_ns != FILCH_NEVER_NS && filch_timers_unwatch(&pool->timers, worker))
        worker->owes_watch = true;
    return bed != FILCH_BED_ENDED;
}
