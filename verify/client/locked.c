/* SPDX-License-Identifier: MIT */
/*
 * The locked deque: each entry is obtained once, and EMPTY is true (client/deque.h).
 */
#include "client/mutex.h"

#define DEQUE locked
#define DEQUE_HEADER <filch/deque/locked.h>
#define DEQUE_HAS_BATCH
#include "client/deque.h"

static const deque_promise locked = {.steals_oldest = true, .refusal = -ENOMEM};

/* clang-format off */
static const family families[] = {
    /*             length  thieves */
    {"",            6, 9,   1, 1, .capacity = 2},
    {"",            6, 8,   1, 2, .capacity = 2},
    {"",            6, 7,   2, 1, .capacity = 2},
    {"",            5, 6,   2, 2, .capacity = 2},
    {"",            6, 6,   2, 2, .capacity = 2, .preemptions = 2},
    {"batch",       6, 8,   1, 2, .capacity = 2, .batch = 3, .before = "pp"},
    {"batch",       6, 7,   2, 1, .capacity = 2, .batch = 3, .before = "pp"},
    {"no memory",   6, 7,   1, 2, .capacity = 1, .faults = 1},
    {"empty",       5, 6,   1, 2, .capacity = 2, .is_announced = true},
    {"empty",       4, 5,   2, 1, .capacity = 2, .is_announced = true},
    {"wrap",        6, 7,   1, 2, .capacity = 2, .start = UINT64_MAX},
    {"wrap",        4, 6,   2, 1, .capacity = 2, .start = UINT64_MAX, .batch = 2},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_deque(&locked, families, COUNT_OF(families), argc, argv);
}
