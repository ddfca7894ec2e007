/* SPDX-License-Identifier: MIT */
/*
 * The Chase-Lev deque: unbounded. The owner pops the newest entry, thieves steal the oldest.
 *
 * After Chase and Lev, "Dynamic circular work-stealing deque", 2005. The C11 orders are those of
 * Lê, Pop, Cohen and Zappa Nardelli, "Correct and efficient work-stealing for weak memory models",
 * 2013.
 *
 *     entries          top                         bottom
 *       stolen          |  oldest  ...     newest   |   free
 *     ------------------+---------------------------+-------------->  indices grow
 *        thieves take here -->         <-- the owner pushes and pops here
 *
 *     array    slot of index i: i & mask       smaller <--> array <--> larger
 *
 * `top` only grows: the thread that moves it from t to t + 1 gets entry t. The owner takes entry b
 * by moving `bottom` down to b. Only if b may be the last entry, which thieves want as well, the
 * owner has to move `top`, too.
 *
 * Growing. A full array is replaced by one of twice the size. Thieves may still read the old array,
 * so no array is freed before filch_chaselev_fini. Each size exists once and is reused. So the
 * deque always allocates less than twice its largest array.
 *
 * Shrinking. The owner returns to the next smaller array in two cases:
 *   - it finds the deque empty;
 *   - it has gone once round the array, and less than a quarter of the array is in use.
 * Then the array of twice the size of the one it leaves returns its pages to the system. So after a
 * burst, memory shrinks as the deque is used. An idle deque keeps its memory.
 *
 * Why a thief may read an old array. While top = t, entry t stays, since only moving `top` takes
 * it. So every array that was in use since the push of t has t in the same slot. A reused array
 * gets t copied again. If the thief moves `top` past t, it has read entry t.
 *
 * Why pages may be returned: nothing can be stolen from them. When the owner leaves an array of 2n
 * slots for one of n, fewer than n / 2 entries are there. When it leaves that one of n in turn, the
 * deque is empty, or more than 3n / 4 entries were stolen since.
 *
 * Where this leaves the papers
 *   - The operations carry the orders, not fences. ThreadSanitizer does not understand fences. And
 *     clang compiles a fence to mfence, which costs ten times as much as the rest of a push and a
 *     pop. So all of [last-entry] is seq_cst, also the load of `top` in steal.
 *   - The array is published with release and read with acquire, and push reads it again after
 *     growing. The 2013 listing does neither: two errors (Norris and Demsky, 2013).
 *   - Indices are unsigned and compared by their difference, so they may start anywhere and wrap.
 *   - Push reads `top` only when the array seems full: the owner keeps a limit, computed from the
 *     last value it read.
 *   - Shrinking leaves the indices alone. The 2005 paper moves them to make late thieves fail,
 *     since it frees the larger array.
 *
 * Edges
 *   entry-ready   push: bottom -> steal: bottom
 *                 carries the slot, and everything the owner wrote before the push. Pop stores
 *                 bottom, too, and carries the same.
 *   array-ready   use_array: array -> steal: array
 *                 carries the entries copied to it.
 *   slot-free     steal: top -> make_room: top
 *                 the thief has read the slot before the owner writes to it again.
 *   owner-took    pop: top -> steal: top
 *                 carries bottom: a thief that reads a top moved by the owner also sees the bottom
 *                 that the owner stored before.
 *   last-entry    pop: bottom store, top load  x  steal: top load and cas, bottom load
 *                 forbidden: both sides take entry b. The owner would miss that top has reached b,
 *                 and take it without moving top. The thief that moves top past b would miss that
 *                 bottom is down at b.
 */
#ifndef FILCH_DEQUE_CHASELEV_H
#define FILCH_DEQUE_CHASELEV_H

