/* SPDX-License-Identifier: MIT */
/*
 * The serial pieces of sorting: first the inner loops, compiled once for each common element size
 * and once for all others, then the colder code.
 *
 *     insert      sort a few elements, stably
 *     partition   move the elements less than the pivot to the left
 *     merge       two sorted runs into one, stably
 *
 * Half of all comparisons in a good sort cannot be predicted. So these loops do not branch on the
 * outcome of a comparison but compute with it. Memory safety does not depend on the outcome either:
 * every address is bounded by the length of the array, and elements only change places. A
 * comparison that contradicts itself spoils the order and nothing else.
 *
 * Elements are compared in place, in the array or in the merge buffer, and moved by memcpy. So
 * nothing is assumed about alignment.
 */
#ifndef FILCH_LOOP_KERNEL_H
#define FILCH_LOOP_KERNEL_H

#include <filch/sort.h>

#include <string.h>

typedef struct order order;

typedef struct kernel {
    void (*insert)(const order *o, char *first, size_t count);

    /* Move the elements of [first, last) whose comparison with the pivot is below `limit` to the
     * front. Returns their end. Limit 0 selects the elements less than the pivot, limit 1 also the
     * equal ones. */
    char *(*partition)(const order *o, char *first, char *last, const char *pivot, int limit);

    /* Of equal elements, those of `left` come first. `to` overlaps neither run. */
    void (*merge)(const order *o, char *to, const char *left, const char *left_end,
                  const char *right, const char *right_end);
} kernel;

/* How to sort. Constant during the sort. */
struct order {
    filch_compare_fn *compare;
    void *context;
    size_t size;
    const kernel *kernel;
    size_t share; /* all workers together partition a part that is larger */
};

/* At most this many elements are sorted by insertion. Measured: quicksort is best from 20 to 32,
 * merge sort from 16 to 20. */
#define SMALL 20

#define KERNEL static inline __attribute__((always_inline))

static inline int compare(const order *o, const char *a, const char *b)
{
    return o->compare(a, b, o->context);
}

/* ---- Moving ---------------------------------------------------------------------------------- */

KERNEL void swap(char *a, char *b, size_t size)
{
    uint64_t word, other;

    for (; size >= sizeof word; size -= sizeof word, a += sizeof word, b += sizeof word) {
        memcpy(&word, a, sizeof word);
        memcpy(&other, b, sizeof word);
        memcpy(a, &other, sizeof word);
        memcpy(b, &word, sizeof word);
    }
    for (; size > 0; size--, a++, b++) {
        char byte = *a;
        *a = *b;
        *b = byte;
    }
}

/* Larger elements are moved by swaps. */
#define PIECE_BYTES 256

/* Move the element at `from` down to `to`, and the elements between them up by one. */
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

/* Returns x, but hides its value from the compiler. Otherwise the compiler turns the computation
 * with the outcome of a comparison back into a branch. */
