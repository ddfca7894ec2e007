/* SPDX-License-Identifier: MIT */
#include "steal/policy.h"

static unsigned visit_next(filch_victims *v)
{
    return (v->self + 1) % v->worker_count;
}

static unsigned visit_random(filch_victims *v)
{
    return (v->self + 1 + filch_rng_below(&v->rng, v->worker_count - 1)) % v->worker_count;
}

static unsigned visit_last(filch_victims *v)
{
    return v->last == v->self ? visit_random(v) : v->last;
}

const filch_policy *filch_policy_find(filch_victim_policy policy)
{
    static const filch_policy policies[] = {
        [FILCH_VICTIM_LAST] = {visit_last},
        [FILCH_VICTIM_RANDOM] = {visit_random},
        [FILCH_VICTIM_FIRST] = {visit_next},
    };

    if ((unsigned)policy >= sizeof policies / sizeof policies[0])
        return NULL;
    return &policies[policy];
}
