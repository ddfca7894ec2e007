/* SPDX-License-Identifier: MIT */
/*
 * Actors: random choices, budgets, and which results are allowed.
 */
#include "attack.h"

#include <stdarg.h>

const char *const part_names[PART_COUNT] = {
#define NAME(name) #name,
    PARTS(NAME)
#undef NAME
};

/* What an operation needs, and how often it is chosen. */
enum {
    ON_TASKS = 1,   /* forks, so it has to be in a task */
    NESTS = 2,      /* gives its budget on, so it needs some */
    IS_OUTSIDE = 4, /* not in a pool that comes and goes, nor with a lock held */
    LOCKS = 8,      /* waits for a lock of the world */
    SHARES = 16,    /* uses an object of the world */
};

static const struct {
    void (*run)(filch_frame *f, actor *a);
    int needs;
    unsigned weight;
} operations[] = {
#define ROW(name, needs, weight) [PART_##name] = {op_##name, needs, weight}
    ROW(tree, ON_TASKS | NESTS, 6),
    ROW(spawn, ON_TASKS | NESTS, 4),
    ROW(plain, ON_TASKS | NESTS, 4),
    ROW(loop, ON_TASKS | NESTS, 2),
    ROW(reduce, ON_TASKS | NESTS, 2),
    ROW(sort, ON_TASKS | NESTS, 1),
    ROW(invoke, ON_TASKS | NESTS, 2),
    ROW(run, NESTS | IS_OUTSIDE, 4),
    ROW(submit, IS_OUTSIDE | NESTS, 3),
    ROW(brief, NESTS | IS_OUTSIDE, 1),
    ROW(look, IS_OUTSIDE, 1),
    ROW(thread, NESTS | IS_OUTSIDE, 2),
    ROW(child, NESTS | IS_OUTSIDE, 1),
    ROW(scope, NESTS, 6),
    ROW(limit, NESTS, 2),
    ROW(future, NESTS, 4),
    ROW(promise, NESTS, 2),
    ROW(any, NESTS, 2),
    ROW(channel, NESTS, 4),
    ROW(shared, SHARES, 4),
    ROW(select, SHARES, 4),
    ROW(mutex, LOCKS | SHARES, 4),
    ROW(rwlock, LOCKS | SHARES, 2),
    ROW(cond, LOCKS | SHARES, 2),
    ROW(sem, LOCKS | SHARES, 2),
    ROW(event, SHARES, 2),
    ROW(barrier, NESTS, 2),
    ROW(once, NESTS, 2),
    ROW(sleep, 0, 3),
    ROW(period, 0, 1),
    ROW(yield, 0, 4),
    ROW(local, ON_TASKS | NESTS, 2),
    ROW(shield, ON_TASKS | NESTS, 2),
    ROW(pipeline, NESTS, 2),
    ROW(blocking, 0, 3),
    ROW(bytes, NESTS, 6),
    ROW(started, 0, 4),
    ROW(closed, 0, 3),
    ROW(spliced, 0, 2),
    ROW(crowd, 0, 1),
    ROW(rivals, NESTS, 2),
    ROW(waiting, NESTS, 2),
    ROW(tcp, NESTS, 3),
    ROW(stream, NESTS, 2),
    ROW(file, 0, 4),
    ROW(names, 0, 1),
#undef ROW
};

void fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    const char *slash = strrchr(file, '/');
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s (seed %llu)\n", slash ? slash + 1 : file, line, text,
            (unsigned long long)(the_world.settings ? the_world.settings->seed : 0));
    abort();
}

/* ---- choices --------------------------------------------------------------------------------- */

