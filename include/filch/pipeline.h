/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: items flow through stages, several at once.
 *
 *     static int read_block(filch_frame *f, void *in, void **item)       the first stage makes items
 *     {
 *         struct block *block = block_read(in);
 *         if (!block)
 *             return FILCH_PIPELINE_END;
 *         *item = block;
 *         return 0;
 *     }
 *     static int compress(filch_frame *f, void *context, void **item)    those between change or replace them
 *     {
 *         return block_compress(*item);                                 0 or -errno
 *     }
 *     static int write_block(filch_frame *f, void *out, void **item)     the last uses them up
 *     {
 *         return block_write_and_free(out, *item);
 *     }
 *
 *     const filch_stage stages[] = {
 *         {.fn = read_block, .context = in, .width = 1},
 *         {.fn = compress},
 *         {.fn = write_block, .context = out, .width = 1, .is_ordered = true},
 *     };
 *     int err = filch_pipeline_run(f, pool, stages, 3, NULL);           returns at the end of all; the first error, or 0
 *
 * A task, called token, takes an item through all stages and then comes back for another, so what it works on stays in its cache:
 *
 *     token 1   read 1 | compress 1        | write 1 | read 4 | ...
 *     token 2          | read 2 | compress 2 ...     | write 2 |
 *     token 3                   | read 3 | compress 3          | waits for write 2 | write 3
 *
 * A stage of width 1 has one item at a time, one of width 0 as many as there are. An ordered stage takes the items in the order
 * in which the first stage made them. There are token_limit tokens at most: a first stage that is faster than the rest waits, and memory is
 * bounded. Stages may wait, for a lock, a channel, a file, and meanwhile cost no thread.
 *
 * The first error of a stage cancels the pipeline, like a scope (filch/scope.h): nothing new is begun, waits of the stages return -ECANCELED, and
 * items that do not come to their end are given to `discard`.
 */
#ifndef FILCH_PIPELINE_H
#define FILCH_PIPELINE_H

#include <filch/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No more items are begun. Those under way go on, as does that of this call, if *item is not NULL. */
#define FILCH_PIPELINE_END 1

/*
 * One item in one stage; `f` is the handle of the task. The first stage finds *item NULL and sets it; others may set it to something else. An item that is
 * NULL on return is done with, and later stages do not see it. Returns 0, FILCH_PIPELINE_END or -errno.
 */
typedef int filch_stage_fn(filch_frame *f, void *context, void **item);

typedef struct filch_stage {
    filch_stage_fn *fn;
    void *context;
    unsigned width; /* items in this stage at once; 0: no limit */
    bool
        is_ordered; /* they come in the order in which they were made; the first stage is what makes the order */
} filch_stage;

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_pipeline_options {
    size_t size;          /* sizeof(filch_pipeline_options) */
    unsigned token_limit; /* items under way at once; 0: four for each worker; a million at most */
    uint64_t
        deadline_ns; /* then it is cancelled, and returns -ETIMEDOUT; as from filch_now_ns. 0: none */

    /* Gets each item, with the context, that an error or a cancellation leaves behind, or that the failed stage has left in *item. From several threads at once. */
    void (*discard)(void *context, void *item);
    void *discard_context;
} filch_pipeline_options;

/*
 * Run the stages until the first has no more items and all have been through, in `pool`, or with NULL in that of the handle `f`, which is NULL
 * outside of tasks. `options` may be NULL. A stage may run a pipeline of its own.
 *
 * Returns 0; the first error of a stage; -ETIMEDOUT; -ECANCELED the caller is cancelled; -ENOMEM; -EOWNERDEAD as of filch_scope_open; -EINVAL there is no pool, no stage, one without a function, or the
 * options are not those of this library. After -EINVAL no stage was called; nor after -ENOMEM, unless it was the stack of a further task that there was no memory for.
 */
FILCH_API int filch_pipeline_run(filch_frame *f, filch_pool *pool, const filch_stage *stages,
                                 unsigned stage_count, const filch_pipeline_options *options);

#ifdef __cplusplus
}
#endif

#endif
