/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals that all actors of the program share; barriers and onces of their own.
 *
 * No actor waits for a second lock while it holds one, and each wait that another actor might never
 * end has a deadline.
 */
#include "attack.h"

/* ---- locks of the world ---------------------------------------------------------------------- */

/* Keep the lock for a while; forks, scopes and joins may happen meanwhile. */
static void hold(filch_frame *f, actor *a)
{
    if (one_in(a, 4)) {
        actor inner = *a;
        inner.state = number(a);
        inner.budget = 1 + below(a, 3);
        inner.depth = a->depth < 2 ? a->depth : 2;
        inner.has_lock = true;
        name_actor(&inner, "with it", 0);
        act(f, &inner);
    } else if (one_in(a, 3)) {
        filch_yield(f);
    }
}

void op_mutex(filch_frame *f, actor *a)
{
    static const char *const names[] = {"try_lock", "lock_until", "lock"};
    unsigned way = below(a, COUNT_OF(names));

    note_if(a, true, names[way]);
    switch (way) {
    case 0:
        if (!filch_mutex_try_lock(&the_world.mutex))
            return;
        break;
    case 1:
        if (!ok(f, a, filch_mutex_lock_until(f, &the_world.mutex, some_deadline(a)), MAY_TIME_OUT))
            return;
        break;
    default:
        if (!ok(f, a, filch_mutex_lock(f, &the_world.mutex), 0))
            return;
    }
    the_world.locked++;
    hold(f, a);
    the_world.unlocked++;
    CHECK_EQUAL(the_world.locked, the_world.unlocked);
    filch_mutex_unlock(&the_world.mutex);
}

void op_rwlock(filch_frame *f, actor *a)
{
    bool is_writer = one_in(a, 3), is_patient = one_in(a, 2);
    uint64_t deadline_ns = is_patient ? FILCH_NO_DEADLINE : some_deadline(a);
    filch_rwlock *lock = &the_world.rwlock;

    note_if(a, true, is_writer ? "write" : "read");
    note_if(a, !is_patient, "deadline");
    if (one_in(a, 4)) {
        if (!(is_writer ? filch_rwlock_try_write_lock(lock) : filch_rwlock_try_read_lock(lock)))
            return;
    } else if (!ok(f, a,
                   is_writer ? filch_rwlock_write_lock_until(f, lock, deadline_ns)
                             : filch_rwlock_read_lock_until(f, lock, deadline_ns),
                   is_patient ? 0 : MAY_TIME_OUT)) {
        return;
    }
    if (is_writer)
        the_world.left++;
    else
        CHECK_EQUAL(the_world.left, the_world.right);
    hold(f, a);
    if (is_writer)
        the_world.right++;
    CHECK_EQUAL(the_world.left, the_world.right);
    filch_rwlock_unlock(lock);
}

void op_cond(filch_frame *f, actor *a)
{
    if (!ok(f, a, filch_mutex_lock(f, &the_world.mutex), 0))
        return;
    the_world.locked++;
    the_world.unlocked++;
    bool is_waker = one_in(a, 2);
    note_if(a, true, is_waker ? "wake" : "wait");
    if (is_waker) {
        the_world.tickets += 1 + below(a, 2);
        if (one_in(a, 2))
            filch_cond_broadcast(&the_world.cond);
        else
            filch_cond_signal(&the_world.cond);
    } else {
        uint64_t deadline_ns = some_deadline(a);
        int err = 0;
        while (the_world.tickets == 0 && err == 0) {
            err = filch_cond_wait_until(f, &the_world.cond, &the_world.mutex, deadline_ns);
            ok(f, a, err, MAY_TIME_OUT);
            CHECK_EQUAL(the_world.locked, the_world.unlocked);
        }
        the_world.tickets -= the_world.tickets > 0;
    }
    filch_mutex_unlock(&the_world.mutex);
}

void op_sem(filch_frame *f, actor *a)
{
    bool is_try = one_in(a, 4), is_patient = !is_try && one_in(a, 2);

    note_if(a, true, is_try ? "try_acquire" : is_patient ? "acquire" : "acquire_until");
    if (is_try ? !filch_sem_try_acquire(&the_world.sem)
               : !ok(f, a,
                     is_patient ? filch_sem_acquire(f, &the_world.sem)
                                : filch_sem_acquire_until(f, &the_world.sem, some_deadline(a)),
                     MAY_TIME_OUT))
        return;
    add(&the_world.inside, 1);
    CHECK(get(&the_world.inside) <= the_world.units);
    hold(f, a);
    add(&the_world.inside, -1ull);
    filch_sem_release(&the_world.sem, 1);
}

