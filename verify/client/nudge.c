/* SPDX-License-Identifier: MIT */
/*
 * A crowd at a channel with room: a nudged strand may fail to come, but no strand waits while there
 * is an entry or room for it.
 *
 * T1 is a worker that runs two or three strands. They receive from an empty channel or send to a
 * full one, one entry each: without a deadline (r, s) or with one (R, S). The loop is part of this
 * file (worker_loop.h), but T1 has a loop of its own, which only runs strands that may go on. T2
 * and perhaps T3 are threads, with a script:
 *
 *     p  puts an entry, and waits until it can; P  only if it can at once
 *     g  gets one, and waits until it can; G  only if it can at once
 *     c  closes the channel
 *     x  cancels the scope of the strands
 *     d  time is up for strands with a deadline
 *
 * The client generates all scripts up to a length. After its script, T2 waits while entries and
 * receiving strands are left, or room and sending strands. One of the strands must go on by itself;
 * otherwise T2 waits for ever. Then T2 closes the channel, which ends the rest.
 *
 * An entry that was sent is received once or still there, with all that was written before the
 * send. After an error nothing was sent. Workers that meet (rr, ss: one strand each) have no T2.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <filch/channel.h>
#include <filch/scope.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STRANDS_MAX 4
#define ENTRIES (STRANDS_MAX + LENGTH_MAX + 2)
#define LENGTH_MAX 3

static filch_pool *pool;
static filch_channel *channel;
static filch_scope scope;
static filch_strand *strands[STRANDS_MAX];
static int payload[ENTRIES];  /* plain: the data of the entries */
static bool is_sent[ENTRIES]; /* plain: the sender's */
static filch_atomic_u32 received[ENTRIES];
static filch_atomic_u32 ended_count;

static const char *crowd;            /* the letters of the strands */
static const char *script, *another; /* of T2 and T3 */
static bool is_meeting;              /* the second half of the crowd is run by T2 */
static bool is_there;                /* the crowd waits already when the threads begin */

static int failures;

/* ---- entries --------------------------------------------------------------------------------- */

static void check_entry(const int *entry)
{
    mc_check(*entry == 1, "what was written before it was sent comes with it");
    /* relaxed: they are counted when all is over. */
    filch_fetch_add_relaxed(&received[entry - payload], 1);
}

static int *new_entry(int which)
{
    payload[which] = 1;
    return &payload[which];
}

/* ---- the crowd ------------------------------------------------------------------------------- */

static void run_strand(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split);
    const int which = (int)(uintptr_t)self->argument;
    const char does = crowd[which];
    /* This time is past for all threads, but only T2 looks at the clock. */
    uint64_t deadline_ns = does == 'R' || does == 'S' ? 1 : FILCH_NO_DEADLINE;
    int *entry = new_entry(which), err;

    if (does == 'r' || does == 'R') {
        err = filch_channel_receive_until(f, channel, &entry, deadline_ns);
        if (err == 0)
            check_entry(entry);
    } else {
        err = filch_channel_send_until(f, channel, &entry, deadline_ns);
        is_sent[which] = err == 0;
    }
    mc_check(err == 0 || err == -EPIPE || err == -ECANCELED ||
                 (err == -ETIMEDOUT && deadline_ns == 1),
             "it is done, or not");
    /* relaxed: a hint for T2. */
    filch_fetch_add_relaxed(&ended_count, 1);
}

static void begin_strands(filch_worker *worker, unsigned from, unsigned to)
{
    const filch_visit visit = {.worker = worker};

    set_self(&visit);
    for (unsigned i = from; i < to; i++)
        filch_worker_run(worker, strands[i]);
    set_self(NULL);
}

static void go_on_with_strands(filch_worker *worker)
{
    const filch_visit visit = {.worker = worker};

    set_self(&visit);
    /* relaxed: as above. */
    while (filch_load_relaxed(&ended_count) < strlen(crowd)) {
        filch_strand *strand = worker->next;
        worker->next = NULL;
        if (!strand)
            strand = take_ready(&worker->ready);
        if (!strand)
            strand = take_ready(&pool->ready);
        if (strand)
            filch_worker_run(worker, strand);
        else
            filch_pause();
    }
    set_self(NULL);
}

static void run_first(void)
{
    if (!is_there)
        begin_strands(pool->workers[0], 0, (unsigned)strlen(crowd) / (is_meeting ? 2 : 1));
    go_on_with_strands(pool->workers[0]);
}

static void run_rest(void)
{
    begin_strands(pool->workers[1], (unsigned)strlen(crowd) / 2, (unsigned)strlen(crowd));
    go_on_with_strands(pool->workers[1]);
}

/* ---- T2 and T3 ------------------------------------------------------------------------------- */

static void follow(const char *text, int first)
{
    int *entry, err = 0;

    for (const char *c = text; *c; c++) {
        const int which = first + (int)(c - text);

        switch (*c) {
        case 'p':
        case 'P':
            entry = new_entry(which);
            err = *c == 'p' ? filch_channel_send(NULL, channel, &entry)
                            : filch_channel_try_send(channel, &entry);
            is_sent[which] = err == 0;
            break;
        case 'g':
        case 'G':
            err = *c == 'g' ? filch_channel_receive(NULL, channel, &entry)
                            : filch_channel_try_receive(channel, &entry);
            if (err == 0)
                check_entry(entry);
            break;
        case 'c':
            filch_channel_close(channel);
            break;
        case 'x':
            filch_scope_cancel(&scope);
            break;
        case 'd':
            filch_pool_fire_timers(pool);
            break;
        }
        mc_check(err == 0 || err == -EAGAIN || err == -EPIPE, "it is done, or not");
    }
}

