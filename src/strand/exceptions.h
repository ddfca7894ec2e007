/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions in tasks, in a program that has C++.
 *
 * The C++ runtime keeps two things for each thread:
 *
 *   - the exceptions that it handles, for code inside a `catch`;
 *   - the number of exceptions that are in flight, while destructors run because of them.
 *
 * But a task that waits inside a `catch` or a destructor leaves its thread, and other tasks run
 * there. So a strand takes this state with it when it leaves its stack. A thread keeps its own
 * state while it runs a strand. A new task starts with none.
 *
 * Where there are no exceptions, this costs a call of the runtime for each strand that a worker
 * enters, and writes nothing. In a program without C++ it costs two tests of one variable.
 *
 * No exception may leave a task: strand/unwind.h.
 */
#ifndef FILCH_STRAND_EXCEPTIONS_H
#define FILCH_STRAND_EXCEPTIONS_H

#include "strand/strand.h"

/* The address of the calling thread's state. Not __attribute__((const)): a strand may be on another
 * thread at its next call. */
typedef filch_exceptions *filch_exceptions_fn(void);

/* NULL: there is no C++ in the program. */
typedef FILCH_ATOMIC(filch_exceptions_fn *) filch_exceptions_source;
extern filch_exceptions_source filch_exceptions_get __attribute__((visibility("hidden")));

static inline filch_exceptions *filch_exceptions_of_thread(void)
{
    /* relaxed: code, no data. A library with C++ that is loaded now has thrown nothing before. */
    filch_exceptions_fn *get = filch_load_relaxed(&filch_exceptions_get);
    return __builtin_expect(get != NULL, 0) ? get() : NULL;
}

static inline bool filch_exceptions_exist(const filch_exceptions *exceptions)
{
    return exceptions->handled || exceptions->in_flight;
}

/* The parts of the two functions below that write. */
void filch_exceptions_take(filch_exceptions *current, filch_strand *strand, filch_exceptions *own);
void filch_exceptions_give(filch_exceptions *current, filch_strand *strand,
                           const filch_exceptions *own, bool has_ended);

/* Before the thread enters the strand: keep the thread's state in `own`, and give it that of the
 * strand. Returns the address of the thread's state, or NULL without C++. */
static inline filch_exceptions *filch_exceptions_enter(filch_strand *strand, filch_exceptions *own)
{
    filch_exceptions *current = filch_exceptions_of_thread();

    *own = (filch_exceptions){NULL, 0};
    if (current && (strand->has_exceptions || filch_exceptions_exist(current)))
        filch_exceptions_take(current, strand, own);
    return current;
}

/* After the strand has left its stack. If its task has ended, the strand's next task starts with no
 * exceptions. `current` is what filch_exceptions_enter returned. */
static inline void filch_exceptions_leave(filch_exceptions *current, filch_strand *strand,
                                          const filch_exceptions *own, bool has_ended)
{
    /* The strand may have loaded a library with C++. */
    if (!current)
        current = filch_exceptions_of_thread();
    if (current && (filch_exceptions_exist(own) || filch_exceptions_exist(current)))
        filch_exceptions_give(current, strand, own, has_ended);
}

#endif
