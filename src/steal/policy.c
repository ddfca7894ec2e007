/* SPDX-License-Identifier: MIT */
/*
 * The victim policies of filch/pool.h. To add one: its enumerator there, its function and row here.
 */
#include "steal/policy.h"

/* The worker behind `victim`, by number, without `self`. */
static unsigned next_of(const filch_victims *v, unsigned victim)
{
    do
        victim = victim + 1 == v->worker_count ? 0 : victim + 1;
    while (victim == v->self);
    return victim;
}

/* Visit `first`, then the others by number. */
static unsigned visit_from(filch_victims *v, unsigned k, unsigned first)
{
    unsigned victim = k == 0 ? first : v->next;

    v->next = next_of(v, victim);
    return victim;
}

static unsigned random_victim(filch_victims *v)
{
    return (v->self + 1 + filch_rng_below(&v->rng, v->worker_count - 1)) % v->worker_count;
}

static unsigned visit_next(filch_victims *v, unsigned k)
{
    return visit_from(v, k, (v->self + 1) % v->worker_count);
}

static unsigned visit_random(filch_victims *v, unsigned k)
{
    return visit_from(v, k, k == 0 ? random_victim(v) : 0);
}

static unsigned visit_last(filch_victims *v, unsigned k)
{
    return visit_from(v, k, k == 0 && v->last == v->self ? random_victim(v) : v->last);
}

filch_policy *filch_policy_find(filch_victim_policy policy)
{
    static filch_policy *const policies[] = {
        [FILCH_VICTIM_LAST] = visit_last,
        [FILCH_VICTIM_RANDOM] = visit_random,
        [FILCH_VICTIM_FIRST] = visit_next,
    };

    return (unsigned)policy < sizeof policies / sizeof policies[0] ? policies[policy] : NULL;
}
