/* SPDX-License-Identifier: MIT */
/*
 * For the replaced calls (calls_*.c): does this one fail?
 */
#ifndef FILCH_TEST_ATTACK_FAULTS_H
#define FILCH_TEST_ATTACK_FAULTS_H

#include "attack.h"

/* Choose by the seed and the number of calls so far. For code in signal handlers, too. */
bool fault_strikes(part fault);

/* The same, but at most half of the calls fail: the library repeats the call until it succeeds. */
bool fault_strikes_some(part fault);

/* Set errno to one of these errors, given as `int`s, and return -1. */
#define FAULT_ERROR(...)                                                                           \
    fault_error((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
int fault_error(const int *errors, size_t count);

/* A random number below `count`. */
size_t fault_below(size_t count);

void fault_count_blocks(long change);
void fault_count_mapped(long change);

/* Descriptors that the library made for itself, like eventfds: reads and writes of them do not
 * fail. */
void fault_set_own(int fd, bool is_own);
bool fault_is_own(int fd);

#endif