#include <errno.h>
#include <filch/atomic.h>
#include <filch/deque.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A circular array. Its slots follow in the same memory. */
typedef struct filch_chaselev_array {
    uint64_t mask;                        /* capacity - 1; constant */
    void *memory;                         /* for free(); constant */
    struct filch_chaselev_array *smaller; /* half the size, or NULL; constant */
    struct filch_chaselev_array *larger;  /* twice the size, or NULL; owner only */
} __attribute__((aligned(FILCH_CACHE_LINE))) filch_chaselev_array;

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_chaselev {
    /* Moved by thieves, and by the owner for the last entry. */
    filch_atomic_u64 top __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Written by the owner, read by thieves. */
    filch_atomic_u64 bottom __attribute__((aligned(FILCH_CACHE_LINE)));
    FILCH_ATOMIC(filch_chaselev_array *) array;
    uint64_t limit; /* owner only: indices below it fit, by the last `top` it read */
    filch_deque_owner owner;
} filch_chaselev;

#define FILCH_CHASELEV_CAPACITY 64 /* the default; the array grows */
#define FILCH_CHASELEV_CAPACITY_MAX (SIZE_MAX / 4 / sizeof(filch_deque_slot))

/* ---- arrays; owner only ---------------------------------------------------------------------- */

FILCH_INLINE filch_deque_slot *filch_chaselev_slot_at(filch_chaselev_array *a, uint64_t index)
{
    return (filch_deque_slot *)((char *)(a + 1) + (index & a->mask) * sizeof(filch_deque_slot));
}

/* NULL: no memory. The slots are zero, because late thieves may read slots that were never
 * written. */
FILCH_INLINE filch_chaselev_array *filch_chaselev_array_create(uint64_t capacity,
                                                               filch_chaselev_array *smaller)
{
    const size_t line = FILCH_CACHE_LINE;

    if (capacity > FILCH_CHASELEV_CAPACITY_MAX)
        return NULL;
    size_t bytes = (capacity * sizeof(filch_deque_slot) + line - 1) / line * line;
    void *memory = calloc(1, line + sizeof(filch_chaselev_array) + bytes);
    if (!memory)
        return NULL;
    filch_chaselev_array *a =
        (filch_chaselev_array *)(((uintptr_t)memory + line - 1) / line * line);
    a->mask = capacity - 1;
    a->memory = memory;
    a->smaller = smaller;
    a->larger = NULL;
    return a;
}

/* How the memory of an array that has been replaced returns to the system. Its addresses stay
 * mapped: late thieves may still read it, and then read zero. A program may define its own. */
#ifndef FILCH_CHASELEV_GIVE_BACK
#define FILCH_CHASELEV_GIVE_BACK(a) filch_chaselev_array_give_back(a)

/* madvise(): <sys/mman.h> does not declare it in strict C11. */
int filch_chaselev_madvise(void *memory, size_t bytes, int advice) __asm__("madvise");

FILCH_INLINE void filch_chaselev_array_give_back(filch_chaselev_array *a)
{
    const uintptr_t page = (uintptr_t)64 << 10; /* the largest page size */
    const int dontneed = 4;                     /* MADV_DONTNEED */
    uintptr_t begin = ((uintptr_t)(a + 1) + page - 1) / page * page;
    uintptr_t end = (uintptr_t)((filch_deque_slot *)(a + 1) + a->mask + 1) / page * page;

    /* Failure is harmless: locked memory, for example, just stays. */
    if (begin < end)
        (void)filch_chaselev_madvise((void *)begin, end - begin, dontneed);
}
#endif

/* Switch to array `to`. It has room for the entries [t, b) and one more, if top is t. */
FILCH_INLINE void filch_chaselev_use_array(filch_chaselev *d, filch_chaselev_array *to, uint64_t t,
                                           uint64_t b)
{
    /* relaxed: only the owner writes the array and the slots. [array-ready] below orders them for
     * thieves. */
    filch_chaselev_array *from = filch_load_relaxed(&d->array);
    for (uint64_t i = t; i != b; i++)
        filch_store_relaxed(filch_chaselev_slot_at(to, i),
                            filch_load_relaxed(filch_chaselev_slot_at(from, i)));
    d->limit = t + to->mask + 1;
    /* release [array-ready] */
    filch_store_release(&d->array, to);
}

