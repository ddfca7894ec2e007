/* SPDX-License-Identifier: MIT */
/*
 * Values that travel with a task: a request's number, a logger, a user. What the task forks, spawns or calls sees them, too, on
 * whatever thread it runs.
 *
 *     static const filch_key request = {"request"};
 *
 *     void serve(filch_frame *f, struct request *r)
 *     {
 *         filch_binding binding;
 *         filch_local_bind(f, &binding, &request, r);
 *         ... filch_local_get(f, &request) is r, here and in all that is forked or spawned from here ...
 *         filch_local_unbind(f, &binding);
 *     }
 *
 * A binding lives on the stack of who binds, like a variable, and is unbound in reverse order, after what was forked meanwhile has been
 * joined; what was forked before is joined before filch_local_bind or after filch_local_unbind, or some of it would see the value, too. A task that is spawned into a scope takes copies along, and may live longer. What the value points to is the caller's.
 * Binding allocates nothing and cannot fail. A plain thread, whose handle is NULL, has no values: nothing is bound there, and none is found.
 */
#ifndef FILCH_LOCAL_H
#define FILCH_LOCAL_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Its address is what counts; the name is for debuggers. */
typedef struct filch_key {
    const char *name;
} filch_key;

typedef struct filch_binding {
    struct filch_binding *outer;
    const filch_key *key;
    void *value;
    filch_frame *from; /* for tasks from this slot on */
} filch_binding;

/* From now on the value of `key` is `value` on the strand of `f`. */
FILCH_API void filch_local_bind(filch_frame *f, filch_binding *binding, const filch_key *key,
                                void *value);

/* What it was before. The last binding first. */
FILCH_API void filch_local_unbind(filch_frame *f, filch_binding *binding);

/* The value, or NULL: nobody has bound it. */
FILCH_API void *filch_local_get(filch_frame *f, const filch_key *key);

#ifdef __cplusplus
}
#endif

#endif
