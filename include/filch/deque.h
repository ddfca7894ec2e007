/* SPDX-License-Identifier: MIT */
/*
 * The contract of the deques in filch/deque/: the owner has one end, thieves have the other.
 *
 * Each kind is one header of inline functions, which needs neither a pool nor the library:
 *
 *     #include <filch/deque/chaselev.h>
 *
 *     filch_chaselev d;
 *     filch_chaselev_init(&d, 0);
 *     filch_chaselev_push(&d, task);                          // the owner
 *     if (filch_chaselev_pop(&d, &task))
 *         ...
 *     if (filch_chaselev_steal(&d, &task) == FILCH_STEAL_WON) // a thief
 *         ...
 *     filch_chaselev_fini(&d);
 *
 * Entries are pointers by default. For deques of values, or of another pointer type, define
 * FILCH_ENTRY before the first deque is included. Any integer or pointer type of 4 or 8 bytes will
 * do:
 *
 *     #define FILCH_ENTRY uint32_t
 *     #include <filch/deque/chaselev.h>
 *
 * Every value is a valid entry, NULL and 0 included. All files that share a deque must define the
 * same FILCH_ENTRY.
 *
 * All kinds have these functions, with these types:
 *
 *     function     called by   returns
 *     init         any thread  0; -ENOMEM; -EINVAL: no machine has room for `capacity`. This is the
 *                              first call. `capacity` entries fit at first (or at all, if the
 *                              kind is bounded). 0 selects a default
 *     push         owner       0; -ENOBUFS: the deque is full; -ENOMEM: it could not grow. After an
 *                              error the entry still belongs to the caller
 *     pop          owner       true, and an entry; false: the deque is empty, or thieves are taking
 *                              the rest at this moment
 *     steal        thieves     WON, and an entry; EMPTY; LOST: see filch_steal_result
 *     steal_batch  thieves     as steal, with 1 to `max` entries, oldest first, and their count.
 *                              EMPTY if `max` is 0. Some kinds lack it
 *     size_hint    any thread  the number of entries some time ago
 *     init_at      any thread  as init; the internal counters begin at `start`: for tests in which
 *                              they wrap
 *     fini         any thread  nothing. This is the last call; it drops the entries that are left
 *
 * The owner is one thread at a time. Another thread may become the owner if everything the first
 * owner did with the deque happened before (through a lock, say). Any number of threads may be
 * thieves, and the owner may be one of them. Programs compiled without NDEBUG stop when they detect
 * two owners at once.
 *
 * All kinds promise:
 *   - Every pushed entry is returned once, by one pop or one steal.
 *   - The thread that gets an entry sees everything the owner wrote before pushing it.
 *   - A steal returns EMPTY only if the deque was empty at some moment during the call. If the push
 *     of an entry happens before the steal, then the call that takes this entry does not happen
 *     after the steal. A kind that keeps some entries to its owner says in its header when thieves
 *     can have them.
 *   - No call waits for another thread, unless the kind has a lock.
 *   - A call that fails changes nothing, and earlier entries stay in the deque. It does not write
 *     through its pointers either. Exception: after LOST, steal_batch of the BWoS kinds may have
 *     written to `entries`.
 *
 * Each kind defines which entry a pop or a steal returns.
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

/* The place of one entry in a deque. */
typedef FILCH_ATOMIC(filch_entry) filch_deque_slot;

/* The outcome of an attempt to steal. */
typedef enum filch_steal_result {
    FILCH_STEAL_EMPTY, /* nothing to take: try elsewhere */
    FILCH_STEAL_LOST,  /* another thread was faster: worth a second try */
    FILCH_STEAL_WON,
} filch_steal_result;

/* The rare half of an inlined function: out of line, so that it costs the other half no
 * registers. */
#define FILCH_DEQUE_COLD static __attribute__((cold, noinline, unused))

/* ---- detect a second owner ------------------------------------------------------------------- */

/* The call of the owner that is in progress, as the address of its mark; NULL: none. Every deque
 * with an owner has this member, even with NDEBUG: the layout must not depend on NDEBUG. */
typedef FILCH_ATOMIC(const void *) filch_deque_owner;

/* Opens every call of the owner. d->owner is a filch_deque_owner, initially NULL. */
#ifdef NDEBUG
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
    /* relaxed: one owner reads its own write. To detect two owners, a racy read is enough. */
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

/* ---- kinds ----------------------------------------------------------------------------------- */

/* X(name) for each kind; and X(name) for each kind that has steal_batch. */
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
