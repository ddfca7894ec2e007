/* SPDX-License-Identifier: MIT */
/*
 * The contract of the deques in filch/deque/: one thread has one end, thieves have the other.
 *
 * Each kind is one header of inline functions, which needs neither a pool nor the library:
 *
 *     #include <filch/deque/chaselev.h>
 *
 *     filch_chaselev d;
 *     filch_chaselev_init(&d, 0);
 *     filch_chaselev_push(&d, task);                            the owner
 *     if (filch_chaselev_pop(&d, &task))
 *         ...
 *     if (filch_chaselev_steal(&d, &task) == FILCH_STEAL_WON)   a thief
 *         ...
 *     filch_chaselev_fini(&d);
 *
 * Entries are pointers. A program that wants deques of values, or of a pointer type of its own,
 * says so before it includes the first deque; any integer or pointer of 4 or 8 bytes will do:
 *
 *     #define FILCH_ENTRY uint32_t
 *     #include <filch/deque/chaselev.h>
 *
 * NULL and 0 are entries like any other. All files that share a deque say the same.
 *
 * All kinds have these functions, with these types:
 *
 *     function     called by  returns
 *     init         anybody    0; -ENOMEM; -EINVAL: the capacity cannot be, on any machine. Before
 *                             any other call. `capacity` entries fit at first, or at all; 0: a
 *                             default
 *     push         owner      0; otherwise the entry is still the caller's: -ENOBUFS the deque is
 *                             full, -ENOMEM it could not grow
 *     pop          owner      true, and an entry; false: the deque is empty, or thieves took the
 *                             rest at this moment
 *     steal        thieves    WON, and an entry; EMPTY; LOST: see filch_steal_result
 *     steal_batch  thieves    the same, with 1 to `max` entries, oldest first, and their count; not
 *                             all kinds have it. `max` of 0 is EMPTY
 *     size_hint    anybody    how many entries there were some time ago
 *     init_at      anybody    as init; the counters inside begin at `start`: for tests of what
 *                             happens when they wrap
 *     fini         anybody    after every other call; entries that are left are forgotten
 *
 * The owner is one thread at a time. Another one may take its place if it knows of all that the
 * first has done with the deque (through a lock, say). Thieves are any number of threads, and the
 * owner may be one of them. Programs compiled without NDEBUG stop when they find two owners at
 * once.
 *
 * Promised by all:
 *   - Every entry that was pushed is returned once, by one pop or one steal.
 *   - Whoever gets an entry sees all that its owner wrote before pushing it.
 *   - A steal says EMPTY only if at some moment during the call nothing was left: an entry whose
 *     push happened before the call is taken by one that this call does not happen before. A kind
 *     that keeps some entries to its owner says in its header when thieves can have them.
 *   - No call waits for another thread, unless the kind has a lock.
 *   - A call that fails changes nothing, also not what its pointers point to. What was pushed
 *     before is still there.
 *
 * Which entry a pop or a steal returns is up to the kind.
 */
#ifndef FILCH_DEQUE_H
#define FILCH_DEQUE_H

#include <assert.h>
#include <filch/atomic.h>
#include <filch/version.h>
#include <stddef.h>

#ifndef FILCH_ENTRY
#define FILCH_ENTRY void *
#endif
typedef FILCH_ENTRY filch_entry;
static_assert(sizeof(filch_entry) == 4 || sizeof(filch_entry) == 8,
              "FILCH_ENTRY is an integer or a pointer of 4 or 8 bytes");

/* Where a deque keeps an entry. */
typedef FILCH_ATOMIC(filch_entry) filch_deque_slot;

/* What became of an attempt to steal. */
typedef enum filch_steal_result {
    FILCH_STEAL_EMPTY, /* nothing to take: try elsewhere */
    FILCH_STEAL_LOST,  /* another was faster: worth a second try */
    FILCH_STEAL_WON,
} filch_steal_result;

