/* SPDX-License-Identifier: MIT */
/*
 * Counted tasks for the tests of pools.
 */
#ifndef FILCH_TEST_POOL_SUPPORT_H
#define FILCH_TEST_POOL_SUPPORT_H

#include "child.h"
#include "pools.h"

static TEST_UNUSED void count_one(filch_frame *f TEST_UNUSED, void *arg)
{
    counter_add(arg, 1);
}

/* How long each task of a tree computes. */
#ifndef TREE_SPINS
#define TREE_SPINS 0
#endif

/* A tree of `2^(depth + 1) - 1` tasks. Each adds 1 to the counter. */
FILCH_TASK(void, tree, (counter *, c), (int, depth))
{
    counter_add(c, 1);
    spin(TREE_SPINS);
    if (depth == 0)
        return;
    FILCH_SPAWN(tree, c, depth - 1);
    FILCH_CALL(tree, c, depth - 1);
    FILCH_SYNC();
}

static TEST_UNUSED void tree_of_depth_8(filch_frame *f, void *arg)
{
    tree_body(f, f, arg, 8);
}

#define TREE_8 ((1u << 9) - 1)

#endif
