/* SPDX-License-Identifier: MIT */
/*
 * idle: the CPU time that a pool uses while it has nothing to do, after it has fallen asleep. The size is
 * in milliseconds.
 */
#include "bench.h"

int bench_idle(bench_run *run)
{
    /* main.c has warmed the pool up, and nothing lies in between. */
    run->elapsed_ns = probe_idle(run->size);
    run->checksum = 0;
    return 0;
}
