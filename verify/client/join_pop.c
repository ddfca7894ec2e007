/* SPDX-License-Identifier: MIT */
/* join.c with tasks that are pushed to a deque and popped from it: src/fork/kinds.c. */
#define SMALL_POOL_DEQUE "chaselev:1"
#define LENGTH 2
#define LETTERS "fFj"
#define IS_BOUNDED false
#include "join.c"
