/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel: the bell wakes a thread that waits for them, and another thread polls them
 * while that thread computes.
 *
 * A source of this file stands in for the sources of src/io. An event is a bit of the word on which
 * the source's thread sleeps. So is the bell, for which src/sleep/sleep.c, which is part of this
 * file, calls `write`. Neither orders any memory. The loop of a worker is part of this file, too
 * (worker_loop.h).
 *
 * `source, left`: T1 is worker 0. Its operation completes at once, and it goes on to run something
 * for ever:
 *
 *     o  it has started the operation
 *     m  the same, and its source is new
 *     b  it has waited for the operation, and was called for something else
 *     a  the same, and T4 calls it while it sleeps
 *     e  it has asked its source, and found two strands to resume. Nothing else was started:
 *        another thread has to see the second strand
 *
 * T2 is worker 1:
 *
 *     s  it goes to sleep
 *     l  it was the only searcher, has found something and says so, while T3, worker 2, sleeps
 *     o  it is the lookout, in bed, and stops when there is nothing to look after
 *     g  it is a guest that gives back the seat of a sleeping thread, T3
 *     c  it was the lookout, was called, and leaves its bed as a searcher that finds something,
 *        while T3 sleeps
 *     h  the same, and it was handed a strand
 *     w  it has the same source, and goes to sleep there, or in its bed if T1 sleeps in the source
 *        already
 *     v  it has slept in the same source, and leaves for something else, while T3 sleeps
 *
 * In every execution a thread has to handle the operation. The thread that looks after the source
 * wakes a worker for the strand, and a worker that T1 wakes would look after the source. If a
 * worker sleeps on, that is a deadlock.
 *
 * `source, away`: T1 is worker 0, which goes to sleep in its source.
 *
 *     T2 calls T1 (c), ends it (e), or takes its seat first (g)
 *     T3 is the kernel: it completes the operation (k), or does nothing (-)
 *     T1 sleeps in its source (s), in its bed, because another thread watches the source (n), or
 *     its time runs out (t)
 */
#include <sys/types.h>

static ssize_t ring_bell(int bell, const void *one, size_t bytes);
#define write(bell, one, bytes) ring_bell(bell, one, bytes)
#include "sleep/sleep.c"
#undef write

#include "worker/outside.c"
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <stdio.h>
#include <string.h>

#define RUNG 1u
#define HAPPENED 0x100u

static filch_pool *pool;
static filch_source source;
static filch_atomic_u32 kernel; /* RUNG, HAPPENED */
static filch_atomic_u32 is_seen;
static filch_strand *strands[2]; /* waiting for the operation */
static filch_strand *other;      /* T1 goes on to run it */
static filch_atomic_u32 never;
static int payload; /* plain: written by the thread that calls */
static bool is_over;

static char what, how, sleeper;

/* ---- the source ------------------------------------------------------------------------------ */

/* relaxed, all of it: the kernel promises no order. */
static ssize_t ring_bell(int bell, const void *one, size_t bytes)
{
    (void)one;
    mc_check(bell == source.bell, "the bell is that of the thread that is called");
    filch_fetch_add_relaxed(&kernel, RUNG);
    filch_futex_wake(&kernel, 1);
    return (ssize_t)bytes;
}

/* The strands that wait for the event, once. */
static filch_link *take(unsigned count)
{
    /* relaxed: as above. */
    if (filch_load_relaxed(&kernel) < HAPPENED || filch_load_relaxed(&is_seen) ||
        filch_fetch_add_relaxed(&is_seen, 1))
        return NULL;
    if (what != 'e' || how == 'a')
        filch_fetch_add_relaxed(&source.pending, -1u);
    strands[0]->link.next = count > 1 ? &strands[1]->link : NULL;
    strands[1]->link.next = NULL;
    return &strands[0]->link;
}

static filch_link *poll_source(filch_source *self, bool is_due)
{
    (void)self, (void)is_due;
    return take(2);
}

