/* SPDX-License-Identifier: MIT */
/* Compiled once per public header and language: each compiles alone, and twice. */
#include FILCH_HEADER
#include FILCH_HEADER

/* A header may have macros only, and a translation unit must have something. */
extern int header_alone;
