/* SPDX-License-Identifier: MIT */
/* wanted.c with tasks that are pushed to a deque and popped from it: src/fork/kinds.c. */
#define SMALL_POOL_DEQUE "chaselev:2"
#define LENGTH 1
#include "wanted.c"
