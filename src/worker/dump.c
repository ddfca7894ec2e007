/* SPDX-License-Identifier: MIT */
/*
 * Print the state of a pool, to find out why it does not go on.
 *
 *     strand 3 [left] waits for a mutex at 0x55d0c2a4e0, held by strand 4 [right]
 *     strand 5 [fib, stolen from strand 0] runs on worker 1
 *
 * Workers are not stopped, and a hanging pool may never release a lock that a task holds. So a dump
 * copies what it reads (base/peek.h): strands, jobs and the objects that strands wait for. If the
 * strand has begun another wait meanwhile, it is read again. A copy that is wrong all the same
 * makes a line wrong, and does no harm.
 */
#include "base/clock.h"
#include "base/peek.h"
#include "base/symbol.h"
#include "strand/plain.h"
#include "worker/steps.h"

#include <errno.h>
#include <filch/io.h>
#include <filch/scope.h>
#include <filch/sync.h>
#include <stdarg.h>
#include <string.h>

#define NAME_BYTES 96
#define NAMES_KEPT 16
#define TRIES_MAX 4

enum object_form { NOTHING, ADDRESS, DEADLINE, COUNT, OPERATION };

/* Also read by scripts/gdb/filch.py. */
static const struct filch_waits_row {
    const char *name;
    enum object_form form;
} filch_waits_rows[FILCH_WAITS_COUNT] = {
#define ROW(KIND, name, form) [FILCH_WAITS_##KIND] = {name, form},
    FILCH_WAITS(ROW)};

static const char *const op_names[FILCH_OP_COUNT] = {
#define OP_NAME(CODE, name) [FILCH_OP_##CODE] = #name,
    FILCH_OPS(OP_NAME)};

typedef struct dump {
    const filch_pool *pool;
    FILE *out;
    unsigned free_count, next_name;
    struct {
        uintptr_t address;
        char name[NAME_BYTES];
    } names[NAMES_KEPT]; /* kept, since looking up a name reads files */
} dump;

/* A line that is being written. Text that does not fit is cut off. */
typedef struct text {
    size_t length;
    char bytes[512];
} text;

