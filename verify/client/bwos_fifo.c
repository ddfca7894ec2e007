/* SPDX-License-Identifier: MIT */
/*
 * The BWoS queue, first in first out: each entry is obtained once, and a thief that asks finds one
 * (client/bwos.h).
 *
 * 2*3 means three blocks of two entries. With two blocks, the owner is back at the first after a
 * few calls. With one entry per block, every call crosses from block to block.
 */
#define DEQUE bwos_fifo
#define DEQUE_HEADER <filch/deque/bwos_fifo.h>
#include "client/bwos.h"

static const deque_promise bwos_fifo = {.pops_oldest = true, .refusal = -ENOBUFS};

/* clang-format off */
static const shape shapes[] = {
    /*    what     blocks            length  thieves */
    SHAPE(ASKING,  2, 2, "asking 2*2",  0, 0,   1, 1, .only = "pp>?tptpp"),
    SHAPE(ASKING,  1, 4, "asking 1*4",  0, 0,   1, 1, .only = "p>?ptptptpt"),
    SHAPE(ASKING,  2, 2, "asking 2*2",  3, 4,   1, 1),
    SHAPE(ASKING,  2, 2, "asking late 2*2", 0, 0, 1, 2, .before = "peps", .only = ">t?p"),
    SHAPE(STOPPED, 2, 2, "stopped 2*2", 5, 7,   1, 1),
    SHAPE(PLAIN,   1, 2, "1*2",         7, 7,   1, 1),
    SHAPE(PLAIN,   1, 2, "1*2",         4, 7,   1, 2),
    SHAPE(PLAIN,   1, 2, "1*2",         3, 7,   2, 1),
    SHAPE(PLAIN,   1, 2, "1*2",         1, 3,   2, 2),
    SHAPE(PLAIN,   1, 2, "1*2",         5, 7,   2, 2, .preemptions = 1),
    SHAPE(PLAIN,   2, 2, "2*2",         6, 7,   1, 2),
    SHAPE(PLAIN,   2, 2, "2*2",         4, 7,   2, 1),
    SHAPE(PLAIN,   2, 2, "2*2 batch",   5, 7,   1, 2, .batch = 2),
    SHAPE(PLAIN,   2, 2, "2*2 batch",   4, 7,   2, 1, .batch = 2),
    SHAPE(PLAIN,   2, 2, "2*2 stolen",  3, 5,   1, 2, .before = "pepss"),
    SHAPE(PLAIN,   1, 2, "1*2 wrap",    4, 6,   1, 2, .start = UINT64_MAX),
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_shapes(&bwos_fifo, shapes, COUNT_OF(shapes), argc, argv);
}
