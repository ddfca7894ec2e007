/* SPDX-License-Identifier: MIT */
/*
 * Futures: of scopes, of pools, set by threads; waited for with deadlines, by several, or by none.
 */
#include "attack.h"

#define FUTURES_MAX 8

typedef struct answer {
    filch_future future;
    actor a;
    filch_atomic_u64 times;
    bool is_started;
    int err;
} answer;

static int compute(filch_frame *f, void *arg, void **value)
{
    answer *one = arg;

    add(&one->times, 1);
    act(f, &one->a);
    if (one->err)
        return one->err;
    *value = one;
    return 0;
}

/* The result of a complete future: as its task said, or the task did not run. */
static void check_answer(answer *one, bool may_end)
{
    void *value = NULL;
    int err = filch_future_try_get(&one->future, &value);

    if (err == 0) {
        CHECK(value == one);
        CHECK_EQUAL(one->err, 0);
        CHECK_EQUAL(get(&one->times), 1);
    } else if (err == -EDOM) {
        CHECK_EQUAL(one->err, -EDOM);
        CHECK_EQUAL(get(&one->times), 1);
    } else {
        CHECK((err == -ECANCELED && may_end) || (err == -ENOMEM && the_world.may_lack_memory));
        CHECK_EQUAL(get(&one->times), 0);
    }
}

static void ask(filch_frame *f, actor *a, answer *one)
{
    void *value;
    int err;

    switch (below(a, 4)) {
    case 0:
        return;
    case 1:
        err = filch_future_try_get(&one->future, &value);
        CHECK(err == -EAGAIN || err == 0 || err == one->err || err == -ECANCELED || err == -ENOMEM);
        return;
    case 2:
        err = filch_future_get_until(f, &one->future, &value, some_deadline(a));
        break;
    default:
        err = filch_future_get(f, &one->future, &value);
    }
    /* -ECANCELED and -ENOMEM may be errors of the future, or of this wait. */
    CHECK(err == 0 || err == one->err || err == -ECANCELED || err == -ETIMEDOUT ||
          (err == -ENOMEM && the_world.may_lack_memory));
    CHECK(err != 0 || value == one);
}

void op_future(filch_frame *f, actor *a)
{
    unsigned count = sized(1 + below(a, FUTURES_MAX));
    bool is_to_cancel = one_in(a, 4), may_end = is_to_cancel || (f && a->is_cancellable);
    answer *answers = calloc(count, sizeof *answers);
    filch_scope scope;

    if (!f && a->is_inside) {
        free(answers);
        return;
    }
    note(a, "futures", count);
    note_if(a, is_to_cancel, "cancelled");
    CHECK_EQUAL(filch_scope_open(f, &scope, f ? NULL : some_pool(a), NULL), 0);
    for (unsigned i = 0; i < count; i++) {
        answer *one = &answers[i];
        one->a = part_of(a, count + 1 - i);
        one->a.is_cancellable = true;
        one->a.is_shielded = false;
        one->err = one_in(a, 4) ? -EDOM : 0;
        name_actor(&one->a, "future", i + 1);
        note_if(&one->a, one->err, "fails");
        one->is_started = ok(f, a, filch_future_spawn(f, &scope, &one->future, compute, one),
                             may_end ? MAY_END : 0);
        if (is_to_cancel && one_in(a, count))
            filch_scope_cancel(&scope);
    }
    for (unsigned i = 0; i < count; i++)
        if (answers[i].is_started)
            ask(f, a, &answers[i]);
    int err = filch_scope_close(f, &scope);
    CHECK(err == 0 || (err == -ECANCELED && may_end) ||
          (err == -ENOMEM && the_world.may_lack_memory));
    for (unsigned i = 0; i < count; i++)
        if (answers[i].is_started)
            check_answer(&answers[i], may_end || err);
    free(answers);
}

/* ---- without a scope ------------------------------------------------------------------------- */

FILCH_TASK(uint64_t, triple, (actor *, a), (uint64_t, value))
{
    keep();
    act(FILCH_HERE, a);
    return 3 * value;
}

/* Wait until the future is complete, and its memory free. */
static int get_surely(filch_frame *f, filch_future *future)
{
    filch_frame *shield = f ? filch_shield(f) : NULL;
    int err = filch_future_get(f, future, NULL);

    if (f)
        filch_unshield(f, shield);
    return err;
}

static void submit_typed(filch_frame *f, actor *a)
{
    triple_future tripled;
    actor inner = part_of(a, 1);
    uint64_t value = number(a);

    inner.is_cancellable = inner.is_shielded = false;
    if (!ok(NULL, a, FILCH_FUTURE_SUBMIT(some_pool(a), &tripled, triple, &inner, value), 0))
        return;
    int err = get_surely(f, &tripled.future);
    if (!ok(NULL, a, err, 0))
        return;
    promise();
    CHECK_EQUAL(tripled.result, 3 * value);
}

static void set_from_thread(filch_frame *f, void *arg)
{
    answer *one = arg;

    (void)f;
    add(&one->times, filch_future_set(&one->future, one, 0));
}

/* Two threads, and this task, set the same future: one of them does. */
static void set_thrice(filch_frame *f, actor *a)
{
    answer one = {.a = *a};
    helper helpers[2];
    void *value;

    for (unsigned i = 0; i < COUNT_OF(helpers); i++)
        helper_start(&helpers[i], set_from_thread, &one);
    if (one_in(a, 2))
        set_from_thread(f, &one);
    CHECK_EQUAL(get_surely(f, &one.future), 0);
    for (unsigned i = 0; i < COUNT_OF(helpers); i++)
        helper_join(f, &helpers[i]);
    CHECK_EQUAL(filch_future_try_get(&one.future, &value), 0);
    CHECK(value == &one);
    CHECK_EQUAL(get(&one.times), 1);
}

void op_promise(filch_frame *f, actor *a)
{
    bool is_by_threads = a->is_inside || one_in(a, 2);

    note_if(a, is_by_threads, "set by two threads");
    if (is_by_threads)
        set_thrice(f, a);
    else
        submit_typed(f, a);
}

/* ---- the first of several -------------------------------------------------------------------- */

void op_any(filch_frame *f, actor *a)
{
    unsigned count = sized(1 + below(a, FUTURES_MAX)), started = 0;
    answer *answers = calloc(count, sizeof *answers);
    filch_future *futures[FUTURES_MAX];

    note(a, "futures", count);
    for (unsigned i = 0; i < count && !a->is_inside; i++) {
        answer *one = &answers[started];
        one->a = part_of(a, count - i);
        one->a.is_cancellable = one->a.is_shielded = false;
        name_actor(&one->a, "future", i + 1);
        if (ok(NULL, a, filch_future_submit(some_pool(a), &one->future, compute, one), 0))
            futures[started++] = &one->future;
    }
    if (started > 0) {
        int at = filch_future_wait_any(f, futures, started,
                                       one_in(a, 2) ? some_deadline(a) : FILCH_NO_DEADLINE);
        if (ok(f, a, at, MAY_TIME_OUT)) {
            CHECK(at < (int)started);
            check_answer(&answers[at], false);
        }
    }
    for (unsigned i = 0; i < started; i++) {
        get_surely(f, futures[i]);
        check_answer(&answers[i], false);
    }
    free(answers);
}
