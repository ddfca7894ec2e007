/* SPDX-License-Identifier: MIT */
/*
 * Breaks every rule.
 *
 * Edges
 *   one-end      here: release -> nowhere
 *   no-arrow     here
 *   Not a name   here -> there
 */
#include "good/good.h"

#include <stdatomic.h>

void bad(filch_atomic_u32 *p)
{
    filch_store_release(p, 1);
    filch_load_relaxed(p);

    /* release [one-end] */
    filch_store_release(p, 1);

    filch_store_release(p, 2);

    /* relaxed: the nearest comment counts, not [one-end] above. */
    filch_load_relaxed(p);
    /* relaxed: this is no edge. */
    filch_load_acquire(p);

    /* acquire [no-arrow] */
    if (filch_load_acquire(p)) {
        filch_load_acquire(p);
    }
    filch_load_acquire(p);

    /* acquire [in-fence], which good/README.md lists for all that include good/good.h */
    filch_load_acquire(p);
    f(1);
    f(2);
    f(3);
    f(4);
    f(5);
    f(6);
    filch_load_acquire(p);
    f(1);
    f(2);
    f(3);
    f(4);
    f(5);
    f(6);
    f(7);
    filch_load_acquire(p);

    /* acquire [in-header], listed in a header that this file does not include */
    filch_load_acquire(p);

    /* [unheard-of] */
    filch_cas_seq_cst(p, &expected, 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* acquire [in-fence] */
#define COVERED(p)                                                                                 \
    {                                                                                              \
        filch_load_acquire(p);                                                                     \
    }
static int x = filch_load_acquire(p);

#define INSIDE(p)                                                                                  \
    {                                                                                              \
        /* acquire [in-fence] */                                                                   \
        filch_load_acquire(p);                                                                     \
    }                                                                                              \
    filch_load_acquire(p)
