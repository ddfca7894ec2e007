/* SPDX-License-Identifier: MIT */
/*
 * A pipeline: tokens, which are tasks of one scope, and before each stage a gate.
 *
 * A token carries an item through all stages, as in TBB's parallel_pipeline (MacDonald, Szafron,
 * Schaeffer: Rethinking the Pipeline as Object-Oriented States with Transformations, HIPS 2004).
 * TBB parks an item at a stage that is busy, and the thread looks for another item. Here the strand
 * of the token waits, so stages can be plain functions that wait themselves.
 *
 * A gate admits `width` tokens at once, in the order in which they arrive, or in the order of their
 * numbers. The gate of the first stage gives a number to each token that leaves with an item. The
 * gate admits number `next` next. All numbers from there up to the highest waiting one were given
 * and have not passed, so each is held by its own token. So the waiters fit into a ring with a
 * place for each token.
 *
 *     enter    has the gate room, and is it our turn? If so, go in. If not, wait in the list, or at
 *              our place in the ring
 *     leave    admit waiters while there is room, and the turn of a waiter has come
 *
 * A token whose item was dropped by a stage still passes the ordered gates: others wait for its
 * number. A token that fails does not pass them, but cancels the scope, so no token waits for it.
 *
 * There is one token at first. A token that leaves the first stage with an item spawns the next
 * token, up to the limit. So a pipeline has no more tokens than it has had items.
 */
#include "base/fault.h"
#include "base/options.h"
#include "strand/unwind.h"
#include "wait/wait.h"

#include <errno.h>
#include <filch/pipeline.h>
#include <stdlib.h>

/* An ordered stage has a place for each token. */
#define TOKENS_MAX (1u << 20)

typedef struct gate {
    filch_lock lock;
    unsigned width, inside;
    uint64_t next; /* the number that an ordered gate admits, or the first gate gives, next */
    filch_waiters waiters; /* of a gate that is not ordered */
    filch_waiter **places; /* of number n at n modulo token_limit; NULL: not ordered */
} __attribute__((aligned(FILCH_CACHE_LINE))) gate;

typedef struct pipeline {
    const filch_stage *stages;
    unsigned stage_count, token_limit;
    filch_pipeline_options options;
    filch_atomic_u32 token_count;
    filch_atomic_u32 is_ended; /* the first stage is not called any more */
    filch_scope scope;
    gate gates[];
} pipeline;

/* ---- gates ----------------------------------------------------------------------------------- */

static filch_waiter **place_of(pipeline *p, gate *g, uint64_t number)
{
    return &g->places[number % p->token_limit];
}

/* Admit waiters whose turn it is. Under the lock. */
static void admit(pipeline *p, gate *g, filch_wakes *wakes)
{
    while (g->inside < g->width) {
        if (!g->places) {
            if (!filch_waiters_wake(&g->waiters, wakes))
                return;
        } else {
            filch_waiter **place = place_of(p, g, g->next), *waiter = *place;
            /* A waiter whose wait has ended otherwise was cancelled, as are all others. */
            if (!waiter || !filch_waiting_end(waiter->waiting, 0, wakes))
                return;
            *place = NULL;
            g->next++;
        }
        g->inside++;
    }
}

static int enter(filch_frame *f, pipeline *p, gate *g, uint64_t number)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};
    filch_wakes wakes = {NULL, NULL};

    if (g->width == 0)
        return 0;
    filch_lock_acquire(&g->lock);
    bool is_in = g->inside < g->width && (!g->places || g->next == number);
    if (is_in) {
        g->inside++;
        if (g->places) {
            g->next++;
            admit(p, g, &wakes);
        }
        filch_lock_release(&g->lock);
        filch_wakes_go(&wakes);
        return 0;
    }
    filch_waiting_begin(&waiting, f, FILCH_WAITS_PIPELINE, p);
    if (g->places)
        *place_of(p, g, number) = &waiter;
    else
        filch_waiters_push(&g->waiters, &waiter);
    filch_lock_release(&g->lock);

    int outcome = filch_waiting_wait(&waiting, FILCH_NEVER_NS);
    if (outcome >= 0)
        return 0;
    filch_lock_acquire(&g->lock);
    if (g->places)
        *place_of(p, g, number) = NULL;
    else
        filch_waiters_remove(&g->waiters, &waiter);
    filch_lock_release(&g->lock);
    return outcome;
}

