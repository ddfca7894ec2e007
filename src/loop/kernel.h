/* SPDX-License-Identifier: MIT */
/*
 * The inner loops of sorting, compiled once for each common size of elements and once for all others.
 *
 *     insert      sort a few elements, stably
 *     partition   those before the pivot to the left
 *     merge       two sorted runs into one, stably
 *
 * Half of all comparisons of a good sort cannot be foreseen, so where elements are cheap to move, these loops do
 * not branch on the outcome but compute with it. None relies on it either: every index is bounded
 * by the length of the array, and every step moves elements without losing one. So a comparison
 * that contradicts itself can spoil the order and nothing else.
 *
 * Elements are compared where they lie in the array or in the merge buffer, and are moved by memcpy: there is
 * no assumption about alignment.
 */
#ifndef FILCH_LOOP_KERNEL_H
#define FILCH_LOOP_KERNEL_H

#include <filch/sort.h>

#include <string.h>

typedef struct order order;

typedef struct kernel {
    void (*insert)(const order *o, char *first, size_t count);

    /* Bring the elements of [first, last) that compare with `pivot` as less than `limit` to the front, and
     * return the first of the others. Limit 0: those less than the pivot; 1: those equal as well. */
    char *(*partition)(const order *o, char *first, char *last, const char *pivot, int limit);

    /* Of equal elements those of `left` come first. `to` overlaps neither. */
    void (*merge)(const order *o, char *to, const char *left, const char *left_end,
                  const char *right, const char *right_end);
} kernel;

/* How to sort: constant while the sort runs. */
struct order {
    filch_compare_fn *compare;
    void *context;
    size_t size;
    const kernel *kernel;
    size_t share; /* parts that are larger are partitioned by all workers together */
};

#define KERNEL static inline __attribute__((always_inline))

static inline int compare(const order *o, const char *a, const char *b)
{
    return o->compare(a, b, o->context);
}

/* ---- Moving ------------------------------------------------------------------------------------ */

/* An element of any size is moved in pieces that fit here. */
#define PIECE_BYTES 256

KERNEL size_t piece_of(size_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

KERNEL void swap(char *a, char *b, size_t size)
{
    char piece[PIECE_BYTES];

    if (a == b)
        return;
    for (size_t at = 0, bytes; at < size; at += bytes) {
        bytes = piece_of(size - at);
        memcpy(piece, a + at, bytes);
        memcpy(a + at, b + at, bytes);
        memcpy(b + at, piece, bytes);
    }
}

/* Move the element at `from` to `to`, which lies before it, and those between up by one. */
KERNEL void move_down(char *from, char *to, size_t size)
{
    char piece[PIECE_BYTES];

    if (size <= PIECE_BYTES) {
        memcpy(piece, from, size);
        memmove(to + size, to, (size_t)(from - to));
        memcpy(to, piece, size);
        return;
    }
    for (char *at = from; at > to; at -= size)
        swap(at, at - size, size);
}

/* ---- The loops --------------------------------------------------------------------------------- */

KERNEL void insert_with(const order *o, char *first, size_t count, size_t size)
{
    char *last = first + count * size;

    for (char *next = first + size; next < last; next += size) {
        char *to = next;
        while (to > first && compare(o, next, to - size) < 0)
            to -= size;
        if (to != next)
            move_down(next, to, size);
    }
}

/* Lomuto's, with every element swapped whether it has to be or not: cheap elements, no branch. */
KERNEL char *partition_by_swaps(const order *o, char *first, char *last, const char *pivot,
                                int limit, size_t size)
{
    char x[16];

    for (char *next = first; next < last; next += size) {
        size_t is_left = compare(o, next, pivot) < limit;
        memcpy(x, next, size);
        memcpy(next, first, size);
        memcpy(first, x, size);
        first += is_left * size;
    }
    return first;
}

/* Hoare's, with the fewest moves. */
KERNEL char *partition_by_search(const order *o, char *first, char *last, const char *pivot,
                                 int limit, size_t size)
{
    for (;;) {
        while (first < last && compare(o, first, pivot) < limit)
            first += size;
        do {
            if (first >= last)
                return first;
            last -= size;
        } while (compare(o, last, pivot) >= limit);
        if (first >= last)
            return first;
        swap(first, last, size);
        first += size;
    }
}

KERNEL void merge_with(const order *o, char *to, const char *left, const char *left_end,
                       const char *right, const char *right_end, size_t size)
{
    while (left < left_end && right < right_end) {
        size_t is_right = compare(o, right, left) < 0;
        memcpy(to, is_right ? right : left, size);
        right += is_right * size;
        left += (1 - is_right) * size;
        to += size;
    }
    memcpy(to, left, (size_t)(left_end - left));
    memcpy(to + (left_end - left), right, (size_t)(right_end - right));
}

#define DEFINE_KERNEL(name, bytes, partition_with)                                                 \
    static void insert_##name(const order *o, char *first, size_t count)                           \
    {                                                                                              \
        insert_with(o, first, count, bytes);                                                       \
    }                                                                                              \
    static char *partition_##name(const order *o, char *first, char *last, const char *pivot,      \
                                  int limit)                                                       \
    {                                                                                              \
        return partition_with(o, first, last, pivot, limit, bytes);                                \
    }                                                                                              \
    static void merge_##name(const order *o, char *to, const char *left, const char *left_end,     \
                             const char *right, const char *right_end)                             \
    {                                                                                              \
        merge_with(o, to, left, left_end, right, right_end, bytes);                                \
    }                                                                                              \
    static const kernel kernel_##name = {insert_##name, partition_##name, merge_##name};

DEFINE_KERNEL(4, 4, partition_by_swaps)
DEFINE_KERNEL(8, 8, partition_by_swaps)
DEFINE_KERNEL(16, 16, partition_by_swaps)
DEFINE_KERNEL(any, o->size, partition_by_search)

static inline const kernel *kernel_for(size_t size)
{
    return size == 4 ? &kernel_4 : size == 8 ? &kernel_8 : size == 16 ? &kernel_16 : &kernel_any;
}

#endif
