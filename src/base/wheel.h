/* SPDX-License-Identifier: MIT */
/*
 * A timing wheel: finds the entries that are due at a tick, without sorting them.
 *
 *     level 0   64 slots of one tick        |.|x|.|.| ... |x|
 *     level 1   64 slots of 64 ticks        |.|.|x|.| ... |.|
 *     level 2   64 slots of 64^2 ticks ...
 *
 * After Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987. Take the highest digit
 * (in base 64) in which the tick of an entry differs from the wheel's: it gives the level of the
 * entry. So all entries of a level are due before those of the next, and all used slots of a level
 * lie ahead. When the wheel reaches a slot of a higher level, the entries of that slot move down.
 * Insert and remove take a few instructions, and each entry moves at most once per level. Nothing
 * is allocated.
 *
 * One thread at a time: the caller holds a lock.
 */
#ifndef FILCH_BASE_WHEEL_H
#define FILCH_BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define FILCH_WHEEL_BITS 6
#define FILCH_WHEEL_SLOTS (1u << FILCH_WHEEL_BITS)
#define FILCH_WHEEL_LEVELS ((64 + FILCH_WHEEL_BITS - 1) / FILCH_WHEEL_BITS)

/* The result of filch_wheel_next when the wheel is empty. */
#define FILCH_WHEEL_NEVER UINT64_MAX

typedef struct filch_wheel_entry filch_wheel_entry;
struct filch_wheel_entry {
    filch_wheel_entry *next, **to_this; /* to_this is NULL if the entry is in no wheel */
    uint64_t tick;
    uint8_t level, slot;
};

typedef struct filch_wheel {
    uint64_t now;
    uint64_t used[FILCH_WHEEL_LEVELS]; /* a bit for each slot that is not empty */
    filch_wheel_entry *slots[FILCH_WHEEL_LEVELS][FILCH_WHEEL_SLOTS];
} filch_wheel;

void filch_wheel_init(filch_wheel *wheel, uint64_t now);

/* Insert `entry` at `tick`. If that has passed, the entry is due at the next advance. */
void filch_wheel_insert(filch_wheel *wheel, filch_wheel_entry *entry, uint64_t tick);

static inline bool filch_wheel_has(const filch_wheel_entry *entry)
{
    return entry->to_this;
}

/* Remove `entry`. Does nothing if it is in no wheel. */
void filch_wheel_remove(filch_wheel *wheel, filch_wheel_entry *entry);

/* When to advance next: the tick of the earliest entry, or an earlier tick at which entries move
 * down. FILCH_WHEEL_NEVER: the wheel is empty. */
uint64_t filch_wheel_next(const filch_wheel *wheel);

/* Advance to `now`, but at most to the first tick at which an entry is due. Returns the due
 * entries, as a list linked by `next`; they are no longer in the wheel. NULL: nothing is due up to
 * `now`. */
filch_wheel_entry *filch_wheel_advance(filch_wheel *wheel, uint64_t now);

#endif
