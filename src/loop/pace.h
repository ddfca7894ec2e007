/* SPDX-License-Identifier: MIT */
/*
 * How many iterations take about half a microsecond: a chunk. A loop learns it while it runs, and
 * the worker remembers it for the next time. A call of the body gets a chunk or a quarter of it.
 */
#ifndef FILCH_LOOP_PACE_H
#define FILCH_LOOP_PACE_H

#include "base/clock.h"
#include "worker/worker.h"

#define FILCH_PACE_CHUNK_NS 500

/* Is the rest too short to offer a part of it? In chunks of several iterations, a short rest takes
 * a microsecond or two, and another worker starts a quarter of a microsecond later. A chunk of one
 * iteration may take any time. */
static inline bool filch_pace_is_short(size_t begin, size_t end, size_t chunk)
{
    return (end - begin) / chunk < (chunk == 1 ? 2 : 4);
}

/* `count` iterations took `ticks`. Returns the next chunk size. It shrinks only if this chunk was
 * far too long, since the time may have gone into cache misses. */
static inline size_t filch_pace_adapt(size_t chunk, size_t count, uint64_t ticks)
{
    const uint64_t goal = filch_clock_ticks_in(FILCH_PACE_CHUNK_NS);

    if (count > chunk)
        ticks /= count / chunk;
    if (count >= chunk && ticks < goal / 2 && chunk <= SIZE_MAX / 4)
        return chunk * 2;
    for (; ticks > goal * 4 && chunk > 1; ticks /= 2)
        chunk /= 2;
    return chunk;
}

/* Where to read the clock next. While much work is left, one reading for several chunks is enough:
 * it costs a few percent of a chunk. */
static inline size_t filch_pace_stop(size_t begin, size_t end, size_t chunk)
{
    size_t chunk_count = (end - begin) / chunk;

    if (chunk_count == 0 || (chunk > 1 && filch_pace_is_short(begin, end, chunk)))
        return end;
    return begin + (chunk_count > 512 ? 16 * chunk : chunk);
}

/* With chunks of at least so many iterations, the compiler has probably vectorised the loop. */
#define FILCH_PACE_VECTORISED 256

/* The most iterations for one call of the body, which cannot be divided while it runs. A call that
 * is a vectorised loop costs about as much as 50 iterations. It gets all up to the next reading of
 * the clock. */
static inline size_t filch_pace_call(size_t chunk)
{
    if (chunk >= FILCH_PACE_VECTORISED)
        return SIZE_MAX;
    return chunk < 4 ? 1 : chunk / 4;
}

/* After so many iterations, look whether a worker has asked. */
static inline size_t filch_pace_turn(size_t chunk)
{
    if (chunk >= FILCH_PACE_VECTORISED)
        return SIZE_MAX;
    return chunk == 1 ? 1 : 4 * chunk;
}

static inline filch_pace_note *filch_pace_find(filch_frame *f, uintptr_t body)
{
    return &filch_strand_of(f)->worker->paces[(body >> 4) % FILCH_PACE_NOTES];
}

/* Instead of a chunk size, at the beginning of a loop. */
#define FILCH_PACE_UNKNOWN ((size_t)0)

/* The chunk size to begin with: the worker remembers one for this body. `chunk` is the owner's. If
 * it is less than an eighth of the worker's, the owner may have met long iterations: begin with it.
 */
static inline size_t filch_pace_recall(filch_frame *f, uintptr_t body, size_t chunk)
{
    const filch_pace_note *note = filch_pace_find(f, body);

    if (note->body == body && (chunk == FILCH_PACE_UNKNOWN || note->chunk / 8 < chunk))
        return note->chunk;
    return chunk == FILCH_PACE_UNKNOWN ? 1 : chunk;
}

static inline void filch_pace_keep(filch_frame *f, uintptr_t body, size_t chunk)
{
    *filch_pace_find(f, body) = (filch_pace_note){body, chunk};
}

#endif
