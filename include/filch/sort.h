/* SPDX-License-Identifier: MIT */
/*
 * Sorting: qsort_r with a handle in front, by all workers of the pool.
 *
 *     static int by_price(const void *a, const void *b, void *context)
 *     {
 *         const struct offer *x = a, *y = b;
 *         (void)context;
 *         return (x->price > y->price) - (x->price < y->price);
 *     }
 *
 *     filch_sort(FILCH_HERE, offers, count, sizeof *offers, by_price, NULL);        in a task
 *     filch_pool_sort(pool, offers, count, sizeof *offers, by_price, NULL);         anywhere
 *
 *                        order of equals   memory            comparisons           span
 *     filch_sort         any               none              O(n log n)            see below
 *     filch_sort_stable  kept              count * size      at most n log2 n      O(log^3 n)
 *
 * filch_sort is a quicksort that turns to heapsort when the pivots stay bad. While a part is larger than one
 * worker's share of the whole, it is partitioned by all workers together, which leaves O(n / workers) to the
 * longest chain. filch_sort_stable is a merge sort whose merges are divided among the workers too.
 * Both are fastest for elements of 4, 8 or 16 bytes, find out that an array is sorted or reversed in one
 * pass over it, and like equal elements.
 *
 * The comparison returns less than, equal to or greater than zero, is called by several workers at once, and
 * may itself fork and wait. What it is given is always an element of the array or, while sorting stably, of a
 * buffer with the array's alignment up to 64 bytes. When it contradicts itself, the array
 * ends up in some order, with every element still in it once.
 *
 * An array without elements, or with elements without bytes, is sorted. `base` needs no alignment other than
 * what the comparison relies on. Nothing may write to the array meanwhile.
 */
#ifndef FILCH_SORT_H
#define FILCH_SORT_H

#include <filch/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int filch_compare_fn(const void *a, const void *b, void *context);

/* Sort `count` elements of `size` bytes in place. For tasks: `f` is the caller's handle. Does not fail. */
FILCH_API void filch_sort(filch_slot *f, void *base, size_t count, size_t size,
                          filch_compare_fn *compare, void *context);

/*
 * The same, and elements that compare equal keep their order. Allocates a second array for the
 * time it takes; when there is no memory for that, it merges in place, which takes several times
 * as long, and does not fail either.
 */
FILCH_API void filch_sort_stable(filch_slot *f, void *base, size_t count, size_t size,
                                 filch_compare_fn *compare, void *context);

/* The two for any thread, as a task of the pool. Like FILCH_RUN they wait until it is done, and where filch_run would
 * return an error, they sort serially. */
FILCH_API void filch_pool_sort(filch_pool *pool, void *base, size_t count, size_t size,
                               filch_compare_fn *compare, void *context);
FILCH_API void filch_pool_sort_stable(filch_pool *pool, void *base, size_t count, size_t size,
                                      filch_compare_fn *compare, void *context);

#ifdef __cplusplus
}
#endif

#endif
