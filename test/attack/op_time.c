/* SPDX-License-Identifier: MIT */
/*
 * Sleeps, periods, yields; values that travel with a task; shields.
 */
#include "attack.h"

void op_sleep(filch_frame *f, actor *a)
{
    uint64_t start_ns = filch_now_ns(), ns = below(a, one_in(a, 4) ? 3000000 : 100000);

    note(a, "ns", ns);
    if (one_in(a, 2)) {
        if (ok(f, a, filch_sleep_ns(f, ns), 0))
            CHECK(filch_now_ns() - start_ns >= ns);
    } else if (ok(f, a, filch_sleep_until(f, start_ns + ns), 0)) {
        CHECK(filch_now_ns() >= start_ns + ns);
    }
}

void op_period(filch_frame *f, actor *a)
{
    filch_period period;
    uint64_t start_ns = filch_now_ns(), period_ns = 1 + below(a, 300000);
    unsigned beats = sized(1 + below(a, 6));

    note(a, "ns", period_ns);
    note(a, "times", beats);
    filch_period_init(&period, start_ns, period_ns);
    for (unsigned i = 0; i < beats; i++) {
        if (!ok(f, a, filch_period_wait(f, &period), 0))
            return;
        CHECK(filch_now_ns() >= start_ns + (i + period.missed) * period_ns);
    }
}

void op_yield(filch_frame *f, actor *a)
{
    unsigned times = sized(1 + below(a, 20));

    note(a, "times", times);
    for (unsigned i = times; i > 0; i--)
        if (!ok(f, a, filch_yield(f), 0))
            return;
    if (filch_is_cancelled(f))
        CHECK(f && a->is_cancellable && !a->is_shielded);
}

/* ---- locals ---------------------------------------------------------------------------------- */

static const filch_key keys[] = {{"first"}, {"second"}};

typedef struct wanted {
    const void *values[COUNT_OF(keys)];
    actor a;
} wanted;

static void check_values(filch_frame *f, void *arg)
{
    wanted *w = arg;

    keep();
    for (unsigned i = 0; i < COUNT_OF(keys); i++)
        CHECK(filch_local_get(f, &keys[i]) == w->values[i]);
    act(f, &w->a);
    for (unsigned i = 0; i < COUNT_OF(keys); i++)
        CHECK(filch_local_get(f, &keys[i]) == w->values[i]);
}

static int check_values_of_task(filch_frame *f, void *arg)
{
    check_values(f, arg);
    return 0;
}

void op_local(filch_frame *f, actor *a)
{
    filch_frame *mark = f;
    filch_binding binding;
    filch_scope scope;
    unsigned which = below(a, COUNT_OF(keys)), count = sized(1 + below(a, 4));
    void *old = filch_local_get(f, &keys[which]);
    wanted w[4], spawned;

    note(a, "forks", count);
    filch_local_bind(f, &binding, &keys[which], &binding);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < COUNT_OF(keys); k++)
            w[i].values[k] = filch_local_get(f, &keys[k]);
        w[i].a = part_of(a, count + 1 - i);
        name_actor(&w[i].a, "forked", i + 1);
        promise();
        f = filch_fork(f, check_values, &w[i]);
    }
    CHECK_EQUAL(filch_scope_open(f, &scope, NULL, NULL), 0);
    for (unsigned k = 0; k < COUNT_OF(keys); k++)
        spawned.values[k] = filch_local_get(f, &keys[k]);
    spawned.a = part_of(a, 1);
    spawned.a.is_cancellable = true;
    spawned.a.is_shielded = false;
    name_actor(&spawned.a, "spawned", 0);
    bool is_spawned = ok(f, a, filch_scope_spawn(f, &scope, check_values_of_task, &spawned), 0);
    int err = filch_scope_close(f, &scope);
    if (ok(f, a, err, 0) && is_spawned)
        promise();
    else if (is_spawned)
        /* It may have run all the same; then it has counted itself. */
        add(&the_world.unsure, 1);
    CHECK(filch_local_get(f, &keys[which]) == &binding);
    f = filch_join(f, mark);
    filch_local_unbind(f, &binding);
    CHECK(filch_local_get(f, &keys[which]) == old);
}

/* ---- shields --------------------------------------------------------------------------------- */

static void act_shielded(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

void op_shield(filch_frame *f, actor *a)
{
    filch_frame *shield = filch_shield(f), *mark = f;
    actor own = part_of(a, 2), forked = part_of(a, 1);

    own.is_shielded = forked.is_shielded = true;
    name_actor(&own, "itself", 0);
    name_actor(&forked, "forked", 0);
    CHECK(!filch_is_cancelled(f));
    promise();
    f = filch_fork(f, act_shielded, &forked);
    act(f, &own);
    f = filch_join(f, mark);
    CHECK(!filch_is_cancelled(f));
    filch_unshield(f, shield);
}