/* The rare half of an inlined function; it must not cost the other half registers. */
#define FILCH_DEQUE_COLD static __attribute__((cold, noinline, unused))

/* ---- a second owner ---------------------------------------------------------------------------- */

/* Which call of the owner is going on, by the address of its mark; NULL: none. Part of every deque
 * with an owner, also where nobody looks: the layout must not depend on NDEBUG. */
typedef FILCH_ATOMIC(const void *) filch_deque_owner;

/* At the beginning of a call of the owner; d->owner is a filch_deque_owner, at first NULL. */
#if defined(NDEBUG) || defined(FILCH_MODEL)
#define FILCH_DEQUE_OWNER_CALL(d) ((void)0)
#else
#define FILCH_DEQUE_OWNER_CALL(d)                                                                  \
    __attribute__((cleanup(filch_deque_leave))) filch_deque_mark filch_mark;                       \
    filch_deque_enter(&filch_mark, &(d)->owner)

typedef struct filch_deque_mark {
    filch_deque_owner *owner;
} filch_deque_mark;

FILCH_INLINE void filch_deque_enter(filch_deque_mark *mark, filch_deque_owner *owner)
{
    /* relaxed: an owner reads what it has written itself; for two of them a look is enough. */
    assert(!filch_load_relaxed(owner) && "filch: a deque has one owner, two threads push or pop");
    filch_store_relaxed(owner, (const void *)mark);
    mark->owner = owner;
}

FILCH_INLINE void filch_deque_leave(filch_deque_mark *mark)
{
    /* relaxed: as above. */
    assert(filch_load_relaxed(mark->owner) == (const void *)mark &&
           "filch: a deque has one owner, two threads push or pop");
    filch_store_relaxed(mark->owner, (const void *)NULL);
}
#endif

/* ---- kinds ------------------------------------------------------------------------------------- */

/* X(name) for each kind, and for each that has steal_batch. */
#define FILCH_DEQUES(X) X(locked) X(global) X(abp) X(chaselev) X(bwos_lifo) X(bwos_fifo)
#define FILCH_BATCH_DEQUES(X) X(locked) X(global) X(bwos_lifo) X(bwos_fifo)

/* A deque that does not fit the contract does not compile. */
#ifndef __cplusplus
#define FILCH_HAS_TYPE(fn, type) _Generic(&(fn), type : 1, default : 0)
#define FILCH_DEQUE_FITS(d)                                                                        \
    static_assert(FILCH_HAS_TYPE(filch_##d##_init, int (*)(filch_##d *, size_t)), #d " init");     \
    static_assert(FILCH_HAS_TYPE(filch_##d##_init_at, int (*)(filch_##d *, size_t, uint64_t)),     \
                  #d " init_at");                                                                  \
    static_assert(FILCH_HAS_TYPE(filch_##d##_push, int (*)(filch_##d *, filch_entry)),             \
                  #d " push");                                                                     \
    static_assert(FILCH_HAS_TYPE(filch_##d##_pop, bool (*)(filch_##d *, filch_entry *)),           \
                  #d " pop");                                                                      \
    static_assert(                                                                                 \
        FILCH_HAS_TYPE(filch_##d##_steal, filch_steal_result(*)(filch_##d *, filch_entry *)),      \
        #d " steal");                                                                              \
    static_assert(FILCH_HAS_TYPE(filch_##d##_size_hint, size_t(*)(filch_##d *)), #d " size_hint"); \
    static_assert(FILCH_HAS_TYPE(filch_##d##_fini, void (*)(filch_##d *)), #d " fini");
#define FILCH_DEQUE_BATCH_FITS(d)                                                                  \
    static_assert(                                                                                 \
        FILCH_HAS_TYPE(filch_##d##_steal_batch,                                                    \
                       filch_steal_result(*)(filch_##d *, filch_entry *, size_t, size_t *)),       \
        #d " steal_batch");
#else
#define FILCH_DEQUE_FITS(d)
#define FILCH_DEQUE_BATCH_FITS(d)
#endif

#endif
