/* SPDX-License-Identifier: MIT */
/*
 * How the checker compiles the deques. The compiler includes this file before every shipped source.
 */
#ifndef MC_DEQUE_H
#define MC_DEQUE_H

/* The kernel clears the pages of an array, slot by slot. */
#define FILCH_CHASELEV_GIVE_BACK(a)                                                                \
    do {                                                                                           \
        /* relaxed: the kernel orders nothing. */                                                  \
        for (uint64_t mc_i = 0; mc_i <= (a)->mask; mc_i++)                                         \
            filch_store_relaxed(filch_chaselev_slot_at((a), mc_i), (filch_entry)0);                \
    } while (0)

/* No marks of owners: they find programs that are wrong, and would be events of every program. */
#define NDEBUG
#include <filch/deque.h>
#undef NDEBUG
#include <assert.h>

#endif
