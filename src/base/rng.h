/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for choosing victims: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
 * Number Generators, OOPSLA 2014).
 *
 * One word of state, which belongs to one thread. Every seed is good, and neighbouring seeds give
 * unrelated sequences. So a worker can be seeded with seed + index.
 */
#ifndef FILCH_BASE_RNG_H
#define FILCH_BASE_RNG_H

#include <stdint.h>

typedef struct filch_rng {
    uint64_t state;
} filch_rng;

static inline void filch_rng_seed(filch_rng *rng, uint64_t seed)
{
    rng->state = seed;
}

static inline uint64_t filch_rng_next(filch_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number from 0 to n-1, by a multiplication instead of a division (Lemire 2019). The bias is
 * below n in 2^32: too small to matter for victims. `n` is not 0. */
static inline uint32_t filch_rng_below(filch_rng *rng, uint32_t n)
{
    return (uint32_t)(((filch_rng_next(rng) >> 32) * n) >> 32);
}

#endif
