/* SPDX-License-Identifier: MIT */
/* join.c with one queue for all strands: guests take foreign tasks from it, and put them back
 * (filch_strand_put_back in src/strand/strand.c). */
#include "mutex.h" /* before the deque */

#include "deque/kind.c"
#include "fork/kinds.c"

#define SMALL_POOL_DEQUE "global"
#define LENGTH 3
#define LETTERS "fj"
#define IS_BOUNDED true
#define HAS_GUESTS true
#include "join.c"