static filch_link *look_at_source(filch_source *self, bool *is_near)
{
    (void)self;
    (void)is_near;
    return take(1);
}

static filch_link *wait_in_source(filch_source *self, const struct timespec *timeout)
{
    /* The event comes later, when the thread is back. */
    bool is_early = what == 'a' && mc_self() == 1;
    (void)self;
    filch_link *link = is_early ? NULL : take(1);
    for (int err = 0; !link && err != -ETIMEDOUT; link = is_early ? NULL : take(1)) {
        /* relaxed: as above. */
        uint32_t word = filch_load_relaxed(&kernel);
        if (word % HAPPENED)
            break;
        err = filch_futex_wait(&kernel, word, timeout);
    }
    return link;
}

static void hush_source(filch_source *self)
{
    uint32_t word;
    (void)self;
    /* relaxed: as above. A caller says so before it rings. */
    while ((word = filch_load_relaxed(&kernel)) % HAPPENED == 0)
        filch_futex_wait(&kernel, word, NULL);
    filch_fetch_add_relaxed(&kernel, -RUNG);
}

/* For a worker; for the first worker that has it, the source is new. */
static void make_source(unsigned index)
{
    if (!source.poll) {
        source.bell = 7;
        source.poll = poll_source;
        source.wait = wait_in_source;
        source.look = look_at_source;
        source.hush = hush_source;
    }
    filch_worker_set_source(pool->workers[index], &source);
}

/* ---- left: T1 -------------------------------------------------------------------------------- */

static void run_for_ever(filch_strand *self)
{
    (void)self;
    for (;;)
        filch_futex_wait(&never, 0, NULL);
}

/* As filch_worker_sleep, when another thread calls. */
static void come_back(filch_worker *worker)
{
    filch_seat_call(&worker->seat, FILCH_BED_CALLED);
    mc_check(filch_seat_come_back(&worker->seat) == FILCH_BED_CALLED, "it was called");
    hush_source(&source);
    filch_source_unwatch(&source);
    worker->owes_watch = filch_source_is_alone(worker);
}

static void leave_source(void)
{
    filch_worker *worker = pool->workers[0];

    switch (what) {
    case 'm':
        make_source(0);
        /* fall through */
    case 'o':
        /* relaxed: as in src/io. */
        filch_fetch_add_relaxed(&source.pending, 1);
        worker->owes_watch = true;
        break;
    case 'b':
        come_back(worker);
        break;
    case 'a':
        mc_check(filch_worker_sleep(worker, FILCH_NEVER_NS, false), "it is called");
        break;
    case 'e':
        mc_check(take_event(worker) == strands[0], "there is an event");
        break;
    }
    filch_worker_run(worker, other);
}

/* ---- left: T2, T3 and T4 --------------------------------------------------------------------- */

static void call_first(void)
{
    filch_seat_call(&pool->workers[0]->seat, FILCH_BED_CALLED);
}

/* In bed: look, as long as it is the lookout, until it is called. */
static void rest(filch_worker *worker, bool is_lookout)
{
    /* relaxed: as in filch_worker_main. */
    while (is_lookout && filch_load_relaxed(&worker->seat.bed) == FILCH_BED_EMPTY)
        is_lookout = filch_lookout_look(worker);
    filch_seat_nap(&worker->seat, NULL);
    is_over = true;
}

static void go_to_sleep(void)
{
    filch_worker *worker = pool->workers[1];

    filch_sleep_push(&pool->sleep, worker->index, FILCH_ROLE_SEARCHING);
    bool is_lookout = filch_lookout_begin(worker);
    filch_pool_notify_if_work(pool);
    rest(worker, is_lookout);
}

static void go_to_same_source(void)
{
    filch_worker *worker = pool->workers[1];

    filch_sleep_push(&pool->sleep, worker->index, FILCH_ROLE_SEARCHING);
    mc_check(!filch_lookout_begin(worker), "it waits for the events itself");
    filch_pool_notify_if_work(pool);
    mc_check(filch_worker_sleep(worker, FILCH_NEVER_NS, false), "it is called");
    is_over = true;
}

