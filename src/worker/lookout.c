/* SPDX-License-Identifier: MIT */
/*
 * The lookout. README.md has its rules and edges.
 */
#include "worker/lookout.h"

#include "base/clock.h"
#include "worker/source.h"

/* A thief leaves ready strands to their worker for this long. */
#define LYING_NS 2000

/* With more ready strands than this, the last would wait longer than LYING_NS in any case. */
#define MANY 16

/* If a worker came to its loop less often than this since the last look, its tasks do not exchange
 * messages. */
#define BUSY_ROUNDS 8

/* Only because operations are in flight, the lookout stays for this many looks: their threads may
 * begin to compute at any time. */
#define QUIET_LOOKS 50

void filch_lookout_notify(filch_worker *worker, uint32_t ready_count)
{
    if (ready_count > FILCH_LOOKOUT_FEW || !filch_lookout_is_manned(worker->pool))
        filch_pool_notify(worker->pool, worker);
}

static uint32_t ready_count_of(filch_worker *worker)
{
    /* seq_cst [ready-or-lookout] */
    return filch_load_seq_cst(&worker->ready.count);
}

static uint32_t rounds_of(filch_worker *worker)
{
    /* relaxed: a hint. */
    return filch_load_relaxed(&worker->rounds);
}

/* From now on no thread may count on the lookout. After this, its worker must look for remaining
 * work. */
static void stop(filch_pool *pool)
{
    /* seq_cst [ready-or-lookout], [source-or-lookout] */
    filch_store_seq_cst(&pool->lookout, 0);
}

/* Is the source of `worker` alone, and not also the source of `self`? On its way to sleep, `self`
 * watches its own source, or finds that another thread does. */
static bool is_alone_beside(filch_worker *self, filch_worker *worker)
{
    return filch_source_is_alone(worker) &&
           filch_worker_source(worker) != filch_worker_source(self);
}

bool filch_lookout_is_missing(filch_pool *pool, const filch_worker *self)
{
    bool is_alone = false;

    for (unsigned i = 0; !is_alone && i < pool->worker_count; i++)
        is_alone = pool->workers[i] != self && filch_source_is_alone(pool->workers[i]);
    return is_alone && !filch_lookout_is_manned(pool);
}

bool filch_lookout_begin(filch_worker *self)
{
    filch_pool *pool = self->pool;
    uint32_t nobody = 0;
    bool has_few = false;

    for (unsigned i = 0; !has_few && i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        has_few = ready_count_of(worker) - 1 < FILCH_LOOKOUT_FEW || is_alone_beside(self, worker);
    }
    /* seq_cst [ready-or-lookout] */
    if (!has_few || !filch_cas_seq_cst(&pool->lookout, &nobody, self->index + 1))
        return false;
    for (unsigned i = 0; i < pool->worker_count; i++)
        pool->workers[i]->looked_rounds = rounds_of(pool->workers[i]) - BUSY_ROUNDS;
    pool->quiet_looks = 0;
    pool->is_look_near = false;
    return true;
}

void filch_lookout_end(filch_worker *self)
{
    stop(self->pool);
}

/* Reap completions for a worker that has not come to its loop since the last look. True: its source
 * is alone, so stay the lookout. */
static bool look_after(filch_worker *self, filch_worker *worker, bool has_turned)
{
    filch_pool *pool = self->pool;

    if (!is_alone_beside(self, worker))
        return false;
    filch_source *source = filch_worker_source(worker);
    filch_link *strands = has_turned ? NULL : source->look(source, &pool->is_look_near);
    filch_pool_resume(pool, strands);
    return true;
}

static bool has_pending(filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);
    /* relaxed: a hint. */
    return source && filch_load_relaxed(&source->pending) > 0;
}

bool filch_lookout_look(filch_worker *self)
{
    filch_pool *pool = self->pool;
    bool is_lying = false, is_busy = false, is_quiet = false;

    pool->is_look_near = false;

    for (unsigned i = 0; i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        uint32_t count = ready_count_of(worker), rounds = rounds_of(worker);
        is_lying |= count > FILCH_LOOKOUT_FEW || rounds - worker->looked_rounds < count;
        is_busy |= count > 0 || rounds - worker->looked_rounds >= BUSY_ROUNDS;
        is_busy |= look_after(self, worker, rounds != worker->looked_rounds);
        is_quiet |= has_pending(worker);
        worker->looked_rounds = rounds;
    }
    pool->quiet_looks = is_busy ? 0 : pool->quiet_looks + 1;
    if ((is_busy || (is_quiet && pool->quiet_looks < QUIET_LOOKS)) && !is_lying)
        return true;
    stop(pool);
    for (unsigned i = 0; !is_lying && i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        is_lying = ready_count_of(worker) > 0 || is_alone_beside(self, worker);
    }
    if (is_lying)
        filch_pool_notify(pool, NULL);
    return false;
}

bool filch_lookout_may_take(filch_worker *thief, filch_worker *victim)
{
    /* relaxed: a hint. */
    uint32_t count = filch_load_relaxed(&victim->ready.count), rounds = rounds_of(victim);
    filch_glimpse *glimpse = &thief->glimpses[victim->index % FILCH_GLIMPSES];

    if (count == 0 || count > MANY)
        return count > 0;
    uint64_t ticks = filch_clock_ticks();
    bool is_old = ticks - glimpse->ticks > filch_clock_ticks_in(LYING_NS);
    if (glimpse->victim == victim->index + 1 && rounds - glimpse->rounds < count)
        return is_old;
    /* Keep a glimpse of another victim until it is old enough to be used. */
    if (glimpse->victim != victim->index + 1 && !is_old)
        return false;
    *glimpse = (filch_glimpse){victim->index + 1, rounds, ticks};
    return false;
}
