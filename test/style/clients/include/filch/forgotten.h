/* SPDX-License-Identifier: MIT */
#define FORGOTTEN(word)                                                                            \
    do {                                                                                           \
        filch_store_relaxed(word, 0);                                                              \
        filch_exchange_acq_rel(word, 1);                                                           \
    } while (0)