KERNEL size_t opaque(size_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* ---- The loops ------------------------------------------------------------------------------- */

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

/* Lomuto's partition, in which every element is swapped, needed or not: cheap for small elements,
 * and without a branch. */
KERNEL char *partition_by_swaps(const order *o, char *first, char *last, const char *pivot,
                                int limit, size_t size)
{
    char x[16];

    for (char *next = first; next < last; next += size) {
        size_t is_left = opaque(compare(o, next, pivot) < limit);
        memcpy(x, next, size);
        memcpy(next, first, size);
        memcpy(first, x, size);
        first += is_left * size;
    }
    return first;
}

/*
 * Edelkamp and Weiss, "BlockQuicksort" (2016): record which elements of a block at either end are
 * on the wrong side, then swap those in pairs. Each element is compared once and moved at most
 * once.
 */
#define BLOCK ((size_t)64)

KERNEL char *partition_by_blocks(const order *o, char *first, char *last, const char *pivot,
                                 int limit, size_t size)
{
    unsigned char left[BLOCK], right[BLOCK]; /* distances from either end */
    size_t left_at = 0, left_count = 0, left_block = BLOCK;
    size_t right_at = 0, right_count = 0, right_block = BLOCK;

    for (bool is_last = false; !is_last;) {
        size_t rest = (size_t)(last - first) / size;
        is_last = rest <= 2 * BLOCK;
        if (is_last && left_count)
            right_block = rest - BLOCK;
        else if (is_last && right_count)
            left_block = rest - BLOCK;
        else if (is_last) {
            left_block = rest / 2;
            right_block = rest - left_block;
        }

        if (left_count == 0) {
            left_at = 0;
            for (size_t i = 0; i < left_block; i++) {
                left[left_count] = (unsigned char)i;
                left_count += opaque(compare(o, first + i * size, pivot) >= limit);
            }
        }
        if (right_count == 0) {
            right_at = 0;
            for (size_t i = 0; i < right_block; i++) {
                right[right_count] = (unsigned char)i;
                right_count += opaque(compare(o, last - (i + 1) * size, pivot) < limit);
            }
        }

        size_t pairs = left_count < right_count ? left_count : right_count;
        left_count -= pairs;
        right_count -= pairs;
        for (; pairs > 0; pairs--)
            swap(first + left[left_at++] * size, last - (right[right_at++] + (size_t)1) * size,
                 size);
        if (left_count == 0)
            first += left_block * size;
        if (right_count == 0)
            last -= right_block * size;
    }

    /* Elements without a partner go to the boundary, from the inside out. */
    if (left_count > 0) {
        while (left_count > 0)
            swap(first + left[left_at + --left_count] * size, last -= size, size);
        return last;
    }
    for (; right_count > 0; first += size)
        swap(first, last - (right[right_at + --right_count] + (size_t)1) * size, size);
    return first;
}

/* Merges from both ends at once: the processor overlaps comparisons that do not depend on each
 * other. */
KERNEL void merge_with(const order *o, char *to, const char *left, const char *left_end,
                       const char *right, const char *right_end, size_t size)
{
    char *to_end = to + (left_end - left) + (right_end - right);

    for (;;) {
        /* This many steps from either end cannot meet in the shorter run. */
        size_t shorter = (size_t)(left_end - left) < (size_t)(right_end - right)
                             ? (size_t)(left_end - left)
                             : (size_t)(right_end - right);
        size_t steps = shorter / size / 2;
        if (steps == 0)
            break;
        do {
            size_t is_right = opaque(compare(o, right, left) < 0);
            const char *const least[] = {left, right};
            memcpy(to, least[is_right], size);
            right += is_right * size;
            left += (1 - is_right) * size;
            to += size;

            size_t is_left = opaque(compare(o, right_end - size, left_end - size) < 0);
            const char *const greatest[] = {right_end - size, left_end - size};
            to_end -= size;
            memcpy(to_end, greatest[is_left], size);
            left_end -= is_left * size;
            right_end -= (1 - is_left) * size;
        } while (--steps);
    }
    while (left < left_end && right < right_end) {
        bool is_right = compare(o, right, left) < 0;
        memcpy(to, is_right ? right : left, size);
        *(is_right ? &right : &left) += size;
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
DEFINE_KERNEL(any, o->size, partition_by_blocks)

static inline const kernel *kernel_for(size_t size)
{
    return size == 4 ? &kernel_4 : size == 8 ? &kernel_8 : size == 16 ? &kernel_16 : &kernel_any;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* The length of the run at the start. */
static inline size_t ascending(const order *o, const char *first, size_t count)
{
    size_t i = 1;

    while (i < count && compare(o, first + i * o->size, first + (i - 1) * o->size) >= 0)
        i++;
    return i;
}

static inline size_t descending(const order *o, const char *first, size_t count)
{
    size_t i = 1;

    while (i < count && compare(o, first + i * o->size, first + (i - 1) * o->size) < 0)
        i++;
    return i;
}

static inline void reverse(const order *o, char *first, size_t count)
{
    char *last = first + count * o->size;

    for (size_t i = 0; i < count / 2; i++, first += o->size)
        swap(first, last -= o->size, o->size);
}

/* True: the array is sorted. If it was sorted in reverse order, this call has reversed it. */
static inline bool is_run(const order *o, char *first, size_t count)
{
    if (count < 2 || ascending(o, first, count) == count)
        return true;
    if (descending(o, first, count) < count)
        return false;
    reverse(o, first, count);
    return true;
}

/* ---- Heapsort -------------------------------------------------------------------------------- */

static inline void sift_down(const order *o, char *heap, size_t top, size_t count)
{
    const size_t size = o->size;

    /* The loop condition also excludes an overflow of 2 * top + 1. */
    while (top < count / 2) {
        size_t child = 2 * top + 1;
        if (child + 1 < count && compare(o, heap + child * size, heap + (child + 1) * size) < 0)
            child++;
        if (compare(o, heap + top * size, heap + child * size) >= 0)
            return;
        swap(heap + top * size, heap + child * size, size);
        top = child;
    }
}

static inline void heapsort(const order *o, char *first, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(o, first, i, count);
    for (size_t i = count; i-- > 1;) {
        swap(first, first + i * o->size, o->size);
        sift_down(o, first, 0, i);
    }
}

/* ---- Pivots ---------------------------------------------------------------------------------- */

static inline char *median_of_3(const order *o, char *a, char *b, char *c)
{
    bool a_is_less = compare(o, a, b) < 0;

    if (a_is_less != (compare(o, a, c) < 0))
        return a;
    return a_is_less == (compare(o, b, c) < 0) ? b : c;
}

/* The median of three elements, or of three medians, each found among the elements after a, b and
 * c. */
static inline char *median_of_many(const order *o, char *a, char *b, char *c, size_t count)
{
    const size_t step = count / 8 * o->size;

    if (count >= 8) {
        a = median_of_many(o, a, a + step * 4, a + step * 7, count / 8);
        b = median_of_many(o, b, b + step * 4, b + step * 7, count / 8);
        c = median_of_many(o, c, c + step * 4, c + step * 7, count / 8);
    }
    return median_of_3(o, a, b, c);
}

static inline char *choose_pivot(const order *o, char *first, size_t count)
{
    const size_t step = count / 8 * o->size;

    return median_of_many(o, first, first + step * 4, first + step * 7, count / 8);
}

/* Break the pattern that caused a bad pivot: move a few elements. */
static inline void shuffle(const order *o, char *first, size_t count)
{
    if (count < SMALL)
        return;
    for (size_t i = 0; i < 3; i++) {
        swap(first + i * o->size, first + (count / 4 + i) * o->size, o->size);
        swap(first + (count - 1 - i) * o->size, first + (count - count / 4 - 1 - i) * o->size,
             o->size);
    }
}

#endif
