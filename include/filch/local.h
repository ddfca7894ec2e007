/* SPDX-License-Identifier: MIT */
/*
 * Values that travel with a task: a request's number, a logger, a user. Every function that the
 * task calls, and every task that it forks or spawns, sees them, on any thread.
 *
 *     static const filch_key request_key = {"request"};
 *
 *     void serve(filch_frame *f, struct request *request)
 *     {
 *         filch_binding binding;
 *         filch_local_bind(f, &binding, &request_key, request);
 *         answer(f);          // here, filch_local_get(f, &request_key) is the request
 *         filch_local_unbind(f, &binding);
 *     }
 *
 * A binding is memory of the function that binds, like a local variable:
 *
 *   - Unbind in reverse order.
 *   - Join what was forked since filch_local_bind before filch_local_unbind.
 *   - Join what was forked earlier before filch_local_bind, or after filch_local_unbind. Otherwise
 *     some of it would see the value, too.
 *
 * A task that is spawned into a scope gets copies of the bindings, so it may outlive them. The
 * caller owns what the value points to.
 *
 * Binding allocates nothing and cannot fail. A plain thread, with NULL for `f`, has no values:
 * there these functions do nothing, and filch_local_get returns NULL.
 */
#ifndef FILCH_LOCAL_H
#define FILCH_LOCAL_H

#include <filch/impl/check.h>
#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A key is identified by its address; the name is for debuggers. */
typedef struct filch_key {
    const char *name;
} filch_key;

/* The members belong to the library. */
typedef struct filch_binding {
    struct filch_binding *outer;
    const filch_key *key;
    void *value;
    filch_frame *from; /* holds for tasks from this frame on */
} filch_binding;

/* Bind `value` to `key` for the calling task, until filch_local_unbind. Hides an earlier binding of
 * the same key. */
FILCH_API void filch_local_bind(filch_frame *f, filch_binding *binding, const filch_key *key,
                                void *value);

/* Restore the value from before the binding. The last binding is unbound first. */
FILCH_API void filch_local_unbind(filch_frame *f, filch_binding *binding);

/* The value that is bound to `key`, or NULL if none is. */
FILCH_API void *filch_local_get(filch_frame *f, const filch_key *key);

/* In programs compiled without optimisation, or with -DFILCH_DEBUG: stop at a call that is not in
 * reverse order, and print its file and line. */
FILCH_API void filch_check_local_unbind(const char *file, int line, filch_frame *f,
                                        filch_binding *binding);
#if FILCH_IMPL_PLACES
#define filch_local_unbind(...) FILCH_IMPL_PLACE(filch_check_local_unbind, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
