/* SPDX-License-Identifier: MIT */
/*
 * A part: data that a higher layer adds to a pool when first needed. It is made once, and ends with
 * the pool. It begins with a filch_part, whose functions the higher layer fills in.
 *
 * Edges
 *   part-made  filch_parts_add -> filch_parts_get, filch_parts_add   carries the part.
 */
#ifndef FILCH_WORKER_PART_H
#define FILCH_WORKER_PART_H

#include <filch/atomic.h>
#include <filch/pool.h>

typedef struct filch_part filch_part;
struct filch_part {
    /* The pool is being destroyed, and no task is left. */
    void (*destroy)(filch_part *part);

    /* The same in the child of a fork(): the pool's threads are gone, and locks may be held. */
    void (*forget)(filch_part *part);
};

enum filch_part_name {
    FILCH_PART_OFFLOAD, /* threads for calls that block: src/block/blocking.c */
    FILCH_PART_IO,      /* the kernel's event queues: src/io */
    FILCH_PART_COUNT,
};

typedef struct filch_parts {
    FILCH_ATOMIC(filch_part *) parts[FILCH_PART_COUNT];
} filch_parts;

/* NULL: the pool does not have it yet. */
static inline filch_part *filch_parts_get(filch_parts *parts, enum filch_part_name name)
{
    /* acquire [part-made] */
    return filch_load_acquire(&parts->parts[name]);
}

/* Returns the pool's part: `part`, or the part that another thread added first. */
static inline filch_part *filch_parts_add(filch_parts *parts, enum filch_part_name name,
                                          filch_part *part)
{
    filch_part *old = NULL;
    /* acq_rel [part-made] */
    return filch_cas_acq_rel(&parts->parts[name], &old, part) ? part : old;
}

/* At the end of the pool, or in the child of a fork(). */
static inline void filch_parts_end(filch_parts *parts, bool is_forked)
{
    for (int i = 0; i < FILCH_PART_COUNT; i++) {
        filch_part *part = filch_parts_get(parts, (enum filch_part_name)i);
        if (part)
            (is_forked ? part->forget : part->destroy)(part);
        /* relaxed: no other thread uses the pool. */
        filch_store_relaxed(&parts->parts[i], NULL);
    }
}

#endif
