/* SPDX-License-Identifier: MIT */
/* Nothing to cover: filch_store_release(word, 1) stands in a comment, and a lock is no operation. */
void relaxed(filch_atomic_u32 *word)
{
    filch_store_relaxed(word, 1); /* not filch_load_acquire(word), and
                                   * not filch_load_seq_cst(word) */
    filch_lock_acquire(word);
}
