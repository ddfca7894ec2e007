/* SPDX-License-Identifier: MIT */
/*
 * Loops: for, reduce and invoke on top of fork and join. No grain to choose.
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
 * The body is called with ranges, so the compiler can vectorise it. A range is offered to thieves in two halves;
 * each half is run in chunks that take about half a microsecond, found by measuring, and between chunks the loop
 * looks whether somebody is idle. If so, it gives away half of what is left. While everybody is busy, a loop costs
 * two readings of the clock and two comparisons per chunk.
 *
 * All of them return when everything is done. They take the handle of the calling task, FILCH_HERE; the body gets one
 * too, and may use it for loops, filch_fork and FILCH_CALL_ON.
 *
 * A chunk is not divided, nor are the last few, and while there is much to do several are run at once. Where iterations get much more expensive from one to the next, several expensive ones may
 * be in the chunk that the cheap ones before them taught: fork inside the body then.
 */
#ifndef FILCH_LOOP_H
#define FILCH_LOOP_H

#include <filch/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Do the work for the indices begin ... end - 1. */
typedef void filch_for_fn(filch_frame *f, void *context, size_t begin, size_t end);

/* Call `body` on parts of [begin, end) that together are all of it, in any order, in parallel. */
FILCH_API void filch_for(filch_frame *f, size_t begin, size_t end, filch_for_fn *body,
                         void *context);

/*
 * How to reduce: an accumulator of `size` bytes, aligned as malloc aligns. merge must be associative; the
 * order of the indices is kept, so it need not be commutative.
 */
typedef struct filch_reducer {
    size_t size;
    /* Make *accumulator neutral: merging it changes nothing. NULL: all bytes zero. */
    void (*init)(void *accumulator, void *context);
    /* Add the indices begin ... end - 1 to *accumulator, which has all smaller ones of its part. */
    void (*add)(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end);
    /* Add *right, which has larger indices, to *left. */
    void (*merge)(void *left, const void *right, void *context);
} filch_reducer;

/*
 * Reduce [begin, end) into *result, which is initialised first.
 *
 * Where the range is split depends on who is idle. For a merge that is associative only nearly, like the
 * addition of floating-point numbers, the result may differ in the last bits from run to run.
 */
FILCH_API void filch_reduce(filch_frame *f, size_t begin, size_t end, const filch_reducer *reducer,
                            void *context, void *result);

/*
 * The same with a result that depends neither on the number of workers nor on chance: the range is always cut
 * into the same parts of `leaf` indices, merged as the same tree. leaf 0: a thousandth of the range.
 *
 * Returns 0, or -ENOMEM: there was no memory for an accumulator of more than 512 bytes, and *result means
 * nothing. (filch_reduce needs no more memory than it can get.)
 */
FILCH_API int filch_reduce_fixed(filch_frame *f, size_t begin, size_t end, size_t leaf,
                                 const filch_reducer *reducer, void *context, void *result);

/* A function to call and its argument. */
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