static void leave_same_source(void)
{
    come_back(pool->workers[1]);
    filch_worker_pay_watch(pool->workers[1]);
}

static void look_out(void)
{
    rest(pool->workers[1], true);
}

static void leave_searchers(void)
{
    stop_searching(pool->workers[1]);
}

/* A guest, on the seat of worker 1, whose thread sleeps. */
static void leave_seat(void)
{
    give_seat_back(pool, &pool->sleep, 1);
}

static void sleep_without_seat(void)
{
    filch_seat_nap(&pool->workers[1]->seat, NULL);
    is_over = true;
}

static void leave_lookout(void)
{
    filch_lookout_end(pool->workers[1]);
    stop_searching(pool->workers[1]);
}

static void leave_lookout_with_strand(void)
{
    mc_check(filch_worker_sleep(pool->workers[1], FILCH_NEVER_NS, true), "it was called");
}

static void sleep_on(void)
{
    filch_seat_nap(&pool->workers[2]->seat, NULL);
    is_over = true;
}

/* ---- away ------------------------------------------------------------------------------------ */

static void go_away(void)
{
    filch_worker *worker = pool->workers[0];

    make_source(0);
    if (sleeper == 'n')
        mc_check(filch_source_watch(&source), "another watches");
    filch_fetch_add_relaxed(&source.pending, 1); /* relaxed: as in src/io. */
    worker->spin_halvings = 1;
    unsigned calls = 0;
    bool is_called;
    do {
        filch_sleep_push(&pool->sleep, worker->index, FILCH_ROLE_RUNNING);
        is_called = filch_worker_sleep(worker, FILCH_NEVER_NS, sleeper == 't');
        worker->spin_halvings++;
        calls++;
        if (is_called && !worker->next)
            filch_sleep_found(&pool->sleep);
        /* It was called for the event, and has handled it. */
    } while (is_called && what == 'e' && take_resumed_strand(pool));
    mc_check(is_called == (what != 'e'), "it ends when it shall");
    mc_check(worker->spin_halvings == 1 + calls + (what == 'g' && payload),
             "what is the seat's is its own again");
    is_over = true;
}

static void call(void)
{
    /* Work may have come with an event: the seat's own thread may have called the seat. */
    int index = filch_sleep_pop(&pool->sleep, FILCH_ROLE_SEARCHING, false);

    /* relaxed: as above. */
    while (index < 0 && (what == 'e' || !filch_load_relaxed(&is_seen))) {
        filch_pause();
        index = filch_sleep_pop(&pool->sleep, FILCH_ROLE_SEARCHING, false);
    }
    if (index < 0)
        return;
    if (what == 'g') {
        payload = 1;
        pool->workers[0]->spin_halvings++;
        filch_sleep_push(&pool->sleep, 0, FILCH_ROLE_SEARCHING);
        filch_pool_notify(pool, NULL);
        return;
    }
    filch_seat_call(&pool->workers[0]->seat, what == 'e' ? FILCH_BED_ENDED : FILCH_BED_CALLED);
}

static void end_operation(void)
{
    /* relaxed: as above. */
    filch_fetch_add_relaxed(&kernel, HAPPENED);
    filch_futex_wake(&kernel, 1);
}

/* ---- programs -------------------------------------------------------------------------------- */

static MC_OUTSIDE bool may_rest(void)
{
    return is_over;
}

static filch_strand *make_strand(void)
{
    filch_worker_have_spare(pool->workers[0]);
    return filch_worker_prepare(pool->workers[0], run_for_ever, NULL, NULL);
}

/* A worker that sleeps. */
static MC_OUTSIDE bool has_third(void)
{
    return strchr("lchv", how);
}

/* It sleeps in the source. */
static void watch(filch_worker *worker)
{
    mc_check(filch_source_watch(&source) && filch_seat_go_away(&worker->seat), "nobody has called");
}

