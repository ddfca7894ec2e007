/* SPDX-License-Identifier: MIT */
/*
 * Whom to steal from: the order in which a worker without work visits the others.
 *
 * A policy hands out victims one by one; a round is over after worker_count - 1 of them. The worker tells it
 * what came of each visit. A steal misses the cache anyway, so policies are called through a pointer.
 */
#ifndef FILCH_STEAL_POLICY_H
#define FILCH_STEAL_POLICY_H

#include "base/rng.h"

#include <filch/pool.h>

typedef struct filch_victims {
    unsigned self, worker_count;
    filch_rng rng;
    unsigned next; /* the next in the round */
    unsigned last; /* the last who had work; self: nobody */
} filch_victims;

typedef struct filch_policy {
    /* The first victim of a round; the others follow by number, so that a round misses nobody. */
    unsigned (*first)(filch_victims *victims);
} filch_policy;

/* NULL: there is no such policy. */
const filch_policy *filch_policy_find(filch_victim_policy policy);

static inline void filch_victims_init(filch_victims *v, unsigned self, unsigned worker_count)
{
    v->self = v->next = v->last = self;
    v->worker_count = worker_count;
    filch_rng_seed(&v->rng, self);
}

/* The k-th victim of a round, k from 0 to worker_count - 2. */
static inline unsigned filch_victims_visit(filch_victims *v, const filch_policy *policy, unsigned k)
{
    if (k == 0)
        v->next = policy->first(v);
    unsigned victim = v->next;
    do
        v->next = v->next + 1 == v->worker_count ? 0 : v->next + 1;
    while (v->next == v->self);
    return victim;
}

#endif
