/* SPDX-License-Identifier: MIT */
/*
 * filch_sort and filch_sort_stable: which parts of an array to sort, and which of them to fork. The
 * inner loops are in kernel.h.
 *
 * Quicksort follows Peters, "Pattern-defeating quicksort" (2021):
 *   - If the pivot of a part equals the element before the part, nothing in the part is less. One
 *     pass then places all elements that are equal to the pivot.
 *   - A partition with nothing to move suggests a sorted part.
 *   - After a lopsided partition, a few elements are shuffled. After log2(n) lopsided ones,
 *     heapsort takes over.
 * The sort forks the smaller part and continues with the larger one in the loop. So the stack is at
 * most log2(n) calls deep, and the oldest fork, which a thief takes, is large.
 *
 * Merge sort goes back and forth between the array and a buffer. A merge is divided in the middle
 * of its result, so both halves are equally long, whatever the runs look like.
 *
 * A task touches only its own part, and reads the pivot before it, which no task writes any more.
 * So fork and join are the only synchronisation.
 */
#include "base/fault.h"
#include "loop/kernel.h"
#include "strand/unwind.h"
#include "worker/worker.h"

#include <filch/task.h>

#include <stdlib.h>

/* Fewer elements are not forked. Measured: from 20 to 1000 the difference is below 3 percent. */
#define GRAIN 256

/* Shorter merges are not divided. Measured: at 256 dividing costs 10 percent, at 2048 nothing. */
#define MERGE_GRAIN 2048

/* One worker partitions a smaller part, however many workers there are. */
#define MIN_SHARE ((size_t)1 << 16)

/* ---- Partition in parallel ------------------------------------------------------------------- */

/*
 * Each chunk is partitioned by itself. Then the elements on the wrong side of the common boundary
 * change places. The first on the left is swapped with the first on the right, and so on.
 *
 *     <<<<<<>>>>> <<<<>>>>>>> <<<<<<<>>>> <<<>>>>>>>>     four chunks; 20 of 44 go left
 *           12345     67890 ^ 1234567     890
 *                           boundary
 */
#define MAX_CHUNKS 64
#define EXCHANGE_GRAIN 4096

typedef struct chunks {
    const order *o;
    char *first;
    const char *pivot;
    int limit;
    size_t count, chunk_count, per_chunk;
    size_t boundary;               /* number of elements on the left side */
    size_t left_count[MAX_CHUNKS]; /* of each chunk */
} chunks;

static size_t chunk_begin(const chunks *c, size_t i)
{
    return i < c->chunk_count ? i * c->per_chunk : c->count;
}

/* The elements of chunk `i` on one side of the boundary that belong to the other: returns their
 * number, and the index of the first. */
static size_t misplaced(const chunks *c, size_t i, bool on_the_left, size_t *first)
{
    size_t begin = chunk_begin(c, i), middle = begin + c->left_count[i];
    size_t end = chunk_begin(c, i + 1);

    if (on_the_left) {
        begin = middle;
        end = end < c->boundary ? end : c->boundary;
    } else {
        begin = begin > c->boundary ? begin : c->boundary;
        end = middle;
    }
    *first = begin;
    return begin < end ? end - begin : 0;
}

FILCH_TASK(void, partition_chunks, (chunks *, c), (size_t, from), (size_t, to))
{
    if (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        FILCH_FORK(right, partition_chunks, c, middle, to);
        FILCH_CALL(partition_chunks, c, from, middle);
        FILCH_JOIN(right);
        return;
    }
    const size_t size = c->o->size;
    char *first = c->first + chunk_begin(c, from) * size;
    char *last = c->first + chunk_begin(c, to) * size;
    char *middle = c->o->kernel->partition(c->o, first, last, c->pivot, c->limit);
    c->left_count[from] = (size_t)(middle - first) / size;
}

/* Find the misplaced element of that rank on one side: its index. Returns how many misplaced
 * elements there are from it to the end of its chunk. */