__attribute__((format(printf, 2, 3))) static void add(text *to, const char *format, ...)
{
    size_t room = sizeof to->bytes - to->length;
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(to->bytes + to->length, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        to->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The end of a noun after this number. */
static const char *s_after(unsigned count)
{
    return count == 1 ? "" : "s";
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static const char *name_of(dump *d, uintptr_t address)
{
    for (unsigned i = 0; i < NAMES_KEPT; i++)
        if (d->names[i].address == address)
            return d->names[i].name;
    unsigned i = d->next_name++ % NAMES_KEPT;
    d->names[i].address = address;
    filch_symbol_name(address, d->names[i].name, NAME_BYTES);
    return d->names[i].name;
}

static void add_slot(dump *d, text *to, const filch_slot *slot)
{
    filch_slot copy;

    if (!filch_peek(slot, &copy, sizeof copy))
        return;
    /* relaxed: a copy. */
    uintptr_t thunk = filch_load_relaxed(&copy.state) & ~FILCH_TASK_MARKS;
    if (thunk == FILCH_TASK_DONE) {
        add(to, "a task that is done");
    } else if (thunk == (uintptr_t)filch_plain_run || thunk == (uintptr_t)filch_plain_run_checked) {
        add(to, "%s", name_of(d, (uintptr_t)filch_plain_in(&copy)->fn));
    } else {
        add(to, "%s", name_of(d, thunk));
    }
}

static void add_job(dump *d, text *to, const filch_job *job)
{
    filch_job copy;

    if (filch_peek(job, &copy, sizeof copy))
        add(to, "%s", name_of(d, copy.named ? copy.named : (uintptr_t)copy.fn));
}

/* The task that runs on the strand of which this is a copy. */
static void add_task(dump *d, text *to, const filch_strand *strand)
{
    filch_strand forker;

    add(to, " [");
    if (!strand->body) {
        add(to, "a new task");
    } else if (filch_worker_is_job(strand->body)) {
        add_job(d, to, strand->argument);
    } else {
        add_slot(d, to, strand->argument);
        if (filch_peek(filch_strand_of(strand->argument), &forker, sizeof forker))
            add(to, ", stolen from strand %u", forker.id);
    }
    add(to, "]");
}

/* ---- what strands wait for ------------------------------------------------------------------- */

static void add_mutex(dump *d, text *to, const filch_mutex *mutex)
{
    filch_mutex copy;
    filch_strand holder;

    if (!filch_peek(mutex, &copy, sizeof copy))
        return;
    /* relaxed: copies. */
    void *at = filch_load_relaxed(&copy.holder);
    bool is_held = filch_load_relaxed(&copy.state) & FILCH_MUTEX_HELD;
    if (at && filch_peek(at, &holder, sizeof holder)) {
        add(to, ", held by strand %u", holder.id);
        add_task(d, to, &holder);
        if (holder.pool != d->pool)
            add(to, " of another pool");
    } else if (is_held) {
        add(to, ", held by a thread, or locked by filch_mutex_try_lock");
    } else {
        add(to, ", free by now");
    }
}

static void add_rwlock(text *to, const filch_rwlock *lock)
{
    filch_rwlock copy;

    if (!filch_peek(lock, &copy, sizeof copy))
        return;
    /* relaxed: a copy. */
    uint32_t state = filch_load_relaxed(&copy.state);
    uint32_t readers = state & (FILCH_RWLOCK_WRITER - 1);
    if (state & FILCH_RWLOCK_WRITER)
        add(to, ", held by a writer");
    else
        add(to, ", held by %u reader%s", readers, s_after(readers));
}

static void add_scope(text *to, const filch_scope *scope, bool for_limit)
{
    filch_scope copy;

    if (!filch_peek(scope, &copy, sizeof copy))
        return;
    /* relaxed: copies. */
    uint32_t open = for_limit ? copy.running_count : filch_load_relaxed(&copy.task_count);
    add(to, ", with %u task%s that ha%s not ended", open, s_after(open), open == 1 ? "s" : "ve");
    if (filch_load_relaxed(&copy.mark))
        add(to, ", cancelled");
}

static void add_barrier(text *to, const filch_barrier *barrier)
{
    filch_barrier copy;

    if (filch_peek(barrier, &copy, sizeof copy))
        add(to, ", where %u of %u have arrived", copy.waiting, copy.count);
}

/* A stolen child, and the worker that runs it. */
static void add_child(dump *d, text *to, const filch_slot *child)
{
    add(to, " [");
    add_slot(d, to, child);
    add(to, "]");
    for (unsigned i = 0; i < d->pool->worker_count; i++) {
        filch_strand copy;
        /* relaxed: only printed. */
        const filch_strand *strand = filch_load_relaxed(&d->pool->workers[i]->strand);
        if (strand && filch_peek(strand, &copy, sizeof copy) && copy.argument == child)
            add(to, ", which runs on worker %u", i);
    }
}

static void add_holder(dump *d, text *to, enum filch_waits kind, const void *object)
{
    switch (kind) {
    case FILCH_WAITS_CHILD:
        add_child(d, to, object);
        break;
    case FILCH_WAITS_JOB:
        add(to, " [");
        add_job(d, to, object);
        add(to, "]");
        break;
    case FILCH_WAITS_MUTEX:
        add_mutex(d, to, object);
        break;
    case FILCH_WAITS_READ_LOCK:
    case FILCH_WAITS_WRITE_LOCK:
        add_rwlock(to, object);
        break;
    case FILCH_WAITS_SCOPE:
    case FILCH_WAITS_SCOPE_LIMIT:
        add_scope(to, object, kind == FILCH_WAITS_SCOPE_LIMIT);
        break;
    case FILCH_WAITS_BARRIER:
        add_barrier(to, object);
        break;
    default:
        break;
    }
}

static void add_sleep(text *to, uint64_t deadline_ns)
{
    uint64_t now_ns = filch_clock_ns();

    if (deadline_ns == FILCH_NEVER_NS)
        add(to, " without end");
    else
        add(to, ", %.3f s more", deadline_ns > now_ns ? (double)(deadline_ns - now_ns) / 1e9 : 0.0);
}

static void add_object(dump *d, text *to, enum filch_waits kind, const void *object)
{
    uintptr_t value = (uintptr_t)object;
    unsigned code = (unsigned)(value >> 32);

    add(to, "%s", filch_waits_rows[kind].name);
    switch (filch_waits_rows[kind].form) {
    case ADDRESS:
        add(to, " at %p", object);
        add_holder(d, to, kind, object);
        break;
    case DEADLINE:
        add_sleep(to, value);
        break;
    case COUNT:
        add(to, " among %u", (unsigned)value);
        break;
    case OPERATION:
        if (kind == FILCH_WAITS_CANCELLATION)
            add(to, ": ");
        if (kind == FILCH_WAITS_OPERATION || kind == FILCH_WAITS_CANCELLATION)
            add(to, "%s",
                code < FILCH_OP_COUNT && op_names[code] ? op_names[code] : "an operation");
        if ((int)value != -1)
            add(to, (int)value < 0 ? " in the working directory" : " of descriptor %d", (int)value);
        break;
    case NOTHING:
        break;
    }
}

/* ---- strands --------------------------------------------------------------------------------- */

static int worker_of(const filch_pool *pool, const filch_strand *strand)
{
    for (unsigned i = 0; i < pool->worker_count; i++)
        /* relaxed: only printed. */
        if (filch_load_relaxed(&pool->workers[i]->strand) == strand)
            return (int)i;
    return -1;
}

/* Was the strand in the same wait all the time since it was copied? */
static bool is_unchanged(const filch_strand *strand, filch_strand *copy)
{
    filch_strand now;

    /* relaxed: copies. */
    return filch_peek(strand, &now, sizeof now) &&
           filch_load_relaxed(&now.wait.word) == filch_load_relaxed(&copy->wait.word) &&
           filch_load_relaxed(&now.waits) == filch_load_relaxed(&copy->waits) &&
           filch_load_relaxed(&now.waits_for) == filch_load_relaxed(&copy->waits_for);
}

/* What the strand does. False: it is free. */
static bool add_strand(dump *d, text *to, const filch_strand *strand, filch_strand *copy)
{
    /* relaxed: copies. */
    enum filch_waits kind = filch_load_relaxed(&copy->waits);
    uint64_t word = filch_load_relaxed(&copy->wait.word);
    uint64_t split = filch_load_relaxed(&copy->split.word);
    const void *object = filch_load_relaxed(&copy->waits_for);
    int worker = worker_of(d->pool, strand);

    if (kind >= FILCH_WAITS_COUNT || (worker < 0 && kind == FILCH_WAITS_NOT))
        return false;
    add_task(d, to, copy);
    if (worker >= 0) {
        add(to, " runs on worker %d", worker);
    } else if (kind != FILCH_WAITS_CHILD && kind != FILCH_WAITS_JOB &&
               (word & FILCH_WAIT_PHASE) == FILCH_WAIT_ENDED && !(word & FILCH_WAIT_PARKED)) {
        add(to, " may go on after waiting for %s", filch_waits_rows[kind].name);
    } else {
        add(to, " waits for ");
        add_object(d, to, kind, object);
    }
    unsigned to_steal = filch_split_split(split) - filch_split_tail(split);
    if (!d->pool->strands.kind && filch_split_split(split) > filch_split_tail(split))
        add(to, ", with %u task%s to steal", to_steal, s_after(to_steal));
    return true;
}

static void print_strand(dump *d, const filch_strand *strand, unsigned id)
{
    filch_strand copy;
    bool is_used = false;
    text line;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        line = (text){0};
        if (!filch_peek(strand, &copy, sizeof copy))
            return;
        is_used = add_strand(d, &line, strand, &copy);
        if (is_unchanged(strand, &copy))
            break;
    }
    d->free_count += !is_used;
    if (is_used)
        fprintf(d->out, "  strand %u%s\n", id, line.bytes);
}

/* Printing may take long, and must not keep the workers from their strands. So the lock is held
 * only while the addresses of one slab's strands are copied. */
static void print_strands(dump *d)
{
    filch_slabs *slabs = (filch_slabs *)&d->pool->strands.slabs;
    filch_strand *strands[FILCH_SLAB_MAX];

    filch_lock_acquire(&slabs->lock);
    const filch_slab *slab = slabs->all;
    filch_lock_release(&slabs->lock);
    for (; slab; slab = slab->next_all) {
        unsigned count = filch_slabs_list(slabs, slab, strands);
        for (unsigned i = 0; i < count; i++)
            print_strand(d, strands[i], slab->first_id + i);
    }
}

int filch_pool_dump(filch_pool *pool, FILE *out)
{
    dump d = {.pool = pool, .out = out};

    if (!pool || !out)
        return -EINVAL;
    /* relaxed: only printed. */
    uint32_t pending = filch_load_relaxed(&pool->pending) & ~FILCH_POOL_AWAITED;
    fprintf(out, "pool '%s': %u worker%s, %u asleep; %u task%s from outside, %u waiting to run\n",
            pool->options.name, pool->worker_count, s_after(pool->worker_count),
            filch_sleep_sleeper_count(&pool->sleep), pending, s_after(pending),
            filch_load_relaxed(&pool->inject.count));
    for (unsigned i = 0; i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        /* relaxed: only printed. */
        uint32_t ready = filch_load_relaxed(&worker->ready.count),
                 spawned = filch_load_relaxed(&worker->spawned.count);
        if (ready + spawned > 0)
            fprintf(out, "  worker %u has %u strand%s to go on with, and %u task%s to begin\n", i,
                    ready, s_after(ready), spawned, s_after(spawned));
    }
    print_strands(&d);
    fprintf(out, "  %u strand%s free\n", d.free_count, d.free_count == 1 ? " is" : "s are");
    return ferror(out) ? -EIO : 0;
}
