/* SPDX-License-Identifier: MIT */
/*
 * Pools: nested runs, tasks submitted from anywhere, pools that come and go, plain threads.
 */
#include "attack.h"

#define BATCH_MAX 6

/* ---- run ------------------------------------------------------------------------------------- */

static void act_run(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

FILCH_TASK(uint64_t, act_and_double, (actor *, a), (uint64_t, value))
{
    keep();
    act(FILCH_HERE, a);
    return 2 * value;
}

void op_run(filch_frame *f, actor *a)
{
    filch_pool *pool = some_pool(a);
    uint64_t value = number(a);
    actor inner = part_of(a, 1);

    (void)f;
    promise();
    if (one_in(a, 2))
        CHECK_EQUAL(FILCH_RUN(pool, act_and_double, &inner, value), 2 * value);
    else
        CHECK_EQUAL(filch_run(pool, act_run, &inner), 0);
}

/* ---- submit ---------------------------------------------------------------------------------- */

/* Submitted tasks, and one who waits for them. */
typedef struct batch {
    filch_atomic_u32 left;
    filch_event done;
    actor actors[BATCH_MAX];
} batch;

typedef struct item {
    batch *b;
    unsigned index;
} item;

static void leave(batch *b)
{
    /* acq_rel: the last one comes after all others. */
    if (filch_fetch_add_acq_rel(&b->left, -1u) == 1)
        filch_event_set(&b->done);
}

static void act_submitted(filch_frame *f, void *arg)
{
    item *i = arg;

    keep();
    act(f, &i->b->actors[i->index]);
    leave(i->b);
}

FILCH_TASK(void, act_submitted_typed, (batch *, b), (unsigned, index))
{
    keep();
    act(FILCH_HERE, &b->actors[index]);
    leave(b);
}

static void wait_shielded(filch_frame *f, filch_event *event)
{
    filch_frame *shield = f ? filch_shield(f) : NULL;

    CHECK_EQUAL(filch_event_wait(f, event), 0);
    if (f)
        filch_unshield(f, shield);
}

static void submit_batch(filch_frame *f, actor *a, filch_pool *pool)
{
    unsigned count = sized(1 + below(a, BATCH_MAX));
    batch *b = calloc(1, sizeof *b);
    item items[BATCH_MAX];

    note(a, "tasks", count);
    filch_store_relaxed(&b->left, count + 1); /* relaxed: nothing is submitted yet */
    for (unsigned i = 0; i < count; i++) {
        int err;
        b->actors[i] = part_of(a, count - i);
        b->actors[i].is_cancellable = false;
        b->actors[i].is_shielded = false;
        name_actor(&b->actors[i], "submitted", i + 1);
        items[i] = (item){b, i};
        switch (below(a, 3)) {
        case 0:
            err = filch_submit(pool, act_submitted, &items[i]);
            break;
        case 1:
            err = filch_submit_copy(pool, act_submitted, &items[i], sizeof items[i]);
            break;
        default:
            err = FILCH_SUBMIT(pool, act_submitted_typed, b, i);
        }
        if (ok(NULL, a, err, 0))
            promise();
        else
            leave(b);
    }
    leave(b);
    wait_shielded(f, &b->done);
    free(b);
}

void op_submit(filch_frame *f, actor *a)
{
    submit_batch(f, a, some_pool(a));
}

/* ---- pools that come and go ------------------------------------------------------------------ */

typedef struct hooks {
    filch_atomic_u64 started, stopped;
} hooks;

static void on_start(void *context, unsigned worker_index)
{
    (void)worker_index;
    add(&((hooks *)context)->started, 1);
}

static void on_stop(void *context, unsigned worker_index)
{
    (void)worker_index;
    add(&((hooks *)context)->stopped, 1);
}

/* A task cannot wait for the end of its own pool. */
static void wait_for_itself(filch_frame *f, void *pool)
{
    (void)f;
    keep();
    CHECK_EQUAL(filch_pool_wait(pool), -EDEADLK);
    CHECK_EQUAL(filch_pool_destroy(pool), -EDEADLK);
}

void op_brief(filch_frame *f, actor *a)
{
    static const size_t capacities[] = {0, 0, 1, 2, 3, 100};
    hooks h = {0};
    filch_options options = {
        .size = sizeof options,
        .workers = 1 + below(a, 4),
        .stack_bytes = (size_t)256 << 10 << below(a, 3),
        .deque = (filch_deque_kind)below(a, FILCH_DEQUE_BWOS_FIFO + 1),
        .victim = (filch_victim_policy)below(a, FILCH_VICTIM_FIRST + 1),
        .spin = (filch_spin_policy)below(a, FILCH_SPIN_POWER + 1),
        .pin = one_in(a, 4),
        .report_overflow = one_in(a, 4),
        .on_start = on_start,
        .on_stop = on_stop,
        .hook_context = &h,
        .deque_capacity = capacities[below(a, COUNT_OF(capacities))],
    };
    filch_pool *pool;

    if (options.deque == FILCH_DEQUE_BWOS_LIFO || options.deque == FILCH_DEQUE_BWOS_FIFO) {
        options.deque_capacity = options.deque_capacity ? 8 : 0;
        options.deque_block = options.deque_capacity ? 1 + below(a, 2) : 0;
    }
    note(a, "workers", options.workers);
    note(a, "stack_bytes", options.stack_bytes);
    note(a, "deque", options.deque);
    note(a, "deque_capacity", options.deque_capacity);
    int err = filch_pool_create(&pool, &options);
    if (err == -EAGAIN && fault_is_on(PART_threads))
        return;
    if (!ok(NULL, a, err, 0))
        return;
    actor inner = part_of(a, 2);
    inner.is_inside = true;
    name_actor(&inner, "run", 0);
    promise();
    CHECK_EQUAL(filch_run(pool, act_run, &inner), 0);
    filch_scope open;
    CHECK_EQUAL(filch_scope_open(NULL, &open, pool, NULL), 0);
    CHECK_EQUAL(filch_pool_destroy(pool), -EBUSY);
    CHECK_EQUAL(filch_scope_close(NULL, &open), 0);
    promise();
    CHECK_EQUAL(filch_run(pool, wait_for_itself, pool), 0);
    inner = part_of(a, 1);
    inner.is_inside = true;
    submit_batch(f, &inner, pool);
    CHECK_EQUAL(filch_pool_destroy(pool), 0);
    CHECK_EQUAL(get(&h.started), get(&h.stopped));
}

/* ---- reports --------------------------------------------------------------------------------- */

/* From any thread, while the pool works. */
void op_look(filch_frame *f, actor *a)
{
    filch_pool *pool = some_pool(a);
    filch_counters sum = {.size = sizeof sum}, one = {.size = sizeof one};
    unsigned worker_count = filch_pool_worker_count(pool);
    const char *way = filch_pool_io(pool);

    (void)f;
    CHECK(way || the_world.may_lack_memory);
    CHECK_EQUAL(filch_pool_counters(pool, &sum), 0);
    CHECK_EQUAL(filch_worker_counters(pool, worker_count - 1, &one), 0);
    CHECK_EQUAL(filch_worker_counters(pool, worker_count, &one), -EINVAL);
    FILE *out = fopen("/dev/null", "w");
    if (!out)
        return;
    CHECK_EQUAL(filch_pool_dump(pool, out), 0);
    fclose(out);
}

/* ---- plain threads --------------------------------------------------------------------------- */

static void act_plain(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

void op_thread(filch_frame *f, actor *a)
{
    helper helpers[3];
    actor actors[COUNT_OF(helpers)];
    unsigned count = sized(1 + below(a, COUNT_OF(helpers)));

    note(a, "threads", count);
    for (unsigned i = 0; i < count; i++) {
        actors[i] = part_of(a, count - i);
        name_actor(&actors[i], "thread", i + 1);
        actors[i].is_cancellable = false;
        actors[i].is_shielded = false;
        promise();
        helper_start(&helpers[i], act_plain, &actors[i]);
    }
    for (unsigned i = 0; i < count; i++)
        helper_join(f, &helpers[i]);
}
