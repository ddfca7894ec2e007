/* SPDX-License-Identifier: MIT */
#define MACRO(word)                                                                                \
    do {                                                                                           \
        filch_store_release(word, 0);                                                              \
    } while (0)
