/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: items pass through stages, several at once.
 *
 *     static int read_block(filch_frame *f, void *in, void **item)    // first stage: makes items
 *     {
 *         *item = block_read(f, in);
 *         return *item ? 0 : FILCH_PIPELINE_END;
 *     }
 *     static int compress(filch_frame *f, void *context, void **item) // may replace them
 *     {
 *         return block_compress(*item);                               // 0 or -errno
 *     }
 *     static int write_block(filch_frame *f, void *out, void **item)  // last stage: consumes them
 *     {
 *         return block_write_and_free(f, out, *item);
 *     }
 *
 *     int compress_file(filch_frame *f, filch_pool *pool, struct file *in, struct file *out)
 *     {
 *         const filch_stage stages[] = {
 *             {.fn = read_block, .context = in, .width = 1},
 *             {.fn = compress},
 *             {.fn = write_block, .context = out, .width = 1, .is_ordered = true},
 *         };
 *         return filch_pipeline_run(f, pool, stages, 3, NULL);        // waits until all is done
 *     }
 *
 * A token is a task that carries an item through all stages and then fetches the next item. So an
 * item stays in the cache of its worker:
 *
 *     token 1   read 1 | compress 1        | write 1 | read 4 | ...
 *     token 2          | read 2 | compress 2 ...     | write 2 |
 *     token 3                   | read 3 | compress 3          | waits for write 2 | write 3
 *
 *   - A stage of width 1 has one item at a time; a stage of width 0 has no limit.
 *   - An ordered stage takes the items in the order in which the first stage made them.
 *   - There are at most token_limit tokens. A first stage that is faster than the rest waits, so
 *     memory is bounded.
 *   - Stages may wait for a lock, a channel or a file, and cost no thread meanwhile.
 *
 * The first error of a stage cancels the pipeline, like a scope (filch/scope.h): no item is begun
 * any more, waits of the stages return -ECANCELED, and unfinished items go to options.discard.
 */
#ifndef FILCH_PIPELINE_H
#define FILCH_PIPELINE_H

#include <filch/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returned by a stage: begin no more items. Items in flight are finished, also the item of this
 * call if *item is not NULL. */
#define FILCH_PIPELINE_END 1

/*
 * One item in one stage; `f` is the frame of the token's task.
 *
 * The first stage finds *item NULL and sets it; others may replace it. If *item is NULL on return,
 * the item is finished and later stages do not see it. Returns 0, FILCH_PIPELINE_END or -errno.
 */
typedef int filch_stage_fn(filch_frame *f, void *context, void **item);

typedef struct filch_stage {
    filch_stage_fn *fn;
    void *context;
    unsigned width;  /* items in this stage at once; 0: no limit */
    bool is_ordered; /* in the order of the first stage, which ignores this member */
} filch_stage;

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_pipeline_options {
    size_t size;          /* sizeof(filch_pipeline_options) */
    unsigned token_limit; /* items in flight; 0: four for each worker; at most 2^20 */

    /* Cancels the pipeline at this time, as from filch_after_ms; it then returns -ETIMEDOUT. 0: no
     * deadline. */
    uint64_t deadline_ns;

    /* Called with discard_context for each item that an error or a cancellation leaves unfinished,
     * also for the one in *item of the stage that failed. Several threads may call it at once. */
    void (*discard)(void *context, void *item);
    void *discard_context;
} filch_pipeline_options;

/*
 * Run the stages until the first one has no more items and all items are through. The tokens run in
 * `pool`, or with NULL in the pool of `f`. `f` is NULL outside of tasks. `options` may be NULL. A
 * stage may run a pipeline of its own.
 *
 * Returns 0, or
 *   the first error of a stage
 *   -ETIMEDOUT   the deadline has passed
 *   -ECANCELED   the caller is cancelled
 *   -ENOMEM      no stage was called; or a later token got no stack, and some items may be through
 *   -EOWNERDEAD, -EAGAIN  as of filch_scope_open
 *   -EINVAL      no pool, no stage, a stage without a function, or options.size was not set; no
 *                stage was called
 *   -E2BIG       the options come from a newer header and use members that this library does not
 *                know; no stage was called
 */
FILCH_API int filch_pipeline_run(filch_frame *f, filch_pool *pool, const filch_stage *stages,
                                 unsigned stage_count, const filch_pipeline_options *options);

#ifdef __cplusplus
}
#endif

#endif
