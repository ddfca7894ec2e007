/* SPDX-License-Identifier: MIT */
/*
 * Scopes: errors, cancellation, deadlines, limits, tasks that spawn more, all nested in each other.
 */
#include "attack.h"

#define TASKS_MAX 12

typedef struct family {
    filch_scope scope;
    bool may_cancel; /* something may cancel the scope */
    filch_atomic_u64 ran, errors, running;
    unsigned limit;   /* 0: none */
    uint64_t spawned; /* by the owner */
    filch_atomic_u64 grandchildren;
    struct member {
        struct family *all;
        actor a;
        filch_atomic_u64 times;
        int result;
        bool cancels, spawns;
    } members[TASKS_MAX];
} family;

static int run_grandchild(filch_frame *f, void *arg)
{
    family *all = *(family **)arg;

    add(&all->ran, 1);
    filch_yield(f);
    return 0;
}

static int run_member(filch_frame *f, void *arg)
{
    struct member *m = arg;
    family *all = m->all;

    add(&m->times, 1);
    add(&all->ran, 1);
    add(&all->running, 1);
    if (all->limit)
        CHECK(get(&all->running) <= all->limit);
    act(f, &m->a);
    if (m->spawns &&
        ok(f, &m->a, filch_scope_spawn_copy(f, &all->scope, run_grandchild, &all, sizeof all),
           all->may_cancel ? MAY_END : 0))
        add(&all->grandchildren, 1);
    if (m->cancels)
        filch_scope_cancel(&all->scope);
    add(&all->running, -1ull);
    if (m->result)
        add(&all->errors, 1);
    return m->result;
}

/* Spawn from a plain thread, while the owner and the tasks do. */
static void spawn_from_thread(filch_frame *f, void *arg)
{
    family *all = arg;
    const actor none = {.state = 0};

    for (unsigned i = 0; i < 5; i++)
        if (ok(f, &none, filch_scope_spawn_copy(f, &all->scope, run_grandchild, &all, sizeof all),
               all->may_cancel ? MAY_END : 0))
            add(&all->grandchildren, 1);
}

static void cancel_from_thread(filch_frame *f, void *scope)
{
    (void)f;
    filch_scope_cancel(scope);
}

static void check_end(filch_frame *f, actor *a, family *all, filch_scope_options *options, int err)
{
    uint64_t spawned = all->spawned + get(&all->grandchildren);

    for (unsigned i = 0; i < TASKS_MAX; i++)
        CHECK(get(&all->members[i].times) <= 1);
    CHECK(get(&all->ran) <= spawned);
    CHECK_EQUAL(get(&all->running), 0);
    switch (err) {
    case -EDOM:
        CHECK(get(&all->errors) > 0);
        break;
    case -ETIMEDOUT:
        CHECK(options->deadline_ns != 0);
        break;
    case -ECANCELED:
        CHECK(all->may_cancel || (f && a->is_cancellable && !a->is_shielded));
        break;
    case -ENOMEM:
        CHECK(the_world.may_lack_memory);
        break;
    default:
        CHECK_EQUAL(err, 0);
        CHECK_EQUAL(get(&all->errors), 0);
        CHECK_EQUAL(get(&all->ran), spawned);
    }
}

static void live(filch_frame *f, actor *a, unsigned limit)
{
    family *all = calloc(1, sizeof *all);
    unsigned count = sized(1 + below(a, TASKS_MAX));
    bool is_errant = one_in(a, 3), is_to_cancel = one_in(a, 4), is_elsewhere = one_in(a, 3);
    filch_scope_options options = {.size = sizeof options,
                                   .deadline_ns = one_in(a, 4) ? some_deadline(a) : 0,
                                   .task_limit = limit,
                                   .cancel_on_error = one_in(a, 2)};
    filch_pool *pool = f && (!is_elsewhere || a->is_inside) ? NULL : some_pool(a);
    bool has_spawner = !limit && one_in(a, 6);
    helper canceller, spawner;

    /* Such an actor's pool is not known here, and only a task's own pool may be used. */
    if (!f && a->is_inside) {
        free(all);
        return;
    }
    note(a, "tasks", count);
    if (limit)
        note(a, "at once", limit);
    note_if(a, options.deadline_ns, "deadline");
    note_if(a, options.cancel_on_error, "cancel_on_error");
    note_if(a, is_to_cancel, "cancelled");
    all->limit = limit;
    all->may_cancel = is_to_cancel || is_errant || options.deadline_ns;
    CHECK_EQUAL(filch_scope_open(f, &all->scope, pool, &options), 0);
    for (unsigned i = 0; i < count; i++) {
        struct member *m = &all->members[i];
        *m = (struct member){.all = all,
                             .a = part_of(a, count + 1 - i),
                             .result = is_errant && one_in(a, 4) ? -EDOM : 0,
                             .cancels = is_to_cancel && one_in(a, 6),
                             .spawns = !limit && one_in(a, 4)};
        m->a.is_cancellable = true;
        m->a.is_shielded = false;
        name_actor(&m->a, "task", i + 1);
        note_if(&m->a, m->result, "fails");
        note_if(&m->a, m->cancels, "cancels");
        note_if(&m->a, m->spawns, "spawns");
        if (ok(f, a, filch_scope_spawn(f, &all->scope, run_member, m),
               all->may_cancel ? MAY_END : 0))
            all->spawned++;
    }
    if (is_to_cancel && one_in(a, 2))
        filch_scope_cancel(&all->scope);
    bool has_thread = is_to_cancel && one_in(a, 4);
    if (has_thread)
        helper_start(&canceller, cancel_from_thread, &all->scope);
    if (has_spawner)
        helper_start(&spawner, spawn_from_thread, all);
    actor own = part_of(a, 2);
    name_actor(&own, "owner", 0);
    act(f, &own);
    if (has_thread)
        helper_join(f, &canceller);
    if (has_spawner)
        helper_join(f, &spawner);
    int err = filch_scope_close(f, &all->scope);
    /* A task that got no memory may have cancelled the scope, and its error may come later. */
    check_end(f, a, all, &options, err);
    free(all);
}

void op_scope(filch_frame *f, actor *a)
{
    live(f, a, 0);
}

void op_limit(filch_frame *f, actor *a)
{
    live(f, a, 1 + below(a, 4));
}
