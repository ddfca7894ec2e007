/* SPDX-License-Identifier: MIT */
/* join.c with tasks that are claimed, and queue entries that are only hints: src/fork/kinds.c. */
#define SMALL_POOL_DEQUE "bwos_fifo:2:1"
#define LENGTH 3
#define LETTERS "fj"
#define IS_BOUNDED true
#include "join.c"
