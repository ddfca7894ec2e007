/* SPDX-License-Identifier: MIT */
/*
 * idle: the CPU time of a pool without work, after its workers have fallen asleep. The size is in
 * milliseconds.
 */
#include "bench.h"

int bench_idle(bench_run *run)
{
    /* main.c has just warmed the pool up. */
    run->elapsed_ns = probe_idle(run->size);
    run->checksum = 0;
    return 0;
}
