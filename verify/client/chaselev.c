/* SPDX-License-Identifier: MIT */
/*
 * The Chase-Lev deque: each entry is obtained once, and EMPTY is true (client/deque.h).
 *
 * It begins with a capacity of 2 or 1, so it grows and shrinks in most scripts and reuses its
 * arrays.
 */
#define DEQUE chaselev
#define DEQUE_HEADER <filch/deque/chaselev.h>
#include "client/deque.h"

static const deque_promise chaselev = {.steals_oldest = true, .refusal = -ENOMEM};

#define SIGNED_END ((uint64_t)INT64_MAX - 1)
#define UNSIGNED_END (UINT64_MAX - 1)

/* The array of 16 exists. That of 8 is in use and full of stolen entries, all but one: the next
 * push goes on with that of 4. */
#define ROUND                                                                                      \
    "ppppppppp"                                                                                    \
    "ttttttttt"                                                                                    \
    "t"                                                                                            \
    "ppppppp"                                                                                      \
    "ssssss"

/* clang-format off */
static const family families[] = {
    /*             length  thieves */
    {"",            6, 9,   1, 1, .capacity = 2},
    {"",            6, 8,   1, 2, .capacity = 2},
    {"",            4, 6,   1, 3, .capacity = 2},
    {"",            6, 7,   2, 1, .capacity = 2},
    {"",            3, 6,   2, 2, .capacity = 2},
    {"",            5, 6,   2, 2, .capacity = 2, .preemptions = 1},
    {"shrinks",     8, 9,   1, 1, .capacity = 1},
    {"shrinks",     6, 7,   1, 2, .capacity = 1},
    {"shrinks",     5, 6,   2, 1, .capacity = 1},
    {"goes round",  3, 6,   1, 2, .capacity = 1, .before = ROUND},
    {"goes round",  3, 5,   2, 1, .capacity = 1, .before = ROUND},
    {"no memory",   5, 7,   1, 2, .capacity = 1, .faults = 1},
    {"empty",       5, 6,   1, 2, .capacity = 2, .is_announced = true},
    {"empty",       4, 5,   2, 1, .capacity = 2, .is_announced = true},
    {"signed end",  5, 7,   1, 2, .capacity = 2, .start = SIGNED_END},
    {"wrap",        6, 7,   1, 2, .capacity = 2, .start = UNSIGNED_END},
    {"wrap",        4, 6,   2, 1, .capacity = 2, .start = UNSIGNED_END},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_deque(&chaselev, families, COUNT_OF(families), argc, argv);
}
