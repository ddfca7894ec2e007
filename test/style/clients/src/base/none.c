/* SPDX-License-Identifier: MIT */
void none(filch_atomic_u32 *word) { filch_store_seq_cst(word, 1); }