static size_t misplaced_at(const chunks *c, size_t rank, bool on_the_left, size_t *index)
{
    for (size_t i = 0;; i++) {
        size_t found = misplaced(c, i, on_the_left, index);
        if (rank < found) {
            *index += rank;
            return found - rank;
        }
        rank -= found;
    }
}

/* Exchange the misplaced elements with ranks in [from, to). */
FILCH_TASK(void, exchange, (const chunks *, c), (size_t, from), (size_t, to))
{
    if (to - from > EXCHANGE_GRAIN) {
        size_t middle = from + (to - from) / 2;
        FILCH_FORK(right, exchange, c, middle, to);
        FILCH_CALL(exchange, c, from, middle);
        FILCH_JOIN(right);
        return;
    }
    const size_t size = c->o->size;
    while (from < to) {
        size_t a, b, a_count = misplaced_at(c, from, true, &a);
        size_t b_count = misplaced_at(c, from, false, &b);
        size_t count = a_count < b_count ? a_count : b_count;
        count = count < to - from ? count : to - from;
        swap(c->first + a * size, c->first + b * size, count * size);
        from += count;
    }
}

/* As kernel.partition. */
FILCH_TASK(char *, partition_together, (const order *, o), (char *, first), (size_t, count),
           (const char *, pivot), (int, limit))
{
    chunks c = {.o = o, .first = first, .pivot = pivot, .limit = limit, .count = count};
    c.chunk_count = MAX_CHUNKS;
    c.per_chunk = count / MAX_CHUNKS;
    FILCH_CALL(partition_chunks, &c, 0, c.chunk_count);

    size_t wrong = 0, begin;
    for (size_t i = 0; i < c.chunk_count; i++)
        c.boundary += c.left_count[i];
    for (size_t i = 0; i < c.chunk_count; i++)
        wrong += misplaced(&c, i, true, &begin);
    if (wrong)
        FILCH_CALL(exchange, &c, 0, wrong);
    return first + c.boundary * o->size;
}

/* ---- Quicksort ------------------------------------------------------------------------------- */

/* `has_before`: the element before `first` is the pivot of an earlier partition. */
FILCH_TASK(void, quicksort, (const order *, o), (char *, first), (size_t, count),
           (bool, has_before), (unsigned, patience))
{
    const size_t size = o->size;

    while (count > SMALL) {
        char *last = first + count * size;
        swap(first, choose_pivot(o, first, count), size);

        /* 1: nothing in this part is less than the pivot, so elements equal to it are in their
         * place. */
        const int limit = has_before && compare(o, first - size, first) >= 0;

        char *middle;
        bool was_partitioned = false;
        if (count > o->share) {
            middle = FILCH_CALL(partition_together, o, first + size, count - 1, first, limit);
        } else {
            char *from = first + size, *to = last;
            while (from < to && compare(o, from, first) < limit)
                from += size;
            while (from < to && compare(o, to - size, first) >= limit)
                to -= size;
            was_partitioned = from == to;
            middle = o->kernel->partition(o, from, to, first, limit);
        }
        size_t left_count = (size_t)(middle - first) / size - 1;
        size_t right_count = count - left_count - 1;
        bool is_lopsided = left_count < count / 8 || (right_count < count / 8 && !limit);
        if (is_lopsided && patience-- == 0) {
            heapsort(o, first, count);
            count = 0;
            break;
        }
        if (limit) {
            first = middle;
            count = right_count;
            continue;
        }
        swap(first, middle - size, size);
        if (is_lopsided) {
            shuffle(o, first, left_count);
            shuffle(o, middle, right_count);
        } else if (was_partitioned && ascending(o, first, left_count) == left_count &&
                   ascending(o, middle, right_count) == right_count) {
            count = 0;
            break;
        }

        char *small = first;
        size_t small_count = left_count;
        bool small_has_before = has_before;
        if (left_count < right_count) {
            first = middle;
            count = right_count;
            has_before = true;
        } else {
            small = middle;
            small_count = right_count;
            small_has_before = true;
            count = left_count;
        }
        if (small_count > GRAIN)
            FILCH_SPAWN(quicksort, o, small, small_count, small_has_before, patience);
        else
            FILCH_CALL(quicksort, o, small, small_count, small_has_before, patience);
    }
    if (count > 1)
        o->kernel->insert(o, first, count);
    FILCH_SYNC();
}

