/* SPDX-License-Identifier: MIT */
/*
 * The contract of the deques in filch/deque/: a queue of pointers, of which one thread has one end and thieves the other.
 *
 * Each kind is one header of inline functions, which needs neither a pool nor the library:
 *
 *     #include <filch/deque/chaselev.h>
 *
 *     filch_chaselev d;
 *     filch_chaselev_init(&d, 0);
 *     filch_chaselev_push(&d, task);                            the owner
 *     task = filch_chaselev_pop(&d);
 *     if (filch_chaselev_steal(&d, &task) == FILCH_STEAL_WON)   a thief
 *         ...
 *     filch_chaselev_fini(&d);
 *
 * All kinds have these functions, with these types:
 *
 *     function    called by  returns
 *     init        anybody    0; -ENOMEM. Before any other call; `capacity` entries fit at first, or at all; 0: a default
 *     push        owner      0; otherwise the entry is still the caller's: -ENOBUFS the deque is full, -ENOMEM it could not
 *                            grow, -EINVAL the entry is NULL
 *     pop         owner      an entry; NULL: the deque is empty, or thieves took the rest at this moment
 *     steal       thieves    WON, and an entry; EMPTY; LOST: see filch_steal_result
 *     size_hint   anybody    how many entries there were some time ago
 *     fini        anybody    after every other call; entries that are left are forgotten
 *
 * The owner is one thread at a time. Another one may take its place if it knows of all that the first has done with the deque (through a
 * lock, say). Thieves are any number of threads, and the owner may be one of them.
 *
 * Promised by all:
 *   - Every entry that was pushed is returned once, by one pop or one steal.
 *   - Whoever gets an entry sees all that its owner wrote before pushing it.
 *   - A steal says EMPTY only if at some moment during the call nothing was left: an entry whose push happened before the call is taken by one
 *     that this call does not happen before.
 *   - No call waits for another thread, unless the kind has a lock.
 *   - A push that fails changes nothing. What was pushed before is still there.
 *
 * Which entry a pop or a steal returns is up to the kind.
 */
#ifndef FILCH_DEQUE_H
#define FILCH_DEQUE_H

#include <filch/version.h>
#include <stddef.h>

/* What became of an attempt to steal. */
typedef enum filch_steal_result {
    FILCH_STEAL_EMPTY, /* nothing to take: try elsewhere */
    FILCH_STEAL_LOST,  /* another was faster: worth a second try */
    FILCH_STEAL_WON,
} filch_steal_result;

/* The rare half of an inlined function; it must not cost the other half registers. */
#define FILCH_DEQUE_COLD static __attribute__((cold, noinline, unused))

/* The kinds: X(name) for each. */
#define FILCH_DEQUES(X) X(chaselev)

/* A deque that does not fit the contract does not compile. */
#ifndef __cplusplus
#define FILCH_HAS_TYPE(fn, type) _Generic(&(fn), type : 1, default : 0)
#define FILCH_DEQUE_FITS(d)                                                                        \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_init, int (*)(filch_##d *, size_t)), #d " init");    \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_push, int (*)(filch_##d *, void *)), #d " push");    \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_pop, void *(*)(filch_##d *)), #d " pop");            \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_steal, filch_steal_result(*)(filch_##d *, void **)), \
                   #d " steal");                                                                   \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_size_hint, size_t(*)(filch_##d *)),                  \
                   #d " size_hint");                                                               \
    _Static_assert(FILCH_HAS_TYPE(filch_##d##_fini, void (*)(filch_##d *)), #d " fini");
#endif

#endif
