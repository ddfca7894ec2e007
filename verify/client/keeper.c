/* SPDX-License-Identifier: MIT */
/*
 * The keeper's start and end, and its visits to pools that come and go.
 *
 *   - come: T1 and T2 are the first threads of the process to use the list. Each adds a pool,
 *     removes it, and frees it.
 *   - hold: T1 holds the keeper without a pool, and releases it, while T2 adds and removes a pool.
 *   - visit: T0 holds the keeper. T1 adds a pool, lets the keeper visit it, removes and frees it.
 *   - adopt: in the child of a fork(), T1 rebuilds a pool. T2 removes another pool, for which the
 *     keeper runs. The rebuilt pool has a keeper.
 *
 * Except in "adopt", the pools have no free seats, so the keeper starts no threads. The checker
 * reports a visit to memory that was freed, and a keeper that sleeps on after it was told to end.
 */
#include "worker_loop.h"

#include "worker/keeper.c"

#include "mc/mc.h"
#include "small_pool.h"

static filch_pool *pools[2];

static void setup(void)
{
    for (int i = 0; i < 2; i++)
        pools[i] = make_small_pool(2);
}

static void end_pool(filch_pool *pool)
{
    filch_keeper_remove(pool);
    free(pool);
}

static void use_first(void)
{
    mc_check(filch_keeper_add(pools[0]) == 0, "there are threads enough");
    end_pool(pools[0]);
}

static void use_second(void)
{
    mc_check(filch_keeper_add(pools[1]) == 0, "there are threads enough");
    end_pool(pools[1]);
}

static void hold(void)
{
    mc_check(filch_keeper_hold() == 0, "there are threads enough");
    filch_keeper_release();
}

static void put_off(void)
{
    mc_check(filch_keeper_add(pools[0]) == 0, "there are threads enough");
    filch_store_seq_cst(&pools[0]->put_off, 1);
    filch_keeper_ring();
    end_pool(pools[0]);
}

static void setup_held(void)
{
    setup();
    mc_check(filch_keeper_hold() == 0, "there are threads enough");
}

static void check_end(void)
{
    filch_keeper_release();
    mc_check(!is_running && !filch_listed_next(), "no keeper and no pool is left");
}

static void setup_forked(void)
{
    setup();
    mc_check(filch_keeper_add(pools[0]) == 0 && filch_keeper_add(pools[1]) == 0,
             "there are threads enough");
    filch_store_relaxed(pools[0]->alive, 0);
}

static void rebuild_first(void)
{
    mc_check(filch_pool_check(pools[0]) == 0, "there are threads enough");
}

static void remove_second(void)
{
    end_pool(pools[1]);
}

static void check_adopted(void)
{
    mc_check(is_running, "a pool that was rebuilt has a keeper");
    mc_check(filch_sleep_pop(&pools[0]->sleep, FILCH_ROLE_RUNNING, false) == 0,
             "its first thread sleeps");
    filch_seat_call(&pools[0]->workers[0]->seat, FILCH_BED_ENDED);
    filch_keeper_remove(pools[0]);
    mc_check(!is_running, "no keeper is left");
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    const mc_options one = mc_bounded(options, 1, 1);
    mc_options visit = mc_bounded(options, 2, 1);
    visit.clock_step_ns = 2000000000; /* longer than starts are put off */
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"keeper, come", setup, {use_first, use_second}, check_end}, &one},
        {{"keeper, hold", setup, {hold, use_second}, check_end}, &one},
        {{"keeper, visit", setup_held, {put_off}, check_end}, &visit},
        {{"keeper, adopt", setup_forked, {rebuild_first, remove_second}, check_adopted}, &one},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
