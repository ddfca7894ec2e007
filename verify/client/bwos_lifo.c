/* SPDX-License-Identifier: MIT */
/*
 * The BWoS deque, last in first out: each entry is obtained once, and a thief that asks finds one
 * (client/bwos.h).
 *
 * 2*3 means three blocks of two entries. With two blocks, the owner is back at the first after a
 * few calls. With one entry per block, every call crosses from block to block.
 *
 * A request changes what the owner does, in many ways. Silent thieves make no request, so two of
 * them can have longer scripts. Some states that they begin in have a request from before.
 */
#define DEQUE bwos_lifo
#define DEQUE_HEADER <filch/deque/bwos_lifo.h>
#include "client/bwos.h"

static const deque_promise bwos_lifo = {.steals_oldest = true, .refusal = -ENOBUFS};

/* ---- states ---------------------------------------------------------------------------------- */

static uint64_t lowest; /* position of the owner */
static bool is_begun;

/* relaxed: one thread, here and below. */
static void note_position(void)
{
    uint64_t position = filch_load_relaxed(&deque.position);

    if (!is_begun || filch_bwos_is_after(lowest, position))
        lowest = position;
    is_begun = true;
}

/* All blocks from the first that is not past, up to the owner's, are granted as a whole. */
static bool is_block_granted(void)
{
    uint64_t at = filch_load_relaxed(&deque.top);

    for (; filch_bwos_is_after(lowest, at); at = filch_bwos_next(&deque.ring, at))
        if (filch_bwos_left(filch_bwos_block_at(&deque.ring, at), deque.ring.size) > 0)
            return true;
    return false;
}

static void describe(void)
{
    uint64_t position = filch_load_relaxed(&deque.position), at = position;
    filch_deque_slot *slots = filch_bwos_slots(deque.block),
                     *limit = filch_load_relaxed(&deque.limit);

    note(distance_from(position, filch_load_relaxed(&deque.top)));
    note(deque.base - slots);
    note(filch_load_relaxed(&deque.tail) - slots);
    note(deque.is_sharing);
    note(limit == FILCH_BWOS_ASKED);
    for (uint64_t i = 0; i < deque.ring.count; i++, at = filch_bwos_next(&deque.ring, at))
        note_block(at);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* clang-format off */
static const shape shapes[] = {
    /*    what     blocks            length  thieves */
    SHAPE(ASKING,  1, 2, "asking late 1*2", 0, 0, 1, 2, .before = "ppt", .only = ">t?p"),
    SHAPE(ASKING,  2, 2, "asking late 2*2", 0, 0, 1, 2, .before = "ppets", .only = ">t?p"),
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
    SHAPE(STATES,  1, 2, "1*2 states",  1, 2,   2, 1),
    SHAPE(STATES,  1, 2, "1*2 states silent", 2, 3, 2, 1, .is_silent = true),
    SHAPE(STATES,  2, 2, "2*2 states silent", 2, 3, 2, 1, .is_silent = true),
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_shapes(&bwos_lifo, shapes, COUNT_OF(shapes), argc, argv);
}
