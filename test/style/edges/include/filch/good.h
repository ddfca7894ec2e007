/* SPDX-License-Identifier: MIT */
/*
 * Keeps every rule.
 *
 * Edges (some have an end in src/good)
 *   in-header    publish: ready release -> src/good/good.c: ready acquire
 *
 *   two-lines
 *                first: a, then b  x  second: b, then a
 *
 * What is indented after the list is no edge:
 *   nor is this
 */
#include <filch/atomic.h>

/* relaxed: a comment covers the whole macro. */
#define COUNT(p)                                                                                   \
    {                                                                                              \
        filch_store_relaxed(p, 1);                                                                 \
    }                                                                                              \
    f(1);                                                                                          \
    f(2);                                                                                          \
    f(3);                                                                                          \
    f(4);                                                                                          \
    f(5);                                                                                          \
    f(6);                                                                                          \
    filch_store_relaxed(p, filch_load_relaxed(p) + 1)

#define PUBLISH(p)                                                                                 \
    {                                                                                              \
        f(1);                                                                                      \
        /* release [in-header], inside a macro */                                                  \
        filch_store_release(p, 1);                                                                 \
    }

static inline void publish(filch_atomic_u32 *ready, filch_atomic_u32 *a, filch_atomic_u32 *b)
{
    /* release [in-header]: of slot[b] and others, the first operation
     * of three. */
    filch_store_release(ready, 1);
    filch_store_release(ready, 2);
    if (a == b)
        filch_store_release(ready, 3);

    filch_load_relaxed(a); /* relaxed: a comment on the same line */
    filch_store_seq_cst(a, 1); /* [two-lines] */
    filch_load_seq_cst(b); // [two-lines]
}
