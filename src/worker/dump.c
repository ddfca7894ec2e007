/* SPDX-License-Identifier: MIT */
/*
 * Print the state of a pool, to find out why it does not go on.
 *
 * Workers are not stopped. So this reads only atomic words, and the list of strands under its lock.
 */
#include "worker/worker.h"

#include <errno.h>

static int worker_of(const filch_pool *pool, const filch_strand *strand)
{
    for (unsigned i = 0; i < pool->worker_count; i++)
        /* relaxed: only printed. */
        if (filch_load_relaxed(&pool->workers[i]->strand) == strand)
            return (int)i;
    return -1;
}

typedef struct dump {
    const filch_pool *pool;
    FILE *out;
    unsigned free_count;
} dump;

static void print_strand(filch_strand *strand, void *context)
{
    dump *d = context;
    const filch_pool *pool = d->pool;
    FILE *out = d->out;
    /* relaxed: only printed, all of this. */
    const char *at = filch_load_relaxed(&strand->waits_at);
    uint64_t word = filch_load_relaxed(&strand->wait.word),
             split = filch_load_relaxed(&strand->split.word);
    int worker = worker_of(pool, strand);

    if (worker < 0 && !at) {
        d->free_count++;
        return;
    }
    fprintf(out, "  strand %u ", filch_slabs_number(&pool->strands.slabs, strand));
    if (worker >= 0)
        fprintf(out, "runs on worker %d", worker);
    else if ((word & FILCH_WAIT_PHASE) == FILCH_WAIT_ENDED && (word & FILCH_WAIT_PARKED) == 0 &&
             word)
        fprintf(out, "may go on after waiting for %s", at);
    else
        fprintf(out, "waits for %s", at);
    if (!pool->strands.kind && filch_split_split(split) > filch_split_tail(split))
        fprintf(out, ", with %u tasks to steal",
                filch_split_split(split) - filch_split_tail(split));
    fputc('\n', out);
}

int filch_pool_dump(filch_pool *pool, FILE *out)
{
    dump d = {pool, out, 0};

    if (!pool || !out)
        return -EINVAL;
    /* relaxed: only printed. */
    fprintf(out, "pool '%s': %u workers, %u asleep; %u tasks from outside, %u waiting to run\n",
            pool->options.name, pool->worker_count, filch_sleep_sleeper_count(&pool->sleep),
            filch_load_relaxed(&pool->pending) & ~FILCH_POOL_AWAITED,
            filch_load_relaxed(&pool->inject.count));
    for (unsigned i = 0; i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        /* relaxed: only printed. */
        uint32_t ready = filch_load_relaxed(&worker->ready.count),
                 spawned = filch_load_relaxed(&worker->spawned.count);
        if (ready + spawned > 0)
            fprintf(out, "  worker %u has %u strands to go on with, and %u tasks to begin\n", i,
                    ready, spawned);
    }
    filch_lock_acquire(&pool->strands.slabs.lock);
    filch_slabs_each(&pool->strands.slabs, print_strand, &d);
    filch_lock_release(&pool->strands.slabs.lock);
    fprintf(out, "  %u strands are free\n", d.free_count);
    return ferror(out) ? -EIO : 0;
}
