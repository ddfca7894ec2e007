/* SPDX-License-Identifier: MIT */
/*
 * A deque without a pool: one thread pushes work and pops it, two other threads steal from it.
 *
 * Every kind of deque has the same functions under its own prefix: filch_abp_push, ...
 */
#define FILCH_ENTRY struct chunk * /* the type of an entry; void * by default */
#include <filch/deque/chaselev.h>
#include <pthread.h>
#include <stdio.h>

enum { LIMIT = 200000, CHUNK = 500, CHUNKS = LIMIT / CHUNK, THIEVES = 2 };

/* Count the primes from `first` on. Plain data: the thread that takes a chunk owns it. */
struct chunk {
    int first, primes;
};

static struct chunk chunks[CHUNKS];
static filch_chaselev deque;
static filch_atomic_u32 left; /* chunks not yet counted */

static int is_prime(int n)
{
    for (int k = 2; k * k <= n; k++)
        if (n % k == 0)
            return 0;
    return n > 1;
}

static void count(struct chunk *chunk)
{
    for (int n = chunk->first; n < chunk->first + CHUNK; n++)
        chunk->primes += is_prime(n);
    /* relaxed: main reads the chunks only after it has joined the threads. */
    filch_fetch_add_relaxed(&left, -1u);
}

static void *thief(void *arg)
{
    int *stolen = arg;
    struct chunk *chunk;

    while (filch_load_relaxed(&left) > 0) {
        switch (filch_chaselev_steal(&deque, &chunk)) {
        case FILCH_STEAL_WON: /* the oldest */
            count(chunk);
            ++*stolen;
            break;
        case FILCH_STEAL_LOST: /* another thread was faster: try again */
            break;
        case FILCH_STEAL_EMPTY: /* a pool would search elsewhere, then sleep */
            filch_pause();
            break;
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THIEVES];
    int stolen[THIEVES] = {0}, started = 0, popped = 0, primes = 0;
    struct chunk *chunk;

    if (filch_chaselev_init(&deque, 0))
        return 1;
    filch_store_relaxed(&left, CHUNKS);
    while (started < THIEVES &&
           pthread_create(&threads[started], NULL, thief, &stolen[started]) == 0)
        started++;

    for (int i = 0; i < CHUNKS; i++) {
        chunks[i].first = i * CHUNK;
        if (filch_chaselev_push(&deque, &chunks[i]))
            count(&chunks[i]); /* no memory: count it now */
    }
    while (filch_chaselev_pop(&deque, &chunk)) { /* the newest */
        count(chunk);
        popped++;
    }

    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        fprintf(stderr, "thief %d: %d chunks\n", i, stolen[i]);
    }
    fprintf(stderr, "owner: %d chunks\n", popped);
    for (int i = 0; i < CHUNKS; i++)
        primes += chunks[i].primes;
    printf("%d primes below %d\n", primes, LIMIT);
    filch_chaselev_fini(&deque);
    return 0;
}
