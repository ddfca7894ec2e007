/* SPDX-License-Identifier: MIT */
/* The checksums that are known beforehand, for the programs and for the driver. */
#ifndef BENCH_EXPECTED_H
#define BENCH_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

/* True when the right checksum of `work` at this size is known; then it is in `*checksum`. */
bool expected_checksum(const char *work, long size, int64_t *checksum);

/* The number of forks in fib(n). Runtimes that are slow run a smaller n; the time per fork makes
 * them comparable. */
int64_t fib_fork_count(long n);

#endif
