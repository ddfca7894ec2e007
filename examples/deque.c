/* SPDX-License-Identifier: MIT */
/*
 * A deque on its own, without a pool: one thread makes work and does it, two others steal from it.
 *
 * Another kind is another name: filch_abp_push, filch_locked_push ...
 */
#define FILCH_ENTRY struct chunk * /* what is in it; without this, void * */
#include <filch/deque/chaselev.h>
#include <pthread.h>
#include <stdio.h>

enum { LIMIT = 200000, CHUNK = 500, CHUNKS = LIMIT / CHUNK, THIEVES = 2 };

/* Count the primes from `first` on. Plain data: whoever gets the chunk has it alone. */
struct chunk {
    int first, primes;
};

static struct chunk chunks[CHUNKS];
static filch_chaselev deque;
static filch_atomic_u32 left; /* chunks that nobody has counted yet */

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
    /* The threads are joined before anybody looks at the chunk. */
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
        case FILCH_STEAL_LOST: /* another was faster: try again */
            break;
        case FILCH_STEAL_EMPTY: /* a pool would look elsewhere, then sleep */
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
            count(&chunks[i]); /* no memory: do it at once */
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
