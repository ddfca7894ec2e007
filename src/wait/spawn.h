/* SPDX-License-Identifier: MIT */
/*
 * A task of a scope, from its spawn to its end. Shared by filch_scope_spawn and filch_future_spawn.
 */
#ifndef FILCH_WAIT_SPAWN_H
#define FILCH_WAIT_SPAWN_H

#include "worker/job.h"

#include <filch/future.h>

typedef struct filch_spawned filch_spawned;

/* Runs the task if `refused` is 0. Otherwise `refused` is the reason why it does not run, and `f`
 * is NULL if that is -ENOMEM. Leaves an error for the scope in spawned->err. */
typedef void filch_spawned_fn(filch_frame *f, filch_spawned *spawned, int refused);

struct filch_spawned {
    filch_job job; /* first: in a queue it is the task */
    filch_spawned_fn *run;
    union {
        filch_task_fn *task;
        filch_future_fn *async;
    };
    void *arg;
    filch_future *future; /* of filch_future_spawn */
    int err;
    _Alignas(max_align_t) unsigned char room[]; /* the copied argument, then the local values */
};

/* Make a task of the scope with room for `bytes`; waits for the scope's limit. Returns 0, or
 * -ENOMEM, -ECANCELED, -EOWNERDEAD. The caller fills in the rest, then calls filch_spawn_go. */
int filch_spawn_task(filch_frame *f, filch_scope *scope, filch_spawned_fn *run, size_t bytes,
                     filch_spawned **out);
void filch_spawn_go(filch_spawned *spawned);

#endif
