/* SPDX-License-Identifier: MIT */
/*
 * Loops: for, reduce and invoke, on top of fork and join. The caller chooses no grain.
 *
 *     static void scale(filch_frame *f, void *context, size_t begin, size_t end)
 *     {
 *         double *x = context;
 *         for (size_t i = begin; i < end; i++)
 *             x[i] *= 2;
 *     }
 *     ...
 *     filch_for(FILCH_HERE, 0, n, scale, x);
 *
 * The body is called with ranges, so that the compiler can vectorise it. A call gets about 100 ns
 * of work, a size found by measuring. The loop first offers half of its range to thieves, and then
 * half of what is left whenever a worker is idle. While all workers are busy, each call costs a
 * store and a comparison. Every half microsecond, or less often, come two readings of the clock.
 *
 * Iterations may suddenly take long. While a call runs, the iterations that no call was given yet
 * can be stolen, however long it takes: an idle worker has them after some 150 us. Only what this
 * one call was given is not divided.
 *
 *   - If an iteration takes less than 2 ns, the body is probably a vectorised loop. Then a call
 *     gets half a microsecond of work, and up to 8 us while much is left.
 *   - A worker that sleeps is woken for a loop once 50 us of work have accumulated, as measured in
 *     earlier loops with this body. If a shorter loop takes long, the worker may learn of it only
 *     after the first call.
 *   - In three cases a call gets half a microsecond of work or more, and all other iterations wait
 *     for its end: if the strand has no room left for forks, if the pool has another deque than
 *     split, and if there is no memory for an accumulator of more than 512 bytes. They also wait
 *     where the kernel refuses membarrier.
 *
 * All calls return when all their work is complete. They take the frame of the calling task,
 * FILCH_HERE. The body gets a frame, too, and may use it for loops, filch_fork and FILCH_CALL_ON.
 *
 * With NULL for the frame, as on a plain thread, they run serially on the calling thread. The body
 * gets a frame all the same. If there is no memory for that frame, they abort, as FILCH_RUN does;
 * filch_reduce_fixed returns -ENOMEM.
 */
#ifndef FILCH_LOOP_H
#define FILCH_LOOP_H

#include <filch/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Do the work for the indices begin ... end - 1. */
typedef void filch_for_fn(filch_frame *f, void *context, size_t begin, size_t end);

/* Call `body` on ranges that together cover [begin, end), in any order, in parallel. */
FILCH_API void filch_for(filch_frame *f, size_t begin, size_t end, filch_for_fn *body,
                         void *context);

/*
 * How to reduce. An accumulator has `size` bytes and the alignment of malloc. merge must be
 * associative. It need not be commutative, as the order of the indices is kept.
 */
typedef struct filch_reducer {
    size_t size;
    /* Make *accumulator neutral: merging it changes nothing. NULL sets all bytes to zero. */
    void (*init)(void *accumulator, void *context);
    /* Add the indices begin ... end - 1 to *accumulator, which has all smaller indices of its
     * part. */
    void (*add)(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end);
    /* Add *right, which has larger indices, to *left. */
    void (*merge)(void *left, const void *right, void *context);
} filch_reducer;

/*
 * Reduce [begin, end) into *result, which this call initialises.
 *
 * Idle workers determine where the range is split. If merge is only nearly associative, like the
 * addition of floating-point numbers, the last bits of the result may differ from run to run.
 */
FILCH_API void filch_reduce(filch_frame *f, size_t begin, size_t end, const filch_reducer *reducer,
                            void *context, void *result);

/*
 * As filch_reduce, with a result that depends neither on the number of workers nor on timing. The
 * range is always cut into the same parts of `leaf` indices, which are merged as the same tree. A
 * `leaf` of 0 means a thousandth of the range. A leaf is one call, which is not divided.
 *
 * Returns 0 or -ENOMEM, and then *result is undefined. There was no memory for an accumulator of
 * more than 512 bytes, or, if `f` is NULL, for the frame. (filch_reduce cannot fail: without memory
 * it splits less.)
 */
FILCH_API int filch_reduce_fixed(filch_frame *f, size_t begin, size_t end, size_t leaf,
                                 const filch_reducer *reducer, void *context, void *result);

/* A function to call, and its argument. */
typedef struct filch_call {
    filch_fn *fn;
    void *arg;
} filch_call;

/* Make `count` calls in parallel. */
FILCH_API void filch_invoke(filch_frame *f, const filch_call *calls, size_t count);

#ifdef __cplusplus
}
#endif

#endif
