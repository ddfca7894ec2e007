/* SPDX-License-Identifier: MIT */
/* Declared in base/bad.h, and explained in src/worker/README.md: neither of them is there. */
#include "base/good.h"

static const char *name = "base/gone.c"; // a string is no comment, but good.md is named in one

int  bad( void ) { return name != 0; }
