/* SPDX-License-Identifier: MIT */
/*
 * Tasks, and how to fork, call and join them.
 *
 *     FILCH_TASK(long, fib, (long, n))
 *     {
 *         if (n < 2)
 *             return n;
 *         FILCH_FORK(left, fib, n - 1);          // may be stolen from here on
 *         long right = FILCH_CALL(fib, n - 2);
 *         return FILCH_JOIN(left) + right;       // runs it here unless it was stolen
 *     }
 *
 *     long answer(filch_pool *pool)
 *     {
 *         return FILCH_RUN(pool, fib, 40);       // from any thread
 *     }
 *
 * FILCH_TASK(result, name, (type, argument)...) opens a function of up to 16 arguments. Each pair
 * stands in brackets; its type is no array. The result has any type but an array, also void. A type
 * with a comma, like std::pair<int, int>, needs a name of its own, by typedef or using.
 * Tasks are defined where functions are, in C++ also in a namespace, but not in a class.
 * The function is static. For other files, write a function that calls it by FILCH_RUN or, with a
 * frame, by FILCH_CALL_ON; or put the whole task into a header.
 *
 * Inside a task:
 *
 *     FILCH_FORK(child, name, ...)  declares `child`, which needs another name than its task. The
 *                                   task may run elsewhere, or at its join. In a loop, use
 *                                   FILCH_SPAWN or FILCH_FORK_INTO instead
 *     FILCH_JOIN(child)             waits for `child`; its value is the result. The last forked is
 *                                   joined first. All are joined before the function returns. Not
 *                                   two in one expression: C does not define which comes first
 *     FILCH_CALL(name, ...)         an ordinary call: the same task, here and now
 *     FILCH_SPAWN(name, ...)        a fork without a name, for loops; the result is dropped
 *     FILCH_SYNC()                  joins all that this function has spawned so far. Join what it
 *                                   has forked by name before that
 *     FILCH_HERE                    the frame, for the functions that take a `filch_frame *f`
 *
 * In a function that has a frame `f` without being a task, like the body of a loop:
 *
 *     FILCH_CALL_ON(f, name, ...)   calls the task, which may then fork
 *
 * Anywhere, in tasks and in plain threads:
 *
 *     FILCH_RUN(pool, name, ...)    runs the task in the pool and waits; its value is the result.
 *                                   With NULL for the pool, or where filch_run would return an
 *                                   error, it runs the task serially
 *     FILCH_SUBMIT(pool, name, ...) does not wait, and drops the result. Returns 0 or an error of
 *                                   filch_submit; -EINVAL without a pool. The arguments are copied
 *                                   byte by byte: in C++ they must be trivially copyable. None may
 *                                   need a larger alignment than malloc gives
 *     FILCH_FUTURE_SUBMIT(pool, &answer, name, ...)
 *                                   the same with a future for the result, see below
 *
 * A result that is needed later, from any thread and without a scope, goes into a `<name>_future`:
 *
 *     fib_future answer;
 *     int err = FILCH_FUTURE_SUBMIT(pool, &answer, fib, 30);
 *     if (!err)
 *         err = filch_future_get(f, &answer.future, NULL);
 *     if (!err)
 *         printf("%ld\n", answer.result);
 *
 *   - The memory of `answer` is the caller's. It holds the arguments, too, and must stay until
 *     answer.future is complete. If FILCH_FUTURE_SUBMIT returns an error (as of filch_submit), the
 *     future never completes, and the memory is free at once.
 *   - answer.future is a filch_future: it can be waited for with a deadline and in a filch_select.
 *     FILCH_FUTURE_SUBMIT initialises it. Its value is &answer.result, or NULL for a void task.
 *   - It completes with 0; or with -ENOMEM, and the task did not run: all stacks belong to tasks
 *     that wait, and there is no memory for another.
 *
 * If the number of forks is known only at run time, and their results matter, keep the forks in an
 * array of `<name>_forked`:
 *
 *     fib_forked child[8];
 *     for (int i = 0; i < 8; i++)
 *         FILCH_FORK_INTO(child[i], fib, i);
 *     for (int i = 8; i-- > 0;)
 *         sum += FILCH_JOIN_FROM(child[i], fib);
 *
 * Between fork and join the arguments are in a 64-byte slot of the strand (filch/strand.h). If they
 * do not fit, they stay in `child`. Only FILCH_SPAWN insists that they fit.
 *
 * Two tasks that call each other: announce one with FILCH_DECLARE(result, name, ...), and open it
 * later with FILCH_BODY and the same arguments.
 *
 * In C++:
 *
 *   - An exception must not leave a task, however the task was started: its parent may run on
 *     another stack, and the task may have forks that still run. The program ends by
 *     std::terminate, after a message that names the task. This holds for every function that the
 *     library calls, as in filch_fork, filch_submit, filch_scope_spawn or filch_for; there the
 *     message has the name of the function. Inside a task, exceptions are as everywhere, but no
 *     exception may skip a join.
 *   - Arguments and results are trivially copyable: they are copied byte by byte between stacks.
 *     Pass a pointer to anything else. References are no arguments.
 *
 * Unoptimised programs, and those with -DFILCH_DEBUG, check that forks are joined in order. They
 * stop with the file and line of the wrong join, or of the task that returned without a join. The
 * same holds for filch_join, and for filch_fork, whose own line is named. Test a program in this
 * way: optimised programs find few of these mistakes (filch/pool.h), and otherwise compute a wrong
 * result or hang. Compile with -Wall: it warns about the variable `child_join` if `child` is never
 * joined.
 *
 * Most mistakes with these macros are one short error of the compiler. An undeclared `filch_here`
 * means that FILCH_FORK or another macro is used outside a task. Two mistakes are many errors: a
 * task that is defined twice, and (argument, type) for (type, argument). There the first error
 * tells most, and -Wfatal-errors hides the others.
 *
 * Without macros, for other languages and other tastes:
 *
 *     void tree(filch_frame *f, void *arg)
 *     {
 *         filch_frame *mark = f;
 *         f = filch_fork(f, tree, left_of(arg));
 *         tree(f, right_of(arg));
 *         f = filch_join(f, mark);
 *     }
 */
