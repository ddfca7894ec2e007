/* SPDX-License-Identifier: MIT */
/*
 * How many iterations take about a microsecond: learnt while a loop runs, remembered for the next time.
 *
 * All parts of a loop share one estimate; they may run at once, and each is as good as the other, so a lost update
 * does not matter.
 */
#ifndef FILCH_LOOP_PACE_H
#define FILCH_LOOP_PACE_H

#include "base/clock.h"
#include "worker/worker.h"

typedef struct filch_pace {
    FILCH_ATOMIC(size_t) chunk;
} filch_pace;

/* A guess is enough: half or twice a microsecond does as well. */
#define FILCH_PACE_TICKS filch_clock_ticks_in(1000)

static inline size_t filch_pace_chunk(filch_pace *pace)
{
    /* relaxed: an estimate. */
    return filch_load_relaxed(&pace->chunk);
}

/* `count` iterations took `ticks`. Returns the chunk to go on with. */
static inline size_t filch_pace_learn(filch_pace *pace, size_t count, uint64_t ticks)
{
    size_t chunk = filch_pace_chunk(pace), next = chunk;

    if (count == chunk && ticks < FILCH_PACE_TICKS / 2)
        next = chunk * 2;
    else if (ticks > FILCH_PACE_TICKS * 2 && chunk > 1)
        next = chunk / 2;
    if (next != chunk)
        /* relaxed: an estimate. */
        filch_store_relaxed(&pace->chunk, next);
    return next;
}

static inline filch_pace_note *filch_pace_find(filch_pace_note *notes, uintptr_t body)
{
    return &notes[(body >> 4) % FILCH_PACE_NOTES];
}

/* Start with what the worker knows about this body, or with one iteration. */
static inline void filch_pace_recall(filch_pace *pace, filch_pace_note *notes, uintptr_t body)
{
    const filch_pace_note *note = filch_pace_find(notes, body);
    /* relaxed: nobody else knows the loop yet. */
    filch_store_relaxed(&pace->chunk, note->body == body ? note->chunk : 1);
}

static inline void filch_pace_keep(filch_pace *pace, filch_pace_note *notes, uintptr_t body)
{
    *filch_pace_find(notes, body) = (filch_pace_note){body, filch_pace_chunk(pace)};
}

#endif