/* Switch to the next smaller array, which has room for twice the entries [t, b). */
FILCH_DEQUE_COLD void filch_chaselev_shrink(filch_chaselev *d, filch_chaselev_array *a, uint64_t t,
                                            uint64_t b)
{
    filch_chaselev_use_array(d, a->smaller, t, b);
    /* Keep the pages of `a` itself: thieves may be about to steal from it. Besides, a deque that
     * grows to the same size again and again would pay for those pages each time. */
    if (a->larger)
        FILCH_CHASELEV_GIVE_BACK(a->larger);
}

/* Index `b` is at the limit: read top again. Then shrink, grow, or just move the limit. */
FILCH_DEQUE_COLD int filch_chaselev_make_room(filch_chaselev *d, filch_chaselev_array *a,
                                              uint64_t b)
{
    /* acquire [slot-free] */
    uint64_t t = filch_load_acquire(&d->top);

    if (b - t <= a->mask) {
        d->limit = t + a->mask + 1;
        if (a->smaller && b - t < (a->mask + 1) / 4)
            filch_chaselev_shrink(d, a, t, b);
        return 0;
    }
    if (!a->larger)
        a->larger = filch_chaselev_array_create(2 * (a->mask + 1), a);
    if (!a->larger)
        return -ENOMEM;
    filch_chaselev_use_array(d, a->larger, t, b);
    return 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* As filch_chaselev_init, with the first entry at index `start`: for tests. */
FILCH_INLINE int filch_chaselev_init_at(filch_chaselev *d, size_t capacity, uint64_t start)
{
    uint64_t rounded = 1;

    if (capacity > FILCH_CHASELEV_CAPACITY_MAX)
        return -EINVAL;
    if (capacity == 0)
        capacity = FILCH_CHASELEV_CAPACITY;
    while (rounded < capacity)
        rounded *= 2;
    filch_chaselev_array *a = filch_chaselev_array_create(rounded, NULL);
    if (!a)
        return -ENOMEM;
    d->limit = start + rounded;
    /* relaxed: no other thread knows the deque yet. */
    filch_store_relaxed(&d->top, start);
    filch_store_relaxed(&d->bottom, start);
    filch_store_relaxed(&d->array, a);
    filch_store_relaxed(&d->owner, (const void *)NULL);
    return 0;
}

/* Make room for `capacity` entries, rounded up to a power of two; 0 means 64. The array grows when
 * it is full, and never shrinks below this size. */
FILCH_INLINE int filch_chaselev_init(filch_chaselev *d, size_t capacity)
{
    return filch_chaselev_init_at(d, capacity, 0);
}

/* ---- owner ----------------------------------------------------------------------------------- */

/* Write entry `b` and make it visible to thieves. There is room for it. */
FILCH_INLINE void filch_chaselev_put(filch_chaselev *d, filch_chaselev_array *a, uint64_t b,
                                     filch_entry entry)
{
    /* relaxed: ordered by the release below. */
    filch_store_relaxed(filch_chaselev_slot_at(a, b), entry);
    /* release [entry-ready] */
    filch_store_release(&d->bottom, b + 1);
}

/* The fast half of push. false: the index is at the limit, use push_slow. */
FILCH_INLINE bool filch_chaselev_push_fast(filch_chaselev *d, filch_entry entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: only the owner writes bottom and array. */
    uint64_t b = filch_load_relaxed(&d->bottom);
    filch_chaselev_array *a = filch_load_relaxed(&d->array);

    if (__builtin_expect(b == d->limit, 0))
        return false;
    filch_chaselev_put(d, a, b, entry);
    return true;
}

FILCH_DEQUE_COLD int filch_chaselev_push_slow(filch_chaselev *d, filch_entry entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: own variables. */
    uint64_t b = filch_load_relaxed(&d->bottom);
    int err = filch_chaselev_make_room(d, filch_load_relaxed(&d->array), b);

    if (err)
        return err;
    /* relaxed: own variable; make_room may have replaced the array. */
    filch_chaselev_put(d, filch_load_relaxed(&d->array), b, entry);
    return 0;
}

/* Add `entry` as the newest one. -ENOMEM: the array is full and cannot grow now; a later push may
 * succeed. */
FILCH_INLINE int filch_chaselev_push(filch_chaselev *d, filch_entry entry)
{
    return filch_chaselev_push_fast(d, entry) ? 0 : filch_chaselev_push_slow(d, entry);
}

/* The first half of pop: move bottom down to entry b. true: the owner has the entry. false: it is
 * the last one, or there is none; take_last must follow. */
FILCH_INLINE bool filch_chaselev_take(filch_chaselev *d, uint64_t *index)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: only the owner writes bottom. */
    uint64_t b = filch_load_relaxed(&d->bottom) - 1;

    *index = b;
    /* seq_cst [last-entry], release [entry-ready] */
    filch_store_seq_cst(&d->bottom, b);
    return __builtin_expect((int64_t)(b - filch_load_seq_cst(&d->top)) > 0, 1);
}

