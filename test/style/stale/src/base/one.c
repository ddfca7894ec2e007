/* SPDX-License-Identifier: MIT */
void one(filch_atomic_u32 *word)
{
    filch_store_relaxed(word, 1);
}