static void follow_another(void)
{
    follow(another, STRANDS_MAX + LENGTH_MAX);
}

/* Whether there is an entry, or room, for a waiting strand. */
static bool has_some(void)
{
    size_t count = filch_channel_count(channel);
    return crowd[0] == 'r' || crowd[0] == 'R' ? count > 0 : count == 0;
}

static void follow_script(void)
{
    follow(script, STRANDS_MAX);
    /* relaxed: as above. */
    while (has_some() && filch_load_relaxed(&ended_count) < strlen(crowd))
        filch_pause();
    filch_channel_close(channel);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void setup(void)
{
    const bool is_full = !is_meeting && (crowd[0] == 's' || crowd[0] == 'S');
    int *entry = new_entry(ENTRIES - 1);

    pool = make_small_pool(2);
    filch_pool_begin(pool);
    mc_check(filch_channel_create(&channel, sizeof(int *), 1) == 0, "a channel is created");
    mc_check(filch_scope_open(NULL, &scope, pool, NULL) == 0, "a scope is opened");
    for (uintptr_t i = 0; crowd[i]; i++) {
        filch_worker_have_spare(pool->workers[0]);
        strands[i] = filch_worker_prepare(pool->workers[0], run_strand, (void *)i, NULL);
        filch_strand_begin_task(strands[i], &scope, NULL);
    }
    if (is_full)
        mc_check(filch_channel_try_send(channel, &entry) == 0, "there is room for one");
    is_sent[ENTRIES - 1] = is_full;
    if (is_there)
        begin_strands(pool->workers[0], 0, (unsigned)strlen(crowd));
}

static void finish(void)
{
    int *entry;

    while (filch_channel_try_receive(channel, &entry) == 0)
        check_entry(entry);
    for (int i = 0; i < ENTRIES; i++)
        mc_check(filch_load_relaxed(&received[i]) == is_sent[i],
                 "what was sent is received once, or still there, and nothing else");
}

static void run_meeting(const char *name, const mc_options *options)
{
    static const char *const crowds[] = {"rrss", "ssrr", "rsrs", "rssr"};
    mc_result total = {.name = name};
    char program_name[60];
    mc_program program = {program_name, setup, {run_first, run_rest}, finish};

    is_meeting = true;
    for (unsigned i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        crowd = crowds[i];
        snprintf(program_name, sizeof program_name, "%s %s", name, crowd);
        mc_run_and_add(&total, &program, options);
    }
    is_meeting = false;
    failures |= mc_report(total);
}

/* Whether a script makes sense: a thread waits only for strands, and does each of the other letters
 * once. */
static bool is_sensible(const char *text, bool receives, const char *rest)
{
    for (const char *c = text; *c; c++)
        if ((strchr("cxd", *c) && (strchr(c + 1, *c) || strchr(rest, *c))) ||
            *c == (receives ? 'g' : 'p'))
            return false;
    return true;
}

static void run_scripts(const char *name, const mc_options *options, const char *who,
                        unsigned longest, const char *other)
{
    const bool receives = strchr("rR", who[0]), is_timed = strpbrk(who, "RS");
    const char *letters = options->is_long ? "cxdpPgG" : receives ? "cxdpG" : "cxdgP";
    const unsigned letter_count = (unsigned)strlen(letters);
    mc_result total = {.name = name};
    char text[LENGTH_MAX + 1] = "", program_name[60];
    mc_program program = {
        program_name, setup, {run_first, follow_script, *other ? follow_another : NULL}, finish};
    unsigned count = 1;

    crowd = who;
    script = text;
    another = other;
    for (unsigned i = 0; i < longest; i++)
        count *= letter_count;
    for (unsigned k = 0; k < count; k++) {
        for (unsigned i = 0, rest = k; i < longest; i++, rest /= letter_count)
            text[i] = letters[rest % letter_count];
        if (!is_sensible(text, receives, other) || (strchr(text, 'd') && !is_timed))
            continue;
        snprintf(program_name, sizeof program_name, "%s %s %s %s", name, who, text, other);
        mc_run_and_add(&total, &program, options);
    }
    failures |= mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    const mc_options two = mc_bounded(options, 2, 1), one = mc_bounded(options, 1, 1);
    const unsigned more = options.is_long;

    is_there = true;
    run_scripts("nudge", &two, "rr", 1, "");
    run_scripts("nudge, timed", &one, "Rr", 2 + more, "");
    run_scripts("nudge, senders", &one, "Ss", 2 + more, "");
    run_scripts("nudge, three", &one, "rrr", 1 + more, "");
    if (more)
        run_scripts("nudge, two scripts", &one, "rr", 1, "p");
    is_there = false;
    run_meeting("nudge, meeting", &one);
    return failures;
}
