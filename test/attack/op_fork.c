/* SPDX-License-Identifier: MIT */
/*
 * Forks and joins: trees, spawned tasks, and the functions without macros.
 */
#include "attack.h"

#define SPAWNED_MAX 300
#define ACTORS_MAX 6

/* Count the nodes of a binary tree. Its leaves act. */
FILCH_TASK(uint64_t, grow, (actor *, a), (unsigned, height))
{
    keep();
    if (height == 0) {
        act(FILCH_HERE, a);
        return 1;
    }
    actor left = part_of(a, 2), right = part_of(a, 1);
    left.depth = right.depth = a->depth;
    promise();
    promise();
    FILCH_FORK(forked, grow, &left, height - 1);
    uint64_t count = FILCH_CALL(grow, &right, height - 1);
    return FILCH_JOIN(forked) + count + 1;
}

void op_tree(filch_frame *f, actor *a)
{
    unsigned height = sized(1 + below(a, 5));
    actor root = part_of(a, 1);

    note(a, "height", height);
    promise();
    CHECK_EQUAL(FILCH_CALL_ON(f, grow, &root, height), (2u << height) - 1);
}

/* ---- tasks without a name, and in an array --------------------------------------------------- */

FILCH_TASK(void, work, (actor *, a), (filch_atomic_u64 *, sum), (unsigned, value))
{
    keep();
    add(sum, value);
    if (a)
        act(FILCH_HERE, a);
}

/* The arguments are larger than a slot. */
FILCH_TASK(uint64_t, many, (uint64_t, a), (uint64_t, b), (uint64_t, c), (uint64_t, d),
           (uint64_t, e), (uint64_t, g), (uint64_t, h), (actor *, one))
{
    keep();
    if (one)
        act(FILCH_HERE, one);
    return a + b + c + d + e + g + h;
}

FILCH_TASK(void, spawn_all, (actor *, a))
{
    unsigned count = sized(one_in(a, 4) ? SPAWNED_MAX : 1 + below(a, 12)), expected = 0;
    actor actors[ACTORS_MAX];
    filch_atomic_u64 sum = {0};

    note(a, "tasks", count);
    for (unsigned i = 0; i < count; i++) {
        bool acts = i < ACTORS_MAX;
        if (acts)
            actors[i] = part_of(a, ACTORS_MAX - i);
        promise();
        FILCH_SPAWN(work, acts ? &actors[i] : NULL, &sum, i);
        expected += i;
    }
    FILCH_SYNC();
    CHECK_EQUAL(get(&sum), expected);
}

FILCH_TASK(void, fork_array, (actor *, a))
{
    actor actors[ACTORS_MAX];
    many_forked forked[ACTORS_MAX];

    note(a, "forks into an array", ACTORS_MAX);
    for (unsigned i = 0; i < ACTORS_MAX; i++) {
        actors[i] = part_of(a, ACTORS_MAX - i);
        promise();
        FILCH_FORK_INTO(forked[i], many, i, 2, 3, 4, 5, 6, 7, &actors[i]);
    }
    for (unsigned i = ACTORS_MAX; i-- > 0;)
        CHECK_EQUAL(FILCH_JOIN_FROM(forked[i], many), i + 27);
}

void op_spawn(filch_frame *f, actor *a)
{
    if (one_in(a, 3))
        FILCH_CALL_ON(f, fork_array, a);
    else
        FILCH_CALL_ON(f, spawn_all, a);
}

/* ---- without macros -------------------------------------------------------------------------- */

static void act_forked(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

void op_plain(filch_frame *f, actor *a)
{
    filch_frame *first = f, *second = f;
    actor actors[ACTORS_MAX];
    unsigned count = sized(1 + below(a, ACTORS_MAX - 1)), half = below(a, count + 1);

    note(a, "forks", count);
    note(a, "first joins", count - half);
    for (unsigned i = 0; i < count; i++) {
        if (i == half)
            second = f;
        actors[i] = part_of(a, ACTORS_MAX - i);
        name_actor(&actors[i], "forked", i + 1);
        promise();
        f = filch_fork(f, act_forked, &actors[i]);
    }
    name_actor(a, "itself", 0);
    act(f, a);
    if (half < count)
        f = filch_join(f, second);
    if (one_in(a, 2))
        filch_yield(f);
    CHECK(filch_join(f, first) == first);
}