/* splitmix64 */
uint64_t number(actor *a)
{
    uint64_t z = a->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint32_t below(actor *a, uint32_t count)
{
    return count ? (uint32_t)((number(a) >> 32) * count >> 32) : 0;
}

actor part_of(actor *a, unsigned shares)
{
    actor share = *a;

    share.state = number(a);
    share.is_named = false;
    share.budget = a->budget / shares;
    share.depth = a->depth ? a->depth - 1 : 0;
    a->budget -= share.budget;
    return share;
}

unsigned sized(unsigned count)
{
    return count < the_world.settings->size_limit ? count : the_world.settings->size_limit;
}

uint64_t some_deadline(actor *a)
{
    switch (below(a, 6)) {
    case 0:
        return 1;
    case 1:
        return filch_after_ns(below(a, 300000));
    case 2:
        return filch_after_ms(1 + below(a, 20));
    default:
        return filch_after_ns(1 + below(a, 3000000));
    }
}

/* ---- results --------------------------------------------------------------------------------- */

bool ok_at(const char *file, int line, filch_frame *f, const actor *a, long result, int may)
{
    bool is_ok = result >= 0;

    if (is_ok)
        return true;
    add(&the_board->errors, 1);
    switch (result) {
    case -ECANCELED:
        is_ok = may & MAY_END || (f && a->is_cancellable && !a->is_shielded);
        break;
    case -ETIMEDOUT:
        is_ok = may & MAY_TIME_OUT;
        break;
    case -EPIPE:
        is_ok = may & (MAY_BREAK | MAY_FAIL);
        break;
    case -ENOMEM:
        is_ok = may & MAY_FAIL || the_world.may_lack_memory;
        break;
    default:
        is_ok = may & MAY_FAIL;
    }
    if (!is_ok)
        fail(file, line, "a call returned %ld: %s", result, filch_strerror((int)-result));
    return false;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Unlike its place among the others, this stays the same if others are left out. */
static uint32_t id_of(const actor *one)
{
    uint32_t id = (uint32_t)(one->state ^ one->state >> 32);
    return id ? id : 1;
}

static bool is_chosen(const settings *s, uint32_t id)
{
    bool is_found = s->only_count == 0;

    for (unsigned i = 0; i < s->only_count && !is_found; i++)
        is_found = s->only[i] == id;
    return is_found;
}

static bool can_run(filch_frame *f, const actor *a, unsigned i)
{
    int needs = operations[i].needs;

    return has_part(the_world.settings, (part)i) && !(needs & ON_TASKS && !f) &&
           !(needs & NESTS && (a->depth == 0 || a->budget == 0)) &&
           !(needs & IS_OUTSIDE && (a->has_lock || a->is_inside)) &&
           !(needs & LOCKS && a->has_lock) && !(needs & SHARES && a->is_forked);
}

/* Choose among all operations, so that leaving out one part changes no other choice. */
static unsigned choose(actor *a)
{
    unsigned sum = 0, at, i;

    for (i = 0; i < OPERATION_COUNT; i++)
        sum += operations[i].weight;
    at = below(a, sum);
    for (i = 0; at >= operations[i].weight; i++)
        at -= operations[i].weight;
    return i;
}

void act(filch_frame *f, actor *a)
{
    uint32_t above = a->at;
    bool was_named = a->is_named;

    actor_begins(a);
    while (a->budget > 0) {
        actor one = *a;
        one.state = number(a);
        unsigned i = choose(a);
        uint32_t id = id_of(&one);

        a->budget--;
        add(&the_board->progress, 1);
        if (!can_run(f, a, i) || !is_chosen(the_world.settings, id))
            continue;
        if (!a->is_named) {
            name_actor(a, f ? "task" : "thread", 0);
            actor_begins(a);
        }
        one.is_named = false;
        one.at = record_add(a->at, part_names[i], 0, id);
        record_set(one.at, ENTRY_BEGUN);
        add(&the_board->counts[i], 1);
        if (the_world.settings->is_traced)
            fprintf(stderr, "%*s%s %u%s\n", (int)(2 * (the_world.settings->depth - a->depth)), "",
                    part_names[i], a->budget, f ? "" : " (thread)");
        /* An operation that nests spends part of the rest. */
        one.budget = operations[i].needs & NESTS ? a->budget / 2 : 0;
        a->budget -= one.budget;
        uint32_t entry = one.at;
        operations[i].run(f, &one);
        record_set(entry, ENTRY_ENDED);
        add(&the_board->progress, 1);
    }
    actor_ends(a);
    a->at = above;
    a->is_named = was_named;
}

filch_pool *some_pool(actor *a)
{
    unsigned index = below(a, the_world.pool_count);

    note(a, "pool", index + 1);
    return the_world.pools[index];
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *run_helper(void *arg)
{
    helper *h = arg;

    h->fn(NULL, h->arg);
    filch_event_set(&h->ended);
    return NULL;
}

void helper_start(helper *h, void (*fn)(filch_frame *f, void *arg), void *arg)
{
    *h = (helper){.fn = fn, .arg = arg};
    int err = pthread_create(&h->thread, NULL, run_helper, h);
    if (err)
        FAIL("the attack itself cannot start a thread: %s", strerror(err));
}

void helper_join(filch_frame *f, helper *h)
{
    if (f) {
        filch_frame *shield = filch_shield(f);
        int err = filch_event_wait(f, &h->ended);
        if (err)
            FAIL("a shielded wait returned %d: %s", err, filch_strerror(-err));
        filch_unshield(f, shield);
    }
    pthread_join(h->thread, NULL);
}
