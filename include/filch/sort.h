/* SPDX-License-Identifier: MIT */
/*
 * Sorting: qsort_r with a frame as first argument, done by all workers of the pool.
 *
 *     static int by_price(const void *a, const void *b, void *context)
 *     {
 *         const struct offer *x = a, *y = b;
 *         (void)context;
 *         return (x->price > y->price) - (x->price < y->price);
 *     }
 *
 *     filch_sort(FILCH_HERE, offers, count, sizeof *offers, by_price, NULL); // in a task
 *     filch_pool_sort(pool, offers, count, sizeof *offers, by_price, NULL);  // anywhere
 *
 *                        order of equals   memory         time by one worker   longest chain
 *     filch_sort         any               none           O(n log n)           O(n / workers)
 *     filch_sort_stable  kept              count * size   O(n log n)           O(log^3 n)
 *
 * filch_sort is a quicksort. If its pivots stay bad, it switches to heapsort. Up to 64 workers
 * partition one part together, if that part is larger than one worker's share. filch_sort_stable is
 * a merge sort that divides its merges, too.
 *
 * Both are fastest for elements of 4, 8 or 16 bytes. Both detect in one serial pass that an array
 * is sorted or reversed. Many equal elements do no harm.
 *
 * The comparison returns a number less than, equal to or greater than zero. Several workers call it
 * at once. Its arguments are elements of the array. In a stable sort they may be in a buffer, which
 * has the alignment of the array, up to 64 bytes. If the comparison contradicts itself, the order
 * is unspecified, but every element is still in the array once.
 *
 * An array without elements, or with elements of 0 bytes, is sorted. `base` may have any alignment
 * that the comparison accepts. No other code may use the array during the sort.
 */
#ifndef FILCH_SORT_H
#define FILCH_SORT_H

#include <filch/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int filch_compare_fn(const void *a, const void *b, void *context);

/* Sort `count` elements of `size` bytes in place. For tasks: `f` is the caller's frame. Returns
 * when the array is sorted; cannot fail. With NULL for `f`, it sorts serially on the calling
 * thread, and aborts if there is no memory for that. */
FILCH_API void filch_sort(filch_frame *f, void *base, size_t count, size_t size,
                          filch_compare_fn *compare, void *context);

/* As filch_sort, but elements that compare equal keep their order. Allocates a second array for the
 * duration of the sort. If there is no memory for it, the sort merges in place, which takes a few
 * times as long. Cannot fail. */
FILCH_API void filch_sort_stable(filch_frame *f, void *base, size_t count, size_t size,
                                 filch_compare_fn *compare, void *context);

/* The same for any thread. Like FILCH_RUN, these run a task in the pool and wait for it. Where
 * filch_run would return an error, they sort serially, and abort if there is no memory for that. */
FILCH_API void filch_pool_sort(filch_pool *pool, void *base, size_t count, size_t size,
                               filch_compare_fn *compare, void *context);
FILCH_API void filch_pool_sort_stable(filch_pool *pool, void *base, size_t count, size_t size,
                                      filch_compare_fn *compare, void *context);

#ifdef __cplusplus
}
#endif

#endif