/* ---- Merge sort ------------------------------------------------------------------------------ */

/* How many of the first `rank` elements of the merged runs come from the left run. */
static size_t co_rank(const order *o, size_t rank, const char *left, size_t left_count,
                      const char *right, size_t right_count)
{
    size_t low = rank > right_count ? rank - right_count : 0;
    size_t high = rank < left_count ? rank : left_count;

    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (compare(o, right + (rank - 1 - i) * o->size, left + i * o->size) < 0)
            high = i;
        else
            low = i + 1;
    }
    return low;
}

FILCH_TASK(void, merge, (const order *, o), (char *, to), (const char *, left),
           (size_t, left_count), (const char *, right), (size_t, right_count))
{
    const size_t size = o->size, count = left_count + right_count;

    if (count > MERGE_GRAIN) {
        size_t half = count / 2;
        size_t i = co_rank(o, half, left, left_count, right, right_count), j = half - i;
        FILCH_FORK(upper, merge, o, to + half * size, left + i * size, left_count - i,
                   right + j * size, right_count - j);
        FILCH_CALL(merge, o, to, left, i, right, j);
        FILCH_JOIN(upper);
        return;
    }
    const char *left_end = left + left_count * size, *right_end = right + right_count * size;
    if (left_count && right_count && compare(o, right, left_end - size) >= 0) {
        memcpy(to, left, left_count * size);
        memcpy(to + left_count * size, right, right_count * size);
        return;
    }
    o->kernel->merge(o, to, left, left_end, right, right_end);
}

/* Sort `data`, and leave the result there or in `buffer`. */
FILCH_TASK(void, mergesort, (const order *, o), (char *, data), (char *, buffer), (size_t, count),
           (bool, into_buffer))
{
    const size_t size = o->size, half = count / 2;

    if (count <= SMALL) {
        o->kernel->insert(o, data, count);
        if (into_buffer)
            memcpy(buffer, data, count * size);
        return;
    }
    if (count > GRAIN) {
        FILCH_FORK(right, mergesort, o, data + half * size, buffer + half * size, count - half,
                   !into_buffer);
        FILCH_CALL(mergesort, o, data, buffer, half, !into_buffer);
        FILCH_JOIN(right);
    } else {
        FILCH_CALL(mergesort, o, data, buffer, half, !into_buffer);
        FILCH_CALL(mergesort, o, data + half * size, buffer + half * size, count - half,
                   !into_buffer);
    }
    const char *from = into_buffer ? data : buffer;
    FILCH_CALL(merge, o, into_buffer ? buffer : data, from, half, from + half * size, count - half);
}

/* ---- Merge sort in place --------------------------------------------------------------------- */

/*
 * Kim and Kutzner, "Stable minimum storage merging by symmetric comparisons" (2004). Find the two
 * stretches around the middle that must change places, rotate them, and merge both halves.
 */
FILCH_TASK(void, merge_in_place, (const order *, o), (char *, first), (size_t, left_count),
           (size_t, right_count))
{
    const size_t size = o->size, count = left_count + right_count, half = count / 2;

    if (left_count == 0 || right_count == 0)
        return;
    if (count == 2) {
        if (compare(o, first + size, first) < 0)
            swap(first, first + size, size);
        return;
    }
    /* As many elements move left over the middle as move right. */
    size_t i = co_rank(o, half, first, left_count, first + left_count * size, right_count);
    size_t j = half - i;
    reverse(o, first + i * size, left_count - i);
    reverse(o, first + left_count * size, j);
    reverse(o, first + i * size, left_count - i + j);

    FILCH_FORK(upper, merge_in_place, o, first + half * size, left_count - i, right_count - j);
    FILCH_CALL(merge_in_place, o, first, i, j);
    FILCH_JOIN(upper);
}