/* The second half of pop. true: the owner has the last entry. */
static __attribute__((noinline, unused)) bool filch_chaselev_take_last(filch_chaselev *d)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: only the owner writes bottom and array. This top is at least as new as the one take
     * read. */
    uint64_t b = filch_load_relaxed(&d->bottom), t = filch_load_relaxed(&d->top);
    filch_chaselev_array *a = filch_load_relaxed(&d->array);
    /* release [owner-took] */
    bool is_mine = b == t && filch_cas_acq_rel(&d->top, &t, t + 1);

    /* relaxed: top has passed b. A thief with an older top fails to move it. */
    filch_store_relaxed(&d->bottom, b + 1);
    if (!is_mine && a->smaller) {
        filch_chaselev_shrink(d, a, b + 1, b + 1);
        d->limit = b + 1; /* makes the next push read top: [slot-free] */
    }
    return is_mine;
}

/* Take the newest entry. false: the deque is empty, or a thief was faster. */
FILCH_INLINE bool filch_chaselev_pop(filch_chaselev *d, filch_entry *entry)
{
    uint64_t b;

    if (!filch_chaselev_take(d, &b) && !filch_chaselev_take_last(d))
        return false;
    /* relaxed: only the owner writes array and slots, and this slot not before its next push. */
    *entry = filch_load_relaxed(filch_chaselev_slot_at(filch_load_relaxed(&d->array), b));
    return true;
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* Take the oldest entry. */
FILCH_INLINE filch_steal_result filch_chaselev_steal(filch_chaselev *d, filch_entry *entry)
{
    /* seq_cst [last-entry], acquire [owner-took] */
    uint64_t t = filch_load_seq_cst(&d->top);
    /* seq_cst [last-entry], acquire [entry-ready] */
    uint64_t b = filch_load_seq_cst(&d->bottom);

    if ((int64_t)(b - t) <= 0)
        return FILCH_STEAL_EMPTY;
    /* acquire [array-ready]. After the load of bottom: the array is at least as new as entry t. */
    filch_chaselev_array *a = filch_load_acquire(&d->array);
    /* relaxed: the cas below decides whether this is entry t. Read before the cas: after it, the
     * owner may reuse the slot. */
    filch_entry oldest = filch_load_relaxed(filch_chaselev_slot_at(a, t));
    /* seq_cst [last-entry], release [slot-free] */
    if (!filch_cas_seq_cst(&d->top, &t, t + 1))
        return FILCH_STEAL_LOST;
    *entry = oldest;
    return FILCH_STEAL_WON;
}

/* ---- any thread ------------------------------------------------------------------------------ */

FILCH_INLINE size_t filch_chaselev_size_hint(filch_chaselev *d)
{
    /* relaxed: a hint. */
    int64_t size = (int64_t)(filch_load_relaxed(&d->bottom) - filch_load_relaxed(&d->top));
    return size > 0 ? (size_t)size : 0;
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_chaselev_fini(filch_chaselev *d)
{
    /* relaxed: no other thread uses the deque any more. */
    filch_chaselev_array *a = filch_load_relaxed(&d->array);

    while (a->larger)
        a = a->larger;
    while (a) {
        filch_chaselev_array *smaller = a->smaller;
        free(a->memory);
        a = smaller;
    }
}

FILCH_DEQUE_FITS(chaselev)

#ifdef __cplusplus
}
#endif

#endif
