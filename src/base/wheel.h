/* SPDX-License-Identifier: MIT */
/*
 * A timing wheel: entries that are due at some tick, found without sorting them.
 *
 *     level 0   64 slots of one tick        |.|x|.|.| ... |x|
 *     level 1   64 slots of 64 ticks        |.|.|x|.| ... |.|
 *     level 2   64 slots of 64^2 ticks ...
 *
 * After Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987. An entry lies on the level of the highest digit (in base 64)
 * in which its tick differs from the wheel's: so all entries of a level are due before those of the next one, and a level has only slots
 * that are still to come. When the wheel comes to a slot of a higher level, its entries move down. Insert and remove take a
 * few instructions; each entry moves at most once per level. Nothing is allocated.
 *
 * One thread at a time: the caller has a lock.
 */
#ifndef FILCH_BASE_WHEEL_H
#define FILCH_BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define FILCH_WHEEL_BITS 6
#define FILCH_WHEEL_SLOTS (1u << FILCH_WHEEL_BITS)
#define FILCH_WHEEL_LEVELS ((64 + FILCH_WHEEL_BITS - 1) / FILCH_WHEEL_BITS)

/* No entry is due. */
#define FILCH_WHEEL_NEVER UINT64_MAX

typedef struct filch_wheel_entry filch_wheel_entry;
struct filch_wheel_entry {
    filch_wheel_entry *next, **to_this; /* to_this is NULL when it is in no wheel */
    uint64_t tick;
    uint8_t level, slot;
};

typedef struct filch_wheel {
    uint64_t now;
    uint64_t used[FILCH_WHEEL_LEVELS]; /* a bit for each slot that is not empty */
    filch_wheel_entry *slots[FILCH_WHEEL_LEVELS][FILCH_WHEEL_SLOTS];
} filch_wheel;

void filch_wheel_init(filch_wheel *wheel, uint64_t now);

/* An entry whose tick has passed is due at the next advance. */
void filch_wheel_insert(filch_wheel *wheel, filch_wheel_entry *entry, uint64_t tick);

static inline bool filch_wheel_has(const filch_wheel_entry *entry)
{
    return entry->to_this;
}

/* Nothing happens if it is in no wheel. */
void filch_wheel_remove(filch_wheel *wheel, filch_wheel_entry *entry);

/* When to advance next: the tick of the earliest entry, or an earlier one at which entries move down. FILCH_WHEEL_NEVER: it is empty. */
uint64_t filch_wheel_next(const filch_wheel *wheel);

/* Go on to `now`, at most as far as the first tick at which something is due. Returns a list of entries that are, linked by `next`, and
 * no longer in the wheel; NULL: nothing more is due by then. */
filch_wheel_entry *filch_wheel_advance(filch_wheel *wheel, uint64_t now);

#endif
