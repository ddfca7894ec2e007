/* SPDX-License-Identifier: MIT */
/*
 * Victim policies: the order in which a worker without work visits the others.
 *
 * A policy is one function of policy.c. A round visits worker_count - 1 victims; the policy names
 * the k-th of them. A round that visits every other worker once misses no task. A steal misses the
 * cache anyway, so the call through a pointer costs nothing that could be measured.
 */
#ifndef FILCH_STEAL_POLICY_H
#define FILCH_STEAL_POLICY_H

#include "base/rng.h"

#include <filch/pool.h>

/* The input of a policy; each worker has one. */
typedef struct filch_victims {
    unsigned self, worker_count;
    filch_rng rng;
    unsigned next; /* for policies that go on from here */
    unsigned last; /* the victim of the last steal that succeeded; self: none */
} filch_victims;

/* The k-th victim of a round, k from 0 to worker_count - 2; never `self`. */
typedef unsigned filch_policy(filch_victims *victims, unsigned k);

/* NULL: there is no such policy. */
filch_policy *filch_policy_find(filch_victim_policy policy);

static inline void filch_victims_init(filch_victims *v, unsigned self, unsigned worker_count)
{
    v->self = v->next = v->last = self;
    v->worker_count = worker_count;
    filch_rng_seed(&v->rng, self);
}

#endif
