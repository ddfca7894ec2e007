/* SPDX-License-Identifier: MIT */
/*
 * The second look. README.md has its rules and edges.
 */
#include "worker/second_look.h"

#include "base/barrier.h"
#include "base/clock.h"
#include "worker/keeper.h"

/* A strand that answers at all answers much sooner, and a person does not notice. */
#define SECOND_LOOK_NS 100000

/* Later looks have a barrier for strands in which they see no task, too: see README.md. */
#define SURE_LOOK_NS 1000000

/* A look that has not settled it for all strands is repeated at twice the time, until then. */
#define LAST_LOOK_NS 1000000000

/* Strands for which one barrier is paid. */
#define AT_ONCE 16

/* The strand that `worker` runs, if it was asked and has not answered. */
static filch_strand *unanswered(filch_worker *worker)
{
    /* acquire [strand-shown] */
    filch_strand *strand = filch_load_acquire(&worker->strand);

    /* relaxed: own request, or a later one. Only an answer removes it, and then the strand has
     * published its tasks. */
    return strand && filch_load_relaxed(&strand->split.asked) ? strand : NULL;
}

uint64_t filch_second_look_ns(filch_worker *self)
{
    filch_pool *pool = self->pool;

    /* Other deques show all tasks as soon as they are pushed, or when their owner answers. */
    for (unsigned i = 0; !pool->strands.kind && i < pool->worker_count; i++)
        if (i != self->index && unanswered(pool->workers[i]))
            return filch_clock_ns() + SECOND_LOOK_NS;
    return FILCH_NEVER_NS;
}

/* Does a strand that has not answered seem to have a task? Sets *has_others if another one has not
 * answered. `self`: not the strand of this worker. */
static bool seems_to_hide(filch_pool *pool, const filch_worker *self, bool *has_others)
{
    bool found = false;

    for (unsigned i = 0; !found && i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        filch_strand *strand = worker != self ? unanswered(worker) : NULL;
        found = strand && filch_split_seems_known(&strand->split);
        *has_others |= strand != NULL;
    }
    return found;
}

bool filch_second_look_is_needed(filch_pool *pool, const filch_worker *self)
{
    bool has_others = false;

    if (pool->strands.kind)
        return false;
    if (seems_to_hide(pool, self, &has_others))
        return true;
    /* acq_rel [rest-left] */
    if (has_others && !filch_exchange_acq_rel(&pool->has_rest, 1))
        filch_keeper_ring();
    return false;
}

uint64_t filch_second_look_for_rest(filch_pool *pool)
{
    bool has_others = false;

    /* relaxed: the bell carries it. */
    if (!filch_load_relaxed(&pool->has_rest))
        return FILCH_NEVER_NS;
    uint64_t now_ns = filch_clock_ns();
    if (pool->rest_look_ns == 0)
        pool->rest_look_ns = now_ns + SURE_LOOK_NS;
    if (now_ns < pool->rest_look_ns)
        return pool->rest_look_ns;
    pool->rest_look_ns = 0;
    /* acq_rel [rest-left] */
    filch_exchange_acq_rel(&pool->has_rest, 0);
    if (seems_to_hide(pool, NULL, &has_others) ||
        (has_others && filch_barrier_all() && seems_to_hide(pool, NULL, &has_others)))
        filch_pool_notify(pool, NULL);
    return FILCH_NEVER_NS;
}

uint64_t filch_second_look(filch_worker *self, uint64_t since_ns)
{
    filch_pool *pool = self->pool;
    uint32_t mark = self->index + 1;
    uint64_t slept_ns = filch_clock_ns() - since_ns;
    bool is_sure = slept_ns >= SURE_LOOK_NS, found = false, is_settled = true;

    for (unsigned i = 0; i < pool->worker_count;) {
        filch_strand *marked[AT_ONCE];
        unsigned count = 0;

        for (; i < pool->worker_count && count < AT_ONCE; i++) {
            filch_strand *strand = unanswered(pool->workers[i]);
            if (!strand)
                continue;
            /* Loops may publish without waking a worker. */
            found |= filch_split_has_public(&strand->split);
            if ((is_sure || filch_split_seems_known(&strand->split)) &&
                filch_split_mark(&strand->split, mark))
                marked[count++] = strand;
            else
                is_settled = false;
        }
        bool has_barrier = count > 0 && filch_barrier_all();
        for (unsigned k = 0; k < count; k++) {
            filch_steal_result result = filch_split_reach(&marked[k]->split, mark, has_barrier);
            found |= result == FILCH_STEAL_WON;
            is_settled &= result != FILCH_STEAL_LOST;
        }
    }
    if (found)
        filch_pool_notify(pool, NULL);
    if (is_settled || slept_ns >= LAST_LOOK_NS)
        return FILCH_NEVER_NS;
    return since_ns + (2 * slept_ns > SURE_LOOK_NS ? 2 * slept_ns : SURE_LOOK_NS);
}
