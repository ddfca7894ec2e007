/* SPDX-License-Identifier: MIT */
/*
 * The deques of filch/deque/ behind one set of pointers, for pools that were asked to use one of them (options.deque).
 *
 * Entries are slots. A strand of such a pool has a deque of its own, or all share one; README.md says how fork and join use it. The default,
 * the split stack, is none of them: it has no entries, only slots, and is inlined.
 */
#ifndef FILCH_DEQUE_KIND_H
#define FILCH_DEQUE_KIND_H

#include <filch/deque.h>
#include <filch/pool.h>

typedef struct filch_kind {
    const char *name;
    filch_deque_kind which;
    size_t bytes; /* of the deque */
    bool
        is_claimed; /* who gets an entry must claim its task: the owner takes what it wants, and not what comes next */
    bool is_shared; /* one for all strands */

    /* Zero for a default; `block` is the size of a block, where there are any. As the functions of filch/deque.h otherwise. */
    int (*init)(void *deque, size_t capacity, size_t block);
    int (*push)(void *deque, void *entry);
    bool (*push_fast)(void *deque,
                      void *entry); /* false: push may do it, by more than a few instructions */
    bool (*pop)(void *deque, void **entry);
    bool (*take)(void *deque, void *newest); /* pop for an owner that knows what it gets */
    bool (*take_last)(void *deque);          /* when take has said false: the rest of it; or NULL */
    filch_steal_result (*steal)(void *deque, void **entry);
    bool (*has_public)(void *deque); /* would a steal find something? A hint */
    void (*show)(
        void *deque); /* the owner lets thieves have all that is there; NULL: they have it anyway */
    size_t (*size_hint)(void *deque);
    void (*fini)(void *deque);
} filch_kind;

/* Chase-Lev, which src/fork/kinds.c recognises by its address. */
extern const filch_kind filch_chaselev_kind;

/* "split, locked, ...": for messages. */
extern const char filch_kind_names[];

/* False: there is no such kind. *kind is NULL for the split stack. */
bool filch_kind_find(filch_deque_kind which, const filch_kind **kind);

/* From "name", "name:capacity" or "name:capacity:block". False: it is none of these. */
bool filch_kind_parse(const char *text, const filch_kind **kind, size_t *capacity, size_t *block);

#endif