/* Returns a number. It counts only for items that leave the first stage. */
static uint64_t leave(pipeline *p, gate *g, bool is_numbered)
{
    filch_wakes wakes = {NULL, NULL};

    if (g->width == 0)
        return 0;
    filch_lock_acquire(&g->lock);
    uint64_t number = g->next;
    if (is_numbered)
        g->next++;
    g->inside--;
    admit(p, g, &wakes);
    filch_lock_release(&g->lock);
    filch_wakes_go(&wakes);
    return number;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int run_token(filch_frame *f, void *arg);

/* Spawn one more token, if the limit allows it. */
static void spawn_token(filch_frame *f, pipeline *p)
{
    /* relaxed: a count; the scope carries the rest. */
    if (filch_load_relaxed(&p->token_count) >= p->token_limit)
        return;
    /* relaxed: the same. If there is no memory, there are fewer tokens. */
    if (filch_fetch_add_relaxed(&p->token_count, 1) >= p->token_limit ||
        filch_scope_spawn(f, &p->scope, run_token, p))
        filch_fetch_add_relaxed(&p->token_count, -1u);
}

/* Call the stage. Returns 0 or -errno. */
static FILCH_NOT_INLINED int call(filch_frame *f, pipeline *p, unsigned i, void **item)
{
    const filch_stage *stage = &p->stages[i];
    int err = stage->fn(f, stage->context, item);
    FILCH_STOP_UNWIND();

    if (err > 0) {
        /* relaxed: the lock of the first gate carries it to the next token there; for others it is
         * a hint. */
        filch_store_relaxed(&p->is_ended, 1);
        err = 0;
    }
    return err;
}

/* Carry one item from the first stage to the last. Returns 0; FILCH_PIPELINE_END: there is none; or
 * -errno. */
static int carry(filch_frame *f, pipeline *p, void **item)
{
    int err = enter(f, p, &p->gates[0], 0);

    if (err)
        return err;
    /* relaxed: as in call. */
    bool is_ended = filch_load_relaxed(&p->is_ended);
    if (!is_ended)
        err = call(f, p, 0, item);
    uint64_t number = leave(p, &p->gates[0], *item != NULL);
    if (err || is_ended || !*item)
        return err ? err : is_ended ? FILCH_PIPELINE_END : 0;
    spawn_token(f, p);

    for (unsigned i = 1; !err && i < p->stage_count; i++) {
        gate *g = &p->gates[i];
        if (!*item && !g->places)
            continue;
        err = enter(f, p, g, number);
        if (err)
            break;
        if (*item)
            err = call(f, p, i, item);
        leave(p, g, false);
    }
    return err;
}

static int run_token(filch_frame *f, void *arg)
{
    pipeline *p = arg;
    int err = 0;

    while (!err) {
        void *item = NULL;
        err = filch_is_cancelled(f) ? -ECANCELED : carry(f, p, &item);
        if (err < 0 && item && p->options.discard)
            p->options.discard(p->options.discard_context, item);
    }
    return err < 0 ? err : 0;
}

/* ---- run ------------------------------------------------------------------------------------- */

static bool are_valid(const filch_stage *stages, unsigned count)
{
    bool valid = stages && count > 0;

    for (unsigned i = 0; valid && i < count; i++)
        valid = stages[i].fn != NULL;
    return valid;
}

/* NULL: no memory. */
static pipeline *create(const filch_stage *stages, unsigned count,
                        const filch_pipeline_options *options)
{
    size_t places_bytes = sizeof(filch_waiter *) * options->token_limit, bytes;
    size_t gates_bytes = sizeof(gate) * count;
    unsigned ordered_count = 0;

    for (unsigned i = 1; i < count; i++)
        ordered_count += stages[i].is_ordered;
    if (__builtin_mul_overflow(places_bytes, ordered_count, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(pipeline) + gates_bytes + FILCH_CACHE_LINE, &bytes) ||
        bytes > PTRDIFF_MAX)
        return NULL;
    bytes = bytes / FILCH_CACHE_LINE * FILCH_CACHE_LINE;
    pipeline *p = filch_fault(FILCH_FAULT_MALLOC) ? NULL : aligned_alloc(FILCH_CACHE_LINE, bytes);
    if (!p)
        return NULL;
    *p = (pipeline){.stages = stages,
                    .stage_count = count,
                    .token_limit = options->token_limit,
                    .options = *options};
    filch_waiter **places = (filch_waiter **)(void *)&p->gates[count];
    for (unsigned i = 0; i < count; i++) {
        gate *g = &p->gates[i];
        *g = (gate){.width = stages[i].width};
        /* An ordered gate, and the first one, must count tokens. */
        if (g->width == 0 && (i == 0 || stages[i].is_ordered))
            g->width = options->token_limit;
        if (i == 0 || !stages[i].is_ordered)
            continue;
        g->places = places;
        for (unsigned k = 0; k < options->token_limit; k++)
            *places++ = NULL;
    }
    return p;
}

int filch_pipeline_run(filch_frame *f, filch_pool *pool, const filch_stage *stages,
                       unsigned stage_count, const filch_pipeline_options *options)
{
    filch_pipeline_options o;
    int err = filch_options_copy(&o, sizeof o, options);

    if (!pool && f)
        pool = filch_strand_of(f)->pool;
    if (!pool || !are_valid(stages, stage_count))
        return -EINVAL;
    if (err)
        return err;
    if (o.token_limit == 0)
        o.token_limit = 4 * filch_pool_worker_count(pool);
    if (o.token_limit > TOKENS_MAX)
        o.token_limit = TOKENS_MAX;
    pipeline *p = create(stages, stage_count, &o);
    if (!p)
        return -ENOMEM;
    const filch_scope_options scope_options = {
        .size = sizeof scope_options, .deadline_ns = o.deadline_ns, .cancel_on_error = true};
    err = filch_scope_open(f, &p->scope, pool, &scope_options);
    if (!err) {
        /* relaxed: no other thread knows it yet. */
        filch_store_relaxed(&p->token_count, 1);
        int spawn_err = filch_scope_spawn(f, &p->scope, run_token, p);
        err = filch_scope_close(f, &p->scope);
        err = err ? err : spawn_err;
    }
    free(p);
    return err;
}