#ifndef FILCH_TASK_H
#define FILCH_TASK_H

#ifndef FILCH_IMPL_ALL_WARNINGS
#pragma GCC system_header
#endif

#include <filch/impl/task.h>
#include <filch/pool.h>
#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fork the task fn(f, arg). Returns the frame to go on with. If the strand has no room left, the
 * task has been run on return. */
FILCH_API filch_frame *filch_fork(filch_frame *f, filch_fn *fn, void *arg) __attribute__((nothrow));

/*
 * Join all that was forked since the frame was `mark`, newest first. Tasks that were not stolen run
 * here. For a task that was stolen, the strand is suspended until the task is complete.
 *
 * Returns `mark`, the frame to go on with. With the old frame, a later wait would offer the joined
 * tasks to thieves once more.
 */
FILCH_API filch_frame *filch_join(filch_frame *f, filch_frame *mark) __attribute__((nothrow));

/* The same in checked programs. */
FILCH_API filch_frame *filch_check_plain_fork(const char *file, int line, filch_frame *f,
                                              filch_fn *fn, void *arg);
FILCH_API filch_frame *filch_check_plain_join(const char *file, int line, filch_frame *f,
                                              filch_frame *mark);
#if FILCH_IMPL_PLACES
#define filch_fork(...) FILCH_IMPL_PLACE(filch_check_plain_fork, __VA_ARGS__)
#define filch_join(...) FILCH_IMPL_PLACE(filch_check_plain_join, __VA_ARGS__)
#endif

/* FILCH_SYNC. */
FILCH_IMPL_ALWAYS_INLINE void filch_impl_sync(filch_frame **at, filch_frame *mark)
{
    FILCH_IMPL_CHECK_SYNC(*at, mark);
    *at = (filch_join)(*at, mark);
}

#ifdef __cplusplus
}
#endif

/* ---- The macros of the opening comment ------------------------------------------------------- */

/* The functions `filch_impl_refuse_*` are for clang: see FILCH_IMPL_REFUSE. */
#define FILCH_TASK(...)                                                                            \
    FILCH_IMPL_CAT(FILCH_IMPL_TASK_, FILCH_IMPL_SHAPE(__VA_ARGS__, ~))                             \
    (filch_impl_refuse_pair, filch_impl_refuse_many, filch_impl_refuse_result, __VA_ARGS__)
#define FILCH_DECLARE(...)                                                                         \
    FILCH_IMPL_CAT(FILCH_IMPL_DECLARE_, FILCH_IMPL_SHAPE(__VA_ARGS__, ~))                          \
    (filch_impl_refuse_pair, filch_impl_refuse_many, filch_impl_refuse_result, __VA_ARGS__)
#define FILCH_BODY(...)                                                                            \
    FILCH_IMPL_CAT(FILCH_IMPL_BODY_, FILCH_IMPL_SHAPE(__VA_ARGS__, ~))                             \
    (filch_impl_refuse_pair, filch_impl_refuse_many, filch_impl_refuse_result, __VA_ARGS__)

#define FILCH_HERE filch_here

#define FILCH_FORK(child, ...)                                                                     \
    FILCH_IMPL_FORK(child, child##_join, __VA_ARGS__, ~)                                           \
    (&filch_here, &child FILCH_IMPL_ARGUMENTS(__VA_ARGS__))
#define FILCH_FORK_INTO(child, ...)                                                                \
    (FILCH_IMPL_TASK_FUNCTION(_fork, __VA_ARGS__, ~)(&filch_here,                                  \
                                                     &(child)FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))

#define FILCH_JOIN(child) ((child##_join)(&filch_here, &child FILCH_IMPL_PLACE_OF(#child)))
#define FILCH_JOIN_FROM(child, name)                                                               \
    (FILCH_IMPL_TASK_FUNCTION(_join, name, ~)(&filch_here, &(child)FILCH_IMPL_PLACE_OF(#child)))

#define FILCH_CALL(...)                                                                            \
    (FILCH_IMPL_TASK_FUNCTION(_body, __VA_ARGS__,                                                  \
                              ~)(filch_here, filch_here FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))

#define FILCH_CALL_ON(f, ...)                                                                      \
    (FILCH_IMPL_TASK_FUNCTION(_body, __VA_ARGS__, ~)((f), (f)FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))

#define FILCH_SPAWN(...)                                                                           \
    do {                                                                                           \
        FILCH_IMPL_SPAWN(__VA_ARGS__, ~)                                                           \
        (&filch_here, filch_mark FILCH_IMPL_ARGUMENTS(__VA_ARGS__));                               \
    } while (0)
#define FILCH_SYNC() filch_impl_sync(&filch_here, filch_mark)

#define FILCH_RUN(pool, ...)                                                                       \
    (FILCH_IMPL_TASK_FUNCTION(_run, __VA_ARGS__, ~)((pool)FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))
#define FILCH_SUBMIT(pool, ...)                                                                    \
    (FILCH_IMPL_SUBMIT(__VA_ARGS__, ~)((pool)FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))
#define FILCH_FUTURE_SUBMIT(pool, future, ...)                                                     \
    (FILCH_IMPL_TASK_FUNCTION(_future_start, __VA_ARGS__,                                          \
                              ~)((pool), (future)FILCH_IMPL_ARGUMENTS(__VA_ARGS__)))

#endif
