/* SPDX-License-Identifier: MIT */
/*
 * The BWoS deque, last in first out: each entry is obtained once, and a thief that asks finds one
 * (client/bwos.h).
 *
 * 2*3 means three blocks of two entries. With two blocks, the owner is back at the first after a
 * few calls. With one entry per block, every call crosses from block to block.
 */
#define DEQUE bwos_lifo
#define DEQUE_HEADER <filch/deque/bwos_lifo.h>
#include "client/bwos.h"

static const deque_promise bwos_lifo = {.steals_oldest = true, .refusal = -ENOBUFS};

/* clang-format off */
static const shape shapes[] = {
    /*    what     blocks            length  thieves */
    SHAPE(PLAIN,   1, 2, "1*2",         7, 8,   1, 1),
    SHAPE(PLAIN,   1, 2, "1*2",         7, 8,   1, 2),
    SHAPE(PLAIN,   1, 2, "1*2",         7, 7,   2, 1),
    SHAPE(PLAIN,   1, 2, "1*2",         1, 4,   2, 2),
    SHAPE(PLAIN,   1, 2, "1*2",         5, 7,   2, 2, .preemptions = 1),
    SHAPE(PLAIN,   2, 2, "2*2",         7, 8,   1, 2),
    SHAPE(PLAIN,   2, 2, "2*2",         7, 7,   2, 1),
    SHAPE(PLAIN,   2, 2, "2*2 batch",   7, 8,   1, 2, .batch = 2),
    SHAPE(PLAIN,   2, 2, "2*2 batch",   7, 7,   2, 1, .batch = 2),
    SHAPE(PLAIN,   1, 2, "1*2 wrap",    6, 7,   1, 2, .start = UINT64_MAX),
    SHAPE(PLAIN,   2, 2, "2*2 stolen",  4, 6,   1, 2, .before = "pepss"),
    SHAPE(STOPPED, 2, 2, "stopped 2*2", 6, 7,   1, 1),
    SHAPE(ASKING,  2, 2, "asking 2*2",  3, 5,   1, 1),
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_shapes(&bwos_lifo, shapes, COUNT_OF(shapes), argc, argv);
}
