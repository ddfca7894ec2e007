/* SPDX-License-Identifier: MIT */
/*
 * The ABP deque: each entry that is pushed is obtained once, and EMPTY is true (client/deque.h).
 *
 * With a capacity of 1 or 2, the deque restarts with a new tag in most scripts. One thread prepares
 * the states that are full, or that thieves have emptied.
 */
#define DEQUE abp
#define DEQUE_HEADER <filch/deque/abp.h>
#include "client/deque.h"

static const deque_promise abp = {.steals_oldest = true, .refusal = -ENOBUFS};

/* clang-format off */
static const family families[] = {
    /*             length  thieves */
    {"",            6, 9,   1, 1, .capacity = 2},
    {"",            6, 8,   1, 2, .capacity = 2},
    {"",            6, 7,   2, 1, .capacity = 2},
    {"",            4, 6,   2, 2, .capacity = 2},
    {"",            6, 6,   2, 2, .capacity = 2, .preemptions = 1},
    {"one slot",    6, 8,   1, 2, .capacity = 1},
    {"one slot",    6, 7,   2, 1, .capacity = 1},
    {"three slots", 6, 8,   1, 2, .capacity = 3},
    {"three slots", 6, 7,   2, 1, .capacity = 3},
    {"stolen",      6, 8,   1, 2, .capacity = 3, .before = "pps"},
    {"stolen",      6, 7,   2, 1, .capacity = 3, .before = "ppss"},
    {"empty",       5, 6,   1, 2, .capacity = 2, .is_announced = true},
    {"empty",       4, 5,   2, 1, .capacity = 2, .is_announced = true},
    {"wrap",        6, 7,   1, 2, .capacity = 2, .start = UINT64_MAX},
    {"wrap",        4, 6,   2, 1, .capacity = 2, .start = UINT64_MAX},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_deque(&abp, families, COUNT_OF(families), argc, argv);
}
