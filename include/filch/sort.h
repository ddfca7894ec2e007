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
 *                        order of equals   memory         time by one worker   longest chain
 *     filch_sort         any               none           O(n log n)           O(n / workers)
 *     filch_sort_stable  kept              count * size   O(n log n)           O(log^3 n)
 *
 * filch_sort is a quicksort that turns to heapsort when the pivots stay bad. Parts larger than one
 * worker's share are partitioned by up to 64 workers together. filch_sort_stable is a merge sort
 * whose merges are divided as well. Both are fastest for elements of 4, 8 or 16 bytes, and find out
 * in one serial pass that an array is sorted or reversed. Equal elements are welcome.
 *
 * The comparison returns less than, equal to or greater than zero, and is called by several workers
 * at once. It is given elements of the array or, in a stable sort, of a buffer that is aligned like
 * the array, up to 64 bytes. When it contradicts itself, the array ends up in some order, with
 * every element still in it once.
 *
 * An array without elements, or of elements without bytes, is sorted. `base` may have any alignment
 * that the comparison can live with. Nothing else may use the array meanwhile.
 */
#ifndef FILCH_SORT_H
#define FILCH_SORT_H

#include <filch/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int filch_compare_fn(const void *a, const void *b, void *context);

/* Sort `count` elements of `size` bytes in place. For tasks: `f` is the caller's handle. Returns
 * when the array is sorted; it does not fail. */
FILCH_API void filch_sort(filch_frame *f, void *base, size_t count, size_t size,
                          filch_compare_fn *compare, void *context);

/* The same, and elements that compare equal keep their order. Allocates a second array meanwhile.
 * Without memory for that it merges in place, which takes a few times as long: it does not fail. */
FILCH_API void filch_sort_stable(filch_frame *f, void *base, size_t count, size_t size,
                                 filch_compare_fn *compare, void *context);

/* The two for any thread: like FILCH_RUN they run a task in the pool and wait for it, and where
 * filch_run would return an error, they sort serially. */
FILCH_API void filch_pool_sort(filch_pool *pool, void *base, size_t count, size_t size,
                               filch_compare_fn *compare, void *context);
FILCH_API void filch_pool_sort_stable(filch_pool *pool, void *base, size_t count, size_t size,
                                      filch_compare_fn *compare, void *context);

#ifdef __cplusplus
}
#endif

#endif