FILCH_TASK(void, sort_in_place, (const order *, o), (char *, first), (size_t, count))
{
    const size_t half = count / 2;

    if (count <= SMALL) {
        o->kernel->insert(o, first, count);
        return;
    }
    FILCH_FORK(right, sort_in_place, o, first + half * o->size, count - half);
    FILCH_CALL(sort_in_place, o, first, half);
    FILCH_JOIN(right);
    FILCH_CALL(merge_in_place, o, first, half, count - half);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static size_t share_of(filch_frame *f, size_t count)
{
    const filch_worker *worker = filch_strand_of(f)->worker;

    if (!worker || worker->pool->worker_count == 1)
        return SIZE_MAX;
    size_t share = count / worker->pool->worker_count;
    return share > MIN_SHARE ? share : MIN_SHARE;
}

/* False: there is nothing to do, for lack of elements or bytes, or the array exceeds the address
 * space. */
static bool order_init(order *o, size_t count, size_t size, filch_compare_fn *fn, void *context)
{
    size_t bytes;

    *o = (order){fn, context, size, kernel_for(size), SIZE_MAX};
    return count > 1 && size > 0 && !__builtin_mul_overflow(count, size, &bytes);
}

FILCH_NOT_INLINED void filch_sort(filch_frame *f, void *base, size_t count, size_t size,
                                  filch_compare_fn *fn, void *context)
{
    filch_slot *FILCH_HERE = f;
    order o;

    if (!f) {
        filch_pool_sort(NULL, base, count, size, fn, context);
        return;
    }
    if (!order_init(&o, count, size, fn, context) || is_run(&o, base, count))
        return;
    o.share = share_of(f, count);
    unsigned log2 = 63 - (unsigned)__builtin_clzll(count);
    FILCH_CALL(quicksort, &o, base, count, false, log2);
    FILCH_STOP_UNWIND();
}

/* The buffer has the alignment of the array, up to a cache line. */
#define BUFFER_ALIGNMENT ((size_t)64)

static void sort_stable(filch_frame *f, void *base, size_t count, size_t size, filch_compare_fn *fn,
                        void *context)
{
    filch_slot *FILCH_HERE = f;
    order o;

    if (!f) {
        filch_pool_sort_stable(NULL, base, count, size, fn, context);
        return;
    }
    if (!order_init(&o, count, size, fn, context) || is_run(&o, base, count))
        return;
    if (count <= SMALL) {
        o.kernel->insert(&o, base, count);
        return;
    }
    size_t bytes = count * size + BUFFER_ALIGNMENT;
    char *memory = filch_fault(FILCH_FAULT_MALLOC) ? NULL : malloc(bytes);
    if (!memory) {
        FILCH_CALL(sort_in_place, &o, base, count);
        return;
    }
    char *buffer = memory + ((uintptr_t)base - (uintptr_t)memory) % BUFFER_ALIGNMENT;
    FILCH_CALL(mergesort, &o, base, buffer, count, false);
    free(memory);
}

FILCH_NOT_INLINED void filch_sort_stable(filch_frame *f, void *base, size_t count, size_t size,
                                         filch_compare_fn *fn, void *context)
{
    sort_stable(f, base, count, size, fn, context);
    FILCH_STOP_UNWIND();
}

typedef struct call {
    void (*sort)(filch_slot *, void *, size_t, size_t, filch_compare_fn *, void *);
    void *base;
    size_t count, size;
    filch_compare_fn *compare;
    void *context;
} call;

static void run_call(filch_frame *f, void *arg)
{
    call *c = arg;
    c->sort(f, c->base, c->count, c->size, c->compare, c->context);
}

void filch_pool_sort(filch_pool *pool, void *base, size_t count, size_t size, filch_compare_fn *fn,
                     void *context)
{
    call c = {filch_sort, base, count, size, fn, context};
    filch_run_always(pool, run_call, &c);
}

void filch_pool_sort_stable(filch_pool *pool, void *base, size_t count, size_t size,
                            filch_compare_fn *fn, void *context)
{
    call c = {filch_sort_stable, base, count, size, fn, context};
    filch_run_always(pool, run_call, &c);
}
