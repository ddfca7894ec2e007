/* SPDX-License-Identifier: MIT */
/*
 * The signal that dumps all pools: filch_dump_on_signal.
 *
 *     the signal -> handler: ring the keeper's bell -> the keeper: filch_pool_dump of each pool
 *
 * The handler may interrupt a thread that holds any lock, so it only sets a flag and rings. If all
 * other threads block the signal, the keeper accepts it.
 *
 * The keeper does not wait for a slow reader of stderr: it also starts threads. So it dumps into
 * memory. Then it writes as much as the reader takes, without blocking, again and again. While the
 * keeper writes, it visits no pool: filch_pool_destroy does not wait for the reader.
 */
#ifndef FILCH_WORKER_DUMP_SIGNAL_H
#define FILCH_WORKER_DUMP_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

/* Once in a process: choose the signal in FILCH_DUMP_SIGNAL. */
void filch_dump_read_environment(void);

/* By the keeper, after its bell was rung: accept the signal, dump if it has come, and write to
 * stderr. Returns when to call again, if the reader of stderr is slow; otherwise FILCH_NEVER_NS. If
 * the keeper `is_ending`, this waits for the reader, but no longer than a second. */
uint64_t filch_dump_serve(bool is_ending);

/* In the child of a fork(): drop what the parent has still to print. The choice of the signal
 * stays: returns whether there is one. */
bool filch_dump_forked(void);

#endif
