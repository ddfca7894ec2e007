/* SPDX-License-Identifier: MIT */
/*
 * What waiting needs of scopes.
 */
#ifndef FILCH_WAIT_SCOPE_H
#define FILCH_WAIT_SCOPE_H

#include "strand/strand.h"

#include <filch/scope.h>

/* The strand runs a task of the scope, and will wait: who cancels the scope finds it. Off again at the end of its task. */
void filch_scope_enlist(filch_scope *scope, filch_strand *strand);

#endif
