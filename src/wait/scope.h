/* SPDX-License-Identifier: MIT */
/*
 * The part of scopes that waits need.
 */
#ifndef FILCH_WAIT_SCOPE_H
#define FILCH_WAIT_SCOPE_H

#include "strand/strand.h"

#include <filch/scope.h>

/* Add the strand, which runs a task of the scope and is about to wait, to the list that
 * filch_scope_cancel goes through. The end of the task removes it. */
void filch_scope_enlist(filch_scope *scope, filch_strand *strand);

#endif
