/* SPDX-License-Identifier: MIT */
#include "expected.h"

#include <stddef.h>
#include <string.h>

static int64_t fib(long n)
{
    int64_t current = 0;
    int64_t next = 1;
    for (long i = 0; i < n; i++) {
        int64_t after = current + next;
        current = next;
        next = after;
    }
    return current;
}

/* Every call with n >= 2 forks once: F(n) = 1 + F(n - 1) + F(n - 2), with F(0) = F(1) = 0. */
int64_t fib_fork_count(long n)
{
    return fib(n + 1) - 1;
}

/* Counted by the serial twin; nqueens is sequence A000170 of the OEIS. */
static const struct {
    const char *work;
    long size;
    int64_t checksum;
} known[] = {
    {"nqueens", 8, 92},      {"nqueens", 9, 352},      {"nqueens", 10, 724},
    {"nqueens", 11, 2680},   {"nqueens", 12, 14200},   {"nqueens", 13, 73712},
    {"nqueens", 14, 365596}, {"nqueens", 15, 2279184}, {"uts", 2000, 4750801},
    {"matmul", 1024, 6144},
};

bool expected_checksum(const char *work, long size, int64_t *checksum)
{
    if (strcmp(work, "fib") == 0) {
        *checksum = fib(size);
        return true;
    }
    if (strcmp(work, "small_for") == 0) {
        *checksum = (int64_t)size * (size + 1) / 2;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].size == size && strcmp(known[i].work, work) == 0) {
            *checksum = known[i].checksum;
            return true;
        }
    }
    return false;
}
