/* SPDX-License-Identifier: MIT */
/* The queues: those of baseline.h, then the kinds of filch/deque.h. */
#include "race.h"

#include <filch/deque.h>

/* Title of each kind, and whether the queue grows instead of being full. */
/* clang-format off */
#define ABOUT_locked    "one mutex", .is_growing = true
#define ABOUT_global    "one mutex, first in first out", .is_growing = true
#define ABOUT_abp       "Arora, Blumofe, Plaxton"
#define ABOUT_chaselev  "Chase, Lev", .is_growing = true
#define ABOUT_bwos_lifo "blocks, last in first out"
#define ABOUT_bwos_fifo "blocks, first in first out"
/* clang-format on */

#define DECLARE(q) extern const bench_loops loops_##q##_4, loops_##q##_8;
#define LOOPS(q) .loops = {&loops_##q##_4, &loops_##q##_8}
#define KIND(q) {.name = #q, LOOPS(q), .title = ABOUT_##q},

DECLARE(stack)
DECLARE(ring)
DECLARE(list)
FILCH_DEQUES(DECLARE)
#ifdef BENCH_LOSSY
DECLARE(lossy)
#endif

const bench_queue queues[] = {
    {.name = "stack", LOOPS(stack), .title = "an array, one thread"},
    {.name = "ring", LOOPS(ring), .title = "an array, first in first out, one thread"},
    {.name = "list", LOOPS(list), .title = "a mutex and a linked list", .is_growing = true},
#ifdef BENCH_LOSSY
    {.name = "lossy", LOOPS(lossy), .title = "loses an entry now and then, for the test"},
#endif
    FILCH_DEQUES(KIND)};
const int queue_count = sizeof queues / sizeof queues[0];

const char *queue_name(int index)
{
    return index < queue_count ? queues[index].name : NULL;
}
