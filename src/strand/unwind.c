/* SPDX-License-Identifier: MIT */
#include "strand/unwind.h"

#include "base/symbol.h"

#include <filch/impl/exceptions.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 256

static const char exit_text[] =
    "a task, a hook or a blocking call ended its thread, by pthread_exit or pthread_cancel";

void filch_misuse(const char *text, uintptr_t fn)
{
    char name[NAME_BYTES];

    filch_symbol_name(fn, name, sizeof name);
    fprintf(stderr, "filch: %s: %s\n", text, name);
    abort();
}

void filch_exceptions_report(const char *task)
{
    fprintf(stderr, "filch: an exception leaves the task %s\n", task);
}

void filch_exceptions_exit(const char *task)
{
    fprintf(stderr, "filch: %s: %s\n", exit_text, task);
    abort();
}

/* Weak: a program in C has no unwinder of its own. Some systems have dlopen in another library. */
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP
#pragma weak dlopen
#pragma weak dlsym

typedef struct unwinder {
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
    uintptr_t (*get_cfa)(struct _Unwind_Context *);
    uintptr_t (*get_ip)(struct _Unwind_Context *);
} unwinder;

/* The unwinder that has called the personality routine. It alone can read its contexts. For
 * pthread_exit, glibc loads libgcc_s, also into programs that have another unwinder. */
static bool find_unwinder(unwinder *u, bool is_exit)
{
    void *loaded =
        is_exit && dlopen && dlsym ? dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;

    *u = (unwinder){_Unwind_Backtrace, _Unwind_GetCFA, _Unwind_GetIP};
    if (loaded) {
        *(void **)&u->backtrace = dlsym(loaded, "_Unwind_Backtrace");
        *(void **)&u->get_cfa = dlsym(loaded, "_Unwind_GetCFA");
        *(void **)&u->get_ip = dlsym(loaded, "_Unwind_GetIP");
    }
    return u->backtrace && u->get_cfa && u->get_ip;
}

/* A walk over the stack, from the innermost function outwards, to one with FILCH_STOP_UNWIND. */
typedef struct walk {
    unwinder unwinder;
    uintptr_t cfa, ip; /* of that function */
    uintptr_t callee;  /* an address in the function that it has called */
    bool is_found;
} walk;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    walk *w = arg;
    uintptr_t ip = w->unwinder.get_ip(context);

    w->is_found = ip == w->ip && w->unwinder.get_cfa(context) == w->cfa;
    if (w->is_found)
        return _URC_END_OF_STACK;
    w->callee = ip - 1;
    return _URC_NO_REASON;
}

/* `context` belongs to a function with FILCH_STOP_UNWIND. Write the name of the function that this
 * one has called. */
static void name_callee(struct _Unwind_Context *context, bool is_exit, char *name, size_t bytes)
{
    walk w = {.is_found = false};

    snprintf(name, bytes, "(unknown)");
    if (!find_unwinder(&w.unwinder, is_exit))
        return;
    w.cfa = w.unwinder.get_cfa(context);
    w.ip = w.unwinder.get_ip(context);
    w.unwinder.backtrace(step, &w);
    if (w.is_found)
        filch_symbol_name(w.callee, name, bytes);
}

/*
 * The unwinder calls this for each frame that has FILCH_STOP_UNWIND.
 *
 * A C++ exception has a first phase that looks for a handler, and unwinds nothing. The error here
 * makes the C++ runtime call std::terminate where the exception was thrown. pthread_exit has only
 * the second phase.
 */
_Unwind_Reason_Code filch_unwind_personality(int version, _Unwind_Action actions,
                                             _Unwind_Exception_Class thrower,
                                             struct _Unwind_Exception *exception,
                                             struct _Unwind_Context *context)
{
    bool is_exit = actions & _UA_FORCE_UNWIND;
    char name[NAME_BYTES];

    (void)version;
    (void)thrower;
    (void)exception;
    if (!is_exit && !(actions & _UA_SEARCH_PHASE))
        return _URC_CONTINUE_UNWIND;
    name_callee(context, is_exit, name, sizeof name);
    if (is_exit)
        filch_exceptions_exit(name);
    fprintf(stderr, "filch: an exception leaves the function %s\n", name);
    return _URC_FATAL_PHASE1_ERROR;
}
