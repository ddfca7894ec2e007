/* SPDX-License-Identifier: MIT */
/*
 * pingpong: two tasks and two channels. A value goes there and comes back, incremented. With
 * `capacity` 0, sender and receiver meet.
 */
#include "wait.h"

#include <errno.h>

typedef struct table {
    filch_channel *there, *back;
    long trips;
    uint64_t elapsed_ns;
    long value;
} table;

static int answer(filch_frame *f, void *arg)
{
    table *t = arg;
    long value;
    int err;

    while ((err = filch_channel_receive(f, t->there, &value)) == 0) {
        value++;
        err = filch_channel_send(f, t->back, &value);
        if (err)
            break;
    }
    return err == -EPIPE ? 0 : err;
}

static int play(filch_frame *f, table *t, long trips, long *value)
{
    int err = 0;

    *value = 0;
    for (long i = 0; i < trips && !err; i++) {
        err = filch_channel_send(f, t->there, value);
        if (!err)
            err = filch_channel_receive(f, t->back, value);
    }
    return err;
}

static int serve(filch_frame *f, void *arg)
{
    table *t = arg;
    long warm;

    int err = play(f, t, t->trips / 10, &warm);
    uint64_t start_ns = probe_clock_ns();
    if (!err)
        err = play(f, t, t->trips, &t->value);
    t->elapsed_ns = probe_clock_ns() - start_ns;
    filch_channel_close(t->there);
    return err;
}

/* The pool's own threads run both tasks; the caller only waits. */
static int run_match(filch_pool *pool, table *t)
{
    filch_scope scope;

    int err = filch_scope_open(NULL, &scope, pool, NULL);
    if (err)
        return err;
    err = filch_scope_spawn(NULL, &scope, answer, t);
    if (!err)
        err = filch_scope_spawn(NULL, &scope, serve, t);
    if (err)
        filch_channel_close(t->there);
    int close_err = filch_scope_close(NULL, &scope);
    return err ? err : close_err;
}

int wait_pingpong(const wait_run *run)
{
    size_t capacity = (size_t)wait_number(run, "capacity", 0, 0);
    table t = {.trips = wait_number(run, "trips", 1, 200 * 1000)};

    int err = filch_channel_create(&t.there, sizeof t.value, capacity);
    if (err)
        return err;
    err = filch_channel_create(&t.back, sizeof t.value, capacity);
    if (err)
        goto destroy_there;
    err = run_match(run->pool, &t);
    wait_figure("ns", (double)t.elapsed_ns);
    wait_figure("per_trip_ns", (double)t.elapsed_ns / (double)t.trips);
    if (!err && t.value != t.trips)
        err = -EBADMSG;

    filch_channel_destroy(t.back);
destroy_there:
    filch_channel_destroy(t.there);
    return err;
}
