/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the tests of scopes.
 */
#ifndef FILCH_TEST_SCOPE_SUPPORT_H
#define FILCH_TEST_SCOPE_SUPPORT_H

#include "pools.h"

static TEST_UNUSED void open_with(filch_scope *scope, filch_frame *f, filch_scope_options options)
{
    options.size = sizeof options;
    CHECK(filch_scope_open(f, scope, NULL, &options) == 0);
}

static TEST_UNUSED counter ran;

/* Returns the error at `arg`, or 0 without one. */
static TEST_UNUSED int count_one(filch_frame *f, void *arg)
{
    (void)f;
    counter_add(&ran, 1);
    return arg ? *(int *)arg : 0;
}

#endif