static void setup(void)
{
    pool = make_small_pool(has_third() ? 3 : how == 'a' ? 1 : 2);
    strands[0] = make_strand();
    strands[1] = make_strand();
    other = make_strand();
    if (how == 'a')
        return;
    filch_worker *worker = pool->workers[1];
    filch_store_relaxed(&kernel, HAPPENED);
    if (what != 'm')
        make_source(0);
    if (what == 'b' || what == 'a')
        filch_store_relaxed(&source.pending, 1);
    if (how == 'w' || how == 'v')
        make_source(1);
    if (what == 'b')
        watch(pool->workers[0]);
    if (how == 'v')
        watch(worker);
    if (has_third())
        filch_sleep_push(&pool->sleep, 2, FILCH_ROLE_RUNNING);
    if (how == 'o' || how == 'c' || how == 'h') {
        filch_queue_push(&pool->workers[0]->ready, &strands[0]->link);
        mc_check(filch_lookout_begin(worker), "there is something to look out for");
        filch_queue_take(&pool->workers[0]->ready);
        /* It has looked for long, and finds nothing. */
        while (pool->quiet_looks < 48)
            pool->quiet_looks++;
        worker->looked_rounds = 0;
        pool->workers[0]->looked_rounds = 0;
    }
    if (how == 'h') {
        worker->next = make_strand();
        filch_seat_call(&worker->seat, FILCH_BED_CALLED);
    }
    if (how == 'o')
        filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
    else if (how != 'g' && how != 'v' && how != 'h')
        filch_sleep_search(&pool->sleep, 1);
}

static void (*second(char role))(void)
{
    switch (role) {
    case 's':
        return go_to_sleep;
    case 'l':
        return leave_searchers;
    case 'o':
        return look_out;
    case 'g':
        return leave_seat;
    case 'h':
        return leave_lookout_with_strand;
    case 'w':
        return go_to_same_source;
    case 'v':
        return leave_same_source;
    default:
        return leave_lookout;
    }
}

static int run_left(const char *name, const mc_options *options)
{
    mc_result total = {.name = name};
    char program_name[40];
    mc_program program = {.name = program_name, .setup = setup, .threads = {leave_source}};

    for (const char *h = "slochgwv"; *h; h++)
        for (const char *w = "ombae"; *w; w++) {
            how = *h;
            what = *w;
            /* After an event was found nothing is left at the source; and two workers do not sleep
             * there. */
            if ((how == 'w' && what == 'e') || (how == 'v' && strchr("bae", what)))
                continue;
            program.threads[1] = second(how);
            program.threads[2] = has_third()   ? sleep_on
                                 : how == 'g'  ? sleep_without_seat
                                 : what == 'a' ? call_first
                                               : NULL;
            program.threads[3] =
                program.threads[2] != call_first && what == 'a' ? call_first : NULL;
            snprintf(program_name, sizeof program_name, "%s %c %c", name, what, how);
            mc_run_and_add(&total, &program, options);
        }
    return mc_report(total);
}

static int run_away(const char *name, const mc_options *options)
{
    mc_result total = {.name = name};
    char program_name[40];
    mc_program program = {.name = program_name, .setup = setup, .threads = {go_away, call}};

    how = 'a';
    for (const char *s = "snt"; *s; s++)
        for (const char *w = "ceg"; *w; w++)
            for (unsigned k = 0; k < 2; k++) {
                sleeper = *s;
                what = *w;
                if (sleeper == 't' && what == 'e' && !options->is_long)
                    continue;
                program.threads[2] = k ? end_operation : NULL;
                snprintf(program_name, sizeof program_name, "%s %c %c %c", name, what,
                         k ? 'k' : '-', sleeper);
                mc_run_and_add(&total, &program, options);
            }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv), timed = options;

    options.may_rest = timed.may_rest = may_rest;
    timed.timeouts = 1;
    return run_left("source, left", &options) | run_away("source, away", &timed);
}
