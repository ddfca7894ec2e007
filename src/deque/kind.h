/* SPDX-License-Identifier: MIT */
/*
 * The deques of filch/deque/ behind one set of pointers, for pools with options.deque.
 *
 * Entries are slots. In such a pool each strand has its own deque, or all strands share one.
 * README.md explains how fork and join use it. The default, the split stack, is no such kind: it
 * has slots but no entries, and is inlined.
 */
#ifndef FILCH_DEQUE_KIND_H
#define FILCH_DEQUE_KIND_H

#include <filch/deque.h>
#include <filch/pool.h>

typedef struct filch_kind {
    const char *name;
    filch_deque_kind which;
    size_t bytes; /* of the deque */

    /* An entry is a hint: the thread that takes it must claim its task. The owner claims the task
     * that it joins, whatever entry is the next one. */
    bool is_claimed;
    bool is_shared; /* one deque for all strands */

    /* The functions of filch/deque.h. In init, zero selects a default, and `block` is the size of a
     * block, for kinds with blocks. */
    int (*init)(void *deque, size_t capacity, size_t block);
    int (*push)(void *deque, void *entry);
    /* The fast half of push. False: push may still succeed, with more instructions. */
    bool (*push_fast)(void *deque, void *entry);
    bool (*pop)(void *deque, void **entry);
    /* Pop by an owner that knows the newest entry. */
    bool (*take)(void *deque, void *newest);
    /* The rest of take, after it has returned false; NULL: there is none. */
    bool (*take_last)(void *deque);
    filch_steal_result (*steal)(void *deque, void **entry);
    /* A hint: would a steal find something? */
    bool (*has_public)(void *deque);
    /* Called by the owner: let thieves have all entries. NULL: they always can. */
    void (*show)(void *deque);
    size_t (*size_hint)(void *deque);
    void (*fini)(void *deque);
} filch_kind;

/* Chase-Lev, which src/fork/kinds.c recognises by its address. */
extern const filch_kind filch_chaselev_kind;

/* "split, locked, ...": for messages. */
extern const char filch_kind_names[];

/* False: `which` is no kind. *kind is NULL for the split stack. */
bool filch_kind_find(filch_deque_kind which, const filch_kind **kind);

/* Parse "name", "name:capacity" or "name:capacity:block". False: `text` has another form, or
 * names no kind. */
bool filch_kind_parse(const char *text, const filch_kind **kind, size_t *capacity, size_t *block);

#endif
