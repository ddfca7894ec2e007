/* SPDX-License-Identifier: MIT */
/* Covered by a client; by one that is missing; by one that is not built. */
int covered(filch_atomic_u32 *word)
{
    filch_store_release(word, 1);
    return filch_load_acquire(word);
}
