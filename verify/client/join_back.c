/* SPDX-License-Identifier: MIT */
/* join.c, with one queue for all strands, of which guests take what is not their business: filch_strand_put_back in src/strand/strand.c. */
#include "mutex.h" /* before the deque */

#include "deque/kind.c"
#include "fork/kinds.c"

#define SMALL_POOL_DEQUE "global"
#define LENGTH 3
#define LETTERS "fj"
#define IS_BOUNDED true
#define HAS_GUESTS true
#include "join.c"
