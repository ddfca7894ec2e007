/* SPDX-License-Identifier: MIT */
/*
 * A stack that loses or changes entries, so that a test can see the check fail.
 *
 * With 4-byte entries it loses one in a thousand; with 8-byte entries only the sum is wrong.
 */
#ifndef BENCH_LOSSY_H
#define BENCH_LOSSY_H

#include "baseline.h"

typedef bench_stack bench_lossy;

#define bench_lossy_init bench_stack_init
#define bench_lossy_push bench_stack_push
#define bench_lossy_size_hint bench_stack_size_hint
#define bench_lossy_fini bench_stack_fini

static inline bool bench_lossy_pop(bench_lossy *s, filch_entry *entry)
{
    bool is_popped = bench_stack_pop(s, entry);

    if (is_popped && *entry % 1000 == 0) {
        if (sizeof *entry == 4)
            return bench_lossy_pop(s, entry);
        *entry += 1;
    }
    return is_popped;
}

#endif
