/* SPDX-License-Identifier: MIT */
#include "base/wheel.h"

#include <stddef.h>
#include <string.h>

void filch_wheel_init(filch_wheel *wheel, uint64_t now)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->now = now;
}

void filch_wheel_insert(filch_wheel *wheel, filch_wheel_entry *entry, uint64_t tick)
{
    entry->tick = tick > wheel->now ? tick : wheel->now;
    uint64_t differs = (entry->tick ^ wheel->now) | (FILCH_WHEEL_SLOTS - 1);
    unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / FILCH_WHEEL_BITS;
    unsigned slot = (unsigned)(entry->tick >> (level * FILCH_WHEEL_BITS)) % FILCH_WHEEL_SLOTS;
    filch_wheel_entry **first = &wheel->slots[level][slot];

    entry->level = (uint8_t)level;
    entry->slot = (uint8_t)slot;
    entry->next = *first;
    entry->to_this = first;
    if (entry->next)
        entry->next->to_this = &entry->next;
    *first = entry;
    wheel->used[level] |= (uint64_t)1 << slot;
}

void filch_wheel_remove(filch_wheel *wheel, filch_wheel_entry *entry)
{
    if (!entry->to_this)
        return;
    *entry->to_this = entry->next;
    if (entry->next)
        entry->next->to_this = entry->to_this;
    entry->to_this = NULL;
    if (!wheel->slots[entry->level][entry->slot])
        wheel->used[entry->level] &= ~((uint64_t)1 << entry->slot);
}

/* The lowest level with entries, or FILCH_WHEEL_LEVELS. */
static unsigned first_level(const filch_wheel *wheel)
{
    unsigned level = 0;
    while (level < FILCH_WHEEL_LEVELS && !wheel->used[level])
        level++;
    return level;
}

/* The tick at which the first used slot of this level begins. All used slots lie ahead, except that
 * on level 0 the first may be the current one. */
static uint64_t first_tick(const filch_wheel *wheel, unsigned level)
{
    unsigned shift = level * FILCH_WHEEL_BITS, slot = (unsigned)__builtin_ctzll(wheel->used[level]);
    unsigned above = shift + FILCH_WHEEL_BITS;
    uint64_t base = above < 64 ? wheel->now >> above << above : 0;

    return base | (uint64_t)slot << shift;
}

uint64_t filch_wheel_next(const filch_wheel *wheel)
{
    unsigned level = first_level(wheel);
    return level < FILCH_WHEEL_LEVELS ? first_tick(wheel, level) : FILCH_WHEEL_NEVER;
}

static filch_wheel_entry *take_slot(filch_wheel *wheel, unsigned level)
{
    unsigned slot = (unsigned)__builtin_ctzll(wheel->used[level]);
    filch_wheel_entry *first = wheel->slots[level][slot];

    wheel->slots[level][slot] = NULL;
    wheel->used[level] &= ~((uint64_t)1 << slot);
    for (filch_wheel_entry *e = first; e; e = e->next)
        e->to_this = NULL;
    return first;
}

filch_wheel_entry *filch_wheel_advance(filch_wheel *wheel, uint64_t now)
{
    for (;;) {
        unsigned level = first_level(wheel);
        uint64_t tick = level < FILCH_WHEEL_LEVELS ? first_tick(wheel, level) : FILCH_WHEEL_NEVER;
        if (level == FILCH_WHEEL_LEVELS || tick > now) {
            if (now > wheel->now)
                wheel->now = now;
            return NULL;
        }
        wheel->now = tick;
        filch_wheel_entry *entry = take_slot(wheel, level), *next;
        if (level == 0)
            return entry;
        for (; entry; entry = next) {
            next = entry->next;
            filch_wheel_insert(wheel, entry, entry->tick);
        }
    }
}
