/* SPDX-License-Identifier: MIT */
/*
 * mutex: many tasks lock one mutex, `turns` times each, and count. With held=1 they yield while
 * they hold it, so all other tasks queue up.
 *
 * channel: half of the tasks send `turns` numbers each through one channel, the other half receive.
 */
#include "wait.h"

#include <errno.h>

/* Constant while tasks run, except for the counts. */
static struct {
    long turns;
    bool is_held;
    filch_mutex mutex;
    long count; /* protected by the mutex */

    filch_channel *channel;
    filch_atomic_u64 senders; /* senders that still run */
    filch_atomic_u64 sum;
} contest;

/* Spawn `count` numbered tasks of each function, and wait for all of them. A task spawns them, as
 * in a real program. */
typedef struct task_crowd {
    filch_task_fn *fn[2]; /* the second may be NULL */
    long count;
} task_crowd;

static int gather(filch_frame *f, void *arg)
{
    const task_crowd *crowd = arg;
    filch_scope scope;

    int err = filch_scope_open(f, &scope, NULL, NULL);
    if (err)
        return err;
    for (long i = 0; i < crowd->count && !err; i++)
        for (int k = 0; k < 2 && crowd->fn[k] && !err; k++)
            err = filch_scope_spawn(f, &scope, crowd->fn[k], (void *)(intptr_t)i);
    if (err)
        filch_scope_cancel(&scope);
    int close_err = filch_scope_close(f, &scope);
    return err ? err : close_err;
}

static int run_crowd(filch_pool *pool, task_crowd *crowd, uint64_t *elapsed_ns)
{
    filch_scope scope;

    uint64_t start_ns = probe_clock_ns();
    int err = filch_scope_open(NULL, &scope, pool, NULL);
    if (err)
        return err;
    err = filch_scope_spawn(NULL, &scope, gather, crowd);
    int close_err = filch_scope_close(NULL, &scope);
    *elapsed_ns = probe_clock_ns() - start_ns;
    return err ? err : close_err;
}

/* ---- mutex ----------------------------------------------------------------------------------- */

static int lock_often(filch_frame *f, void *unused)
{
    int err = 0;

    (void)unused;
    for (long i = 0; i < contest.turns && !err; i++) {
        err = filch_mutex_lock(f, &contest.mutex);
        if (err)
            break;
        contest.count++;
        if (contest.is_held)
            err = filch_yield(f);
        filch_mutex_unlock(&contest.mutex);
    }
    return err;
}

int wait_mutex(const wait_run *run)
{
    task_crowd crowd = {.fn = {lock_often}, .count = wait_number(run, "tasks", 1, 1000)};
    uint64_t elapsed_ns = 0;

    contest.turns = wait_number(run, "turns", 1, 1000);
    contest.is_held = wait_number(run, "held", 0, 0) != 0;
    int err = run_crowd(run->pool, &crowd, &elapsed_ns);
    wait_figure("ns", (double)elapsed_ns);
    wait_figure("per_turn_ns", (double)elapsed_ns / (double)(crowd.count * contest.turns));
    return err ? err : contest.count == crowd.count * contest.turns ? 0 : -EBADMSG;
}

/* ---- channel --------------------------------------------------------------------------------- */

static int send_often(filch_frame *f, void *number)
{
    long first = (long)(intptr_t)number * contest.turns;
    int err = 0;

    for (long i = 0; i < contest.turns && !err; i++)
        err = filch_channel_send(f, contest.channel, &(long){first + i});
    /* relaxed: the channel carries all that was sent. */
    if (filch_fetch_add_relaxed(&contest.senders, (uint64_t)-1) == 1)
        filch_channel_close(contest.channel);
    return err;
}

static int receive_all(filch_frame *f, void *unused)
{
    uint64_t sum = 0;
    long value;
    int err;

    (void)unused;
    while ((err = filch_channel_receive(f, contest.channel, &value)) == 0)
        sum += (uint64_t)value;
    /* relaxed: read after the scope was closed. */
    filch_fetch_add_relaxed(&contest.sum, sum);
    return err == -EPIPE ? 0 : err;
}

int wait_channel(const wait_run *run)
{
    task_crowd crowd = {.fn = {send_often, receive_all},
                        .count = wait_number(run, "tasks", 2, 1000) / 2};
    size_t capacity = (size_t)wait_number(run, "capacity", 0, 16);
    uint64_t elapsed_ns = 0;

    contest.turns = wait_number(run, "turns", 1, 1000);
    int err = filch_channel_create(&contest.channel, sizeof(long), capacity);
    if (err)
        return err;
    /* relaxed: before any task. */
    filch_store_relaxed(&contest.senders, (uint64_t)crowd.count);
    err = run_crowd(run->pool, &crowd, &elapsed_ns);
    filch_channel_destroy(contest.channel);

    uint64_t entries = (uint64_t)(crowd.count * contest.turns);
    wait_figure("ns", (double)elapsed_ns);
    wait_figure("per_turn_ns", (double)elapsed_ns / (double)entries);
    /* relaxed: after all tasks. */
    bool is_right = filch_load_relaxed(&contest.sum) == entries * (entries - 1) / 2;
    return err ? err : is_right ? 0 : -EBADMSG;
}
