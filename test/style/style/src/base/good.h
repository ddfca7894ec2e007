/* SPDX-License-Identifier: MIT */
/* Used by good.c, and explained in README.md. */
int good(void);
