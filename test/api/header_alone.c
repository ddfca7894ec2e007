/* SPDX-License-Identifier: MIT */
/* Compiled once per public header and language: a header compiles alone, and may be included
 * twice. */
#include FILCH_HEADER
#include FILCH_HEADER

/* A translation unit must declare something, and a header may define macros only. */
extern int header_alone;
