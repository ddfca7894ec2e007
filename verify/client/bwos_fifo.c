/* SPDX-License-Identifier: MIT */
/*
 * The BWoS queue, first in first out: each entry is obtained once, and a thief that asks finds one
 * (client/bwos.h).
 *
 * 2*3 means three blocks of two entries. With two blocks, the owner is back at the first after a
 * few calls. With one entry per block, every call crosses from block to block.
 *
 * A request changes what the owner does, in many ways. Silent thieves make no request, so two of
 * them can have longer scripts. Some states that they begin in have a request from before.
 */
#define DEQUE bwos_fifo
#define DEQUE_HEADER <filch/deque/bwos_fifo.h>
#include "client/bwos.h"

static const deque_promise bwos_fifo = {.pops_oldest = true, .refusal = -ENOBUFS};

/* ---- states ---------------------------------------------------------------------------------- */

static uint64_t put_before, get_after; /* owner */
static bool is_begun;

/* relaxed: one thread, here and below. */
static void note_position(void)
{
    if (!is_begun)
        put_before = filch_load_relaxed(&deque.put);
    is_begun = true;
    get_after = filch_load_relaxed(&deque.get);
}

/* All blocks between the owner's two are granted as a whole. */
static bool is_block_granted(void)
{
    uint64_t at = filch_bwos_next(&deque.ring, get_after);

    for (; filch_bwos_is_after(put_before, at); at = filch_bwos_next(&deque.ring, at))
        if (filch_bwos_left(filch_bwos_block_at(&deque.ring, at), deque.ring.size) > 0)
            return true;
    return false;
}

static void describe(void)
{
    uint64_t get = filch_load_relaxed(&deque.get), put = filch_load_relaxed(&deque.put), at = get;
    uint64_t top = filch_load_relaxed(&deque.top);
    filch_bwos_cursor *limit = filch_load_relaxed(&deque.limit);

    note(distance_from(get, put));
    note(filch_load_relaxed(&deque.front) - filch_bwos_slots(deque.get_block));
    note(filch_load_relaxed(&deque.tail) - filch_bwos_slots(deque.put_block));
    note(deque.rest);
    note(deque.is_sharing);
    note(limit == &deque.asked ? 2 : limit == &deque.tail);
    /* Thieves look behind get only. */
    note(filch_bwos_is_after(top, get) ? distance_from(get, top) : 0);
    note(filch_load_relaxed(&deque.past) == get);
    for (uint64_t i = 0; i < deque.ring.count; i++, at = filch_bwos_next(&deque.ring, at))
        note_block(at);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* clang-format off */
static const shape shapes[] = {
    /*    what     blocks            length  thieves */
    SHAPE(ASKING,  2, 2, "asking 2*2",  0, 0,   1, 1, .only = "pp>?tptpp"),
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
    SHAPE(PLAIN,   1, 2, "1*2 silent",  4, 5,   2, 1, .is_silent = true),
    SHAPE(PLAIN,   2, 2, "2*2 silent",  7, 8,   2, 1, .is_silent = true),
    SHAPE(STATES,  1, 2, "1*2 states silent", 1, 2, 2, 1, .is_silent = true),
    SHAPE(STATES,  1, 2, "1*2 states",  2, 3,   1, 1),
    SHAPE(STATES,  2, 2, "2*2 states silent", 1, 2, 1, 2, .is_silent = true),
    SHAPE(STATES,  1, 4, "1*4 states silent", 2, 3, 1, 1, .is_silent = true),
    SHAPE(ASKING,  1, 4, "asking 1*4",  0, 0,   1, 1, .only = "p>?ptptptpt"),
};
/* clang-format on */

int main(int argc, char **argv)
{
    return check_shapes(&bwos_fifo, shapes, COUNT_OF(shapes), argc, argv);
}
