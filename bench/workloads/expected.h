/* SPDX-License-Identifier: MIT */
/* Checksums known beforehand, for the programs and the driver. */
#ifndef BENCH_EXPECTED_H
#define BENCH_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

/* If the right checksum of `work` at this size is known, store it and return true. */
bool expected_checksum(const char *work, long size, int64_t *checksum);

/* The number of forks in fib(n). Slow runtimes run a smaller n, so they are compared by time per
 * fork. */
int64_t fib_fork_count(long n);

#endif