void op_event(filch_frame *f, actor *a)
{
    static const char *const names[] = {"set", "reset", "is_set", "wait_until"};
    unsigned way = below(a, COUNT_OF(names));

    note_if(a, true, names[way]);
    switch (way) {
    case 0:
        filch_event_set(&the_world.event);
        break;
    case 1:
        filch_event_reset(&the_world.event);
        break;
    case 2:
        filch_event_is_set(&the_world.event);
        break;
    default:
        ok(f, a, filch_event_wait_until(f, &the_world.event, some_deadline(a)), MAY_TIME_OUT);
    }
}

/* ---- barriers and onces of their own --------------------------------------------------------- */

#define TASKS_MAX 6
#define ROUNDS 3

typedef struct meeting {
    filch_barrier barrier;
    filch_once once;
    filch_atomic_u64 arrived, firsts, began, succeeded;
    unsigned count;
    uint32_t failures; /* the first calls of the once that fail */
    actor actors[TASKS_MAX];
} meeting;

typedef struct guest {
    meeting *m;
    unsigned index;
} guest;

static int meet(filch_frame *f, void *arg)
{
    guest *g = arg;
    meeting *m = g->m;
    actor *a = &m->actors[g->index];

    actor_begins(a);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        add(&m->arrived, 1);
        int first = filch_barrier_wait(f, &m->barrier);
        if (!ok(f, a, first, 0)) {
            actor_ends(a);
            return first;
        }
        CHECK(get(&m->arrived) >= (uint64_t)round * m->count);
        add(&m->firsts, (uint64_t)first);
    }
    act(f, a);
    return 0;
}

static int open_once(filch_frame *f, void *arg)
{
    guest *g = arg;
    meeting *m = g->m;

    add(&m->began, 1);
    CHECK_EQUAL(get(&m->succeeded), 0);
    act(f, &m->actors[g->index]);
    if (get(&m->began) <= m->failures)
        return -EDOM;
    add(&m->succeeded, 1);
    return 0;
}

static int call_once(filch_frame *f, void *arg)
{
    guest *g = arg;
    meeting *m = g->m;
    actor *a = &m->actors[g->index];
    int err;

    actor_begins(a);
    while ((err = filch_once_call(f, &m->once, open_once, g)) == -EDOM)
        ;
    actor_ends(a);
    if (!ok(f, a, err, 0))
        return err;
    CHECK_EQUAL(get(&m->succeeded), 1);
    return 0;
}

/* Tasks that wait for each other, so all end with the first that cannot go on. */
static void gather(filch_frame *f, actor *a, meeting *m, filch_task_fn *fn)
{
    filch_scope_options options = {.size = sizeof options, .cancel_on_error = true};
    bool is_to_cancel = one_in(a, 6), is_short = false;
    filch_scope scope;

    note(a, "tasks", m->count);
    note_if(a, is_to_cancel, "cancelled");
    CHECK_EQUAL(filch_scope_open(f, &scope, f ? NULL : some_pool(a), &options), 0);
    for (unsigned i = 0; i < m->count; i++) {
        guest g = {m, i};
        m->actors[i] = part_of(a, m->count - i);
        m->actors[i].is_cancellable = true;
        m->actors[i].is_shielded = false;
        name_actor(&m->actors[i], "task", i + 1);
        is_short |= !ok(f, a, filch_scope_spawn_copy(f, &scope, fn, &g, sizeof g), MAY_END);
    }
    if (is_short || is_to_cancel)
        filch_scope_cancel(&scope);
    int err = filch_scope_close(f, &scope);
    bool may_end = is_short || is_to_cancel || (f && a->is_cancellable && !a->is_shielded);
    CHECK(err == 0 || (err == -ECANCELED && may_end) ||
          (err == -ENOMEM && the_world.may_lack_memory));
    if (err == 0 && fn == meet)
        CHECK_EQUAL(get(&m->firsts), ROUNDS);
    if (err == 0 && fn == call_once)
        CHECK_EQUAL(get(&m->began), m->failures + 1);
}

void op_barrier(filch_frame *f, actor *a)
{
    meeting *m = calloc(1, sizeof *m);

    m->count = sized(1 + below(a, TASKS_MAX));
    filch_barrier_init(&m->barrier, m->count);
    if (f || !a->is_inside)
        gather(f, a, m, meet);
    free(m);
}

void op_once(filch_frame *f, actor *a)
{
    meeting *m = calloc(1, sizeof *m);

    m->count = sized(1 + below(a, TASKS_MAX));
    m->failures = one_in(a, 3);
    note_if(a, m->failures, "fails first");
    if (f || !a->is_inside)
        gather(f, a, m, call_once);
    free(m);
}
