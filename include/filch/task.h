/* SPDX-License-Identifier: MIT */
/*
 * Tasks, and how to fork, call and join them.
 *
 *     FILCH_TASK(long, fib, (long, n))
 *     {
 *         if (n < 2)
 *             return n;
 *         FILCH_FORK(left, fib, n - 1);          may be stolen from here on
 *         long right = FILCH_CALL(fib, n - 2);
 *         return FILCH_JOIN(left) + right;       runs it here unless it was stolen
 *     }
 *     long answer = FILCH_RUN(pool, fib, 40);    from any thread
 *
 * FILCH_TASK(result, name, (type, argument)...) opens a function of up to 16 arguments, each pair in
 * brackets, neither const nor an array, and of any result, void included. Inside it:
 *
 *     FILCH_FORK(child, name, ...)  declares `child`; the task may run elsewhere, or at its join. In a loop
 *                                   use FILCH_SPAWN, or FILCH_FORK_INTO an array
 *     FILCH_CALL(name, ...)         an ordinary call: the same task, here and now
 *     FILCH_JOIN(child)             waits for it and is its result. The last forked is joined first, and all
 *                                   are joined before the function returns. Not two in one
 *                                   expression: C does not say which is made first
 *     FILCH_SPAWN(name, ...)        a fork without a name, for loops; the result is dropped
 *     FILCH_SYNC()                  joins everything this function has spawned so far; what it forked
 *                                   by name is joined by name before
 *     FILCH_HERE                    the handle, for the functions that take a `filch_slot *f`
 *
 * and in a function that has a handle `f` without being a task, like the body of a loop:
 *
 *     FILCH_CALL_ON(f, name, ...)   calls the task, which may then fork
 *
 * FILCH_RUN(pool, name, ...) may be used anywhere. Without a pool (NULL) it runs the task serially.
 * FILCH_SUBMIT(pool, name, ...) does not wait, and drops the result: 0, or what filch_submit returns, -EINVAL without a pool. The arguments
 * are copied byte by byte: in C++ they must be trivially copyable, and none may need a larger alignment than malloc gives.
 *
 * Forks whose number is known only at run time and whose results matter keep their handles in
 * an array of `<name>_forked`:
 *
 *     fib_forked child[8];
 *     for (int i = 0; i < 8; i++)
 *         FILCH_FORK_INTO(child[i], fib, i);
 *     for (int i = 8; i-- > 0;)
 *         sum += FILCH_JOIN_FROM(child[i], fib);
 *
 * Between fork and join the arguments live in a 64-byte slot of the strand (filch/strand.h), or in the
 * handle when they are larger than that; only FILCH_SPAWN insists that they fit. Two tasks that call
 * each other are announced with FILCH_DECLARE(result, name, ...) and opened with FILCH_BODY(same).
 *
 * Optimised builds trust the caller to join what it forked, in order. Unoptimised builds, and those with
 * -DFILCH_DEBUG, check it, and stop with the file and line of the wrong join or the name of the task that returned
 * without one.
 *
 * Without macros, for other languages and other tastes:
 *
 *     void tree(filch_slot *f, void *arg)
 *     {
 *         filch_slot *mark = f;
 *         f = filch_fork(f, tree, left_of(arg));
 *         tree(f, right_of(arg));
 *         f = filch_join(f, mark);
 *     }
 */
#ifndef FILCH_TASK_H
#define FILCH_TASK_H

#include <filch/pool.h>
#include <filch/strand.h>

#ifdef FILCH_CHECKED
/* The library's own tasks choose. */
#elif defined(FILCH_DEBUG) || (!defined(NDEBUG) && !defined(__OPTIMIZE__))
#define FILCH_CHECKED 1
#else
#define FILCH_CHECKED 0
#endif

#define FILCH_ALWAYS_INLINE static inline __attribute__((always_inline, unused))

#ifdef __cplusplus
extern "C" {
#endif

/* Put the task `fn(arg)` on the strand of `f`. Returns the handle to go on with. When there is no room
 * left, the task has been run on return. */
FILCH_API filch_slot *filch_fork(filch_slot *f, filch_fn *fn, void *arg);

/* Join all that was forked since the handle was `mark`, newest first. Returns `mark`, the handle to go on with: with the old one, a wait would offer
 * what was joined once more. Tasks that were
 * not stolen run here; for one that was, the strand is suspended until it is complete. */
FILCH_API filch_slot *filch_join(filch_slot *f, filch_slot *mark);

/* Used by checked builds: count open forks, and stop the program at a join that is out of order. */
FILCH_API unsigned filch_check_enter(filch_slot *f);
FILCH_API void filch_check_leave(filch_slot *f, unsigned open, const char *task);
FILCH_API unsigned filch_check_fork(filch_slot *f);
FILCH_API void filch_check_join(filch_slot *f, unsigned order, const char *name, const char *file,
                                int line);
FILCH_API void filch_check_sync(filch_slot *f, filch_slot *mark);

/* Used by FILCH_RUN: like filch_run, but where that returns an error, runs the task serially. */
FILCH_API void filch_run_always(filch_pool *pool, filch_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

/* ---- The macros of the opening comment --------------------------------------------------------- */

#define FILCH_TASK(...)                                                                            \
    FILCH_DECLARE(__VA_ARGS__);                                                                    \
    FILCH_BODY(__VA_ARGS__)

#define FILCH_DECLARE(...)                                                                         \
    FILCH_BODY(__VA_ARGS__);                                                                       \
    FILCH_DEFINE_CHECK(__VA_ARGS__, ~)                                                             \
    FILCH_DEFINE_MEMORY(__VA_ARGS__, ~)                                                            \
    FILCH_DEFINE_THUNK(__VA_ARGS__, ~)                                                             \
    FILCH_DEFINE_FORK(__VA_ARGS__, ~)                                                              \
    FILCH_DEFINE_JOIN(__VA_ARGS__, ~)                                                              \
    FILCH_DEFINE_RUN(__VA_ARGS__, ~)                                                               \
    FILCH_DEFINE_END(__VA_ARGS__, ~)

#define FILCH_BODY(...) FILCH_FUNCTION(FILCH_BODY_SUFFIX, __VA_ARGS__, ~)
#define FILCH_FUNCTION(suffix, R, name, ...)                                                       \
    static inline __attribute__((unused)) R FILCH_CAT(name, suffix)(                               \
        filch_slot * filch_here __attribute__((unused)),                                           \
        filch_slot * filch_mark __attribute__((unused)) FILCH_EACH(FILCH_PARAM, __VA_ARGS__))

#define FILCH_HERE filch_here

#define FILCH_FORK(child, ...)                                                                     \
    static FILCH_TYPEOF(FILCH_OF(_join, __VA_ARGS__)) *const child##_join =                        \
        FILCH_OF(_join, __VA_ARGS__);                                                              \
    FILCH_OF(_forked, __VA_ARGS__) child;                                                          \
    FILCH_FORK_INTO(child, __VA_ARGS__)
#define FILCH_FORK_INTO(child, ...)                                                                \
    FILCH_OF(_fork, __VA_ARGS__)(&filch_here, &(child)FILCH_ARGUMENTS(__VA_ARGS__))

#define FILCH_JOIN(child) (FILCH_CHECK_JOIN(child), child##_join(&filch_here, &child))
#define FILCH_JOIN_FROM(child, name) (FILCH_CHECK_JOIN(child), name##_join(&filch_here, &(child)))

#define FILCH_CALL(...)                                                                            \
    FILCH_OF(_body, __VA_ARGS__)(filch_here, filch_here FILCH_ARGUMENTS(__VA_ARGS__))

#define FILCH_CALL_ON(f, ...) FILCH_OF(_body, __VA_ARGS__)((f), (f)FILCH_ARGUMENTS(__VA_ARGS__))

#define FILCH_SPAWN(...)                                                                           \
    do {                                                                                           \
        FILCH_STATIC_ASSERT(FILCH_OF(_fits, __VA_ARGS__),                                          \
                            "the arguments of a spawned task are larger than its slot: "           \
                            "fork it, or pass a pointer");                                         \
        FILCH_OF(_spawn, __VA_ARGS__)(&filch_here, filch_mark FILCH_ARGUMENTS(__VA_ARGS__));       \
    } while (0)
#define FILCH_SYNC() (FILCH_CHECK_SYNC(), (void)(filch_here = filch_join(filch_here, filch_mark)))

#define FILCH_RUN(pool, ...) FILCH_OF(_run, __VA_ARGS__)((pool)FILCH_ARGUMENTS(__VA_ARGS__))
#define FILCH_SUBMIT(pool, ...)                                                                    \
    (FILCH_CHECK_COPY(FILCH_OF(_forked, __VA_ARGS__)),                                             \
     FILCH_OF(_submit, __VA_ARGS__)((pool)FILCH_ARGUMENTS(__VA_ARGS__)))

/* ---- What FILCH_DECLARE generates; R is the result, `...` the (type, argument) pairs ------------ */

/* The arguments, and the handle of a fork. A task too large for its slot stays in the handle. */
#define FILCH_DEFINE_MEMORY(R, name, ...)                                                          \
    typedef struct name##_args {                                                                   \
        FILCH_EACH(FILCH_FIELD, __VA_ARGS__)                                                       \
    } name##_args;                                                                                 \
    typedef struct name##_forked {                                                                 \
        filch_slot *slot;                                                                          \
        FILCH_CHECK_FIELD                                                                          \
        name##_args args;                                                                          \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_RESULT_FIELD)(R)                                        \
    } name##_forked;                                                                               \
    enum {                                                                                         \
        name##_fits = sizeof(name##_args) <=                                                       \
                      FILCH_SLOT_ROOM FILCH_PICK(R, FILCH_NOTHING, FILCH_RESULT_FITS)(R)           \
    };

/* How a thief, or a join that has no handle, runs the task in a slot. */
#define FILCH_DEFINE_THUNK(R, name, ...)                                                           \
    static __attribute__((unused)) void name##_thunk(filch_slot *filch_f, filch_slot *filch_task)  \
    {                                                                                              \
        name##_forked *const filch_child =                                                         \
            name##_fits ? NULL : *(name##_forked **)(void *)filch_task->room;                      \
        name##_args *const filch_args =                                                            \
            name##_fits ? (name##_args *)(void *)filch_task->room : &filch_child->args;            \
        (void)filch_args;                                                                          \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_KEEP_RESULT)                                            \
        (R, name) name##_body(filch_f, filch_f FILCH_EACH(FILCH_IN_SLOT, __VA_ARGS__));            \
    }

/* One store per argument, one for the thunk, one comparison. */
#define FILCH_DEFINE_FORK(R, name, ...)                                                            \
    FILCH_ALWAYS_INLINE void name##_fork(                                                          \
        filch_slot **filch_at, name##_forked *filch_child FILCH_EACH(FILCH_PARAM, __VA_ARGS__))    \
    {                                                                                              \
        filch_slot *filch_f = *filch_at;                                                           \
        FILCH_CHECK_FORK(filch_child, filch_f);                                                    \
        FILCH_EACH(FILCH_TO_CHILD, __VA_ARGS__)                                                    \
        if (name##_fits) {                                                                         \
            name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                  \
            (void)filch_args;                                                                      \
            FILCH_EACH(FILCH_TO_SLOT, __VA_ARGS__)                                                 \
        } else {                                                                                   \
            *(name##_forked **)(void *)filch_f->room = filch_child;                                \
        }                                                                                          \
        /* relaxed: carried to thieves by [task-ready] when the slot is published. */              \
        filch_store_relaxed(&filch_f->state, (uintptr_t)name##_thunk);                             \
        if (filch_fork_is_slow(filch_f))                                                           \
            filch_f = filch_fork_slow(filch_f);                                                    \
        filch_child->slot = filch_f;                                                               \
        *filch_at = filch_f + 1;                                                                   \
    }                                                                                              \
    FILCH_ALWAYS_INLINE void name##_spawn(                                                         \
        filch_slot **filch_at, filch_slot *filch_mark FILCH_EACH(FILCH_PARAM, __VA_ARGS__))        \
    {                                                                                              \
        filch_slot *const filch_f = *filch_at;                                                     \
        FILCH_CHECK_SPAWN(filch_f);                                                                \
        name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                      \
        (void)filch_args;                                                                          \
        FILCH_EACH(FILCH_TO_SLOT, __VA_ARGS__)                                                     \
        /* relaxed: carried to thieves by [task-ready] when the slot is published. */              \
        filch_store_relaxed(&filch_f->state, (uintptr_t)name##_thunk);                             \
        *filch_at =                                                                                \
            filch_fork_is_slow(filch_f) ? filch_spawn_slow(filch_f, filch_mark) : filch_f + 1;     \
    }

/* One comparison, then a direct call with the arguments that the compiler still has in registers. It must
 * stay one expression with one call: gcc then inlines the recursion as it does for a serial program. */
#define FILCH_DEFINE_JOIN(R, name, ...)                                                            \
    FILCH_ALWAYS_INLINE R name##_join(filch_slot **filch_at, name##_forked *filch_child)           \
    {                                                                                              \
        filch_slot *const filch_f = *filch_at = filch_child->slot;                                 \
        const bool filch_stolen = filch_join_is_slow(filch_f) && !filch_join_slow(filch_f);        \
        FILCH_PICK(R, FILCH_JOIN_VOID, FILCH_JOIN_VALUE)                                           \
        (R, name, name##_body(filch_f, filch_f FILCH_EACH(FILCH_IN_CHILD, __VA_ARGS__)));          \
    }

#define FILCH_DEFINE_RUN(R, name, ...)                                                             \
    static __attribute__((unused)) void name##_root(filch_slot *filch_f, void *filch_work)         \
    {                                                                                              \
        name##_forked *const filch_child = (name##_forked *)filch_work;                            \
        (void)filch_child;                                                                         \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_ROOT_RESULT)                                            \
        () name##_body(filch_f, filch_f FILCH_EACH(FILCH_IN_CHILD, __VA_ARGS__));                  \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    R name##_run(filch_pool *filch_in FILCH_EACH(FILCH_PARAM, __VA_ARGS__))                        \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_EACH(FILCH_TO_CHILD, __VA_ARGS__)                                                    \
        filch_run_always(filch_in, name##_root, filch_child);                                      \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_RETURN_RESULT)()                                        \
    }                                                                                              \
    static inline __attribute__((unused)) int name##_submit(                                       \
        filch_pool *filch_in FILCH_EACH(FILCH_PARAM, __VA_ARGS__))                                 \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_EACH(FILCH_TO_CHILD, __VA_ARGS__)                                                    \
        return filch_submit_copy(filch_in, name##_root, filch_child, sizeof filch_work);           \
    }

/* Something that takes the semicolon. */
#define FILCH_DEFINE_END(R, name, ...) typedef struct name##_forked name##_forked

/* What is different when the result is void. */
#define FILCH_NOTHING(...)
#define FILCH_RESULT_FIELD(R) R result;
#define FILCH_RESULT_FITS(R) &&sizeof(R) <= FILCH_SLOT_ROOM
#define FILCH_KEEP_RESULT(R, name)                                                                 \
    *(name##_fits ? (R *)(void *)filch_task->room : &filch_child->result) =
#define FILCH_JOIN_VALUE(R, name, call)                                                            \
    return filch_stolen ? *(name##_fits ? (R *)(void *)filch_f->room : &filch_child->result) : call
#define FILCH_JOIN_VOID(R, name, call)                                                             \
    if (!filch_stolen)                                                                             \
    call
#define FILCH_ROOT_RESULT() filch_child->result =
#define FILCH_RETURN_RESULT() return filch_child->result;

/* ---- What the checked builds add --------------------------------------------------------------- */

#if FILCH_CHECKED
/* The body is name_checked, and what everybody calls looks whether it has joined all that it forked. */
#define FILCH_BODY_SUFFIX _checked
#define FILCH_DEFINE_CHECK(R, name, ...)                                                           \
    FILCH_FUNCTION(_body, R, name, __VA_ARGS__)                                                    \
    {                                                                                              \
        const unsigned filch_open = filch_check_enter(filch_here);                                 \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_CHECKED_RESULT)                                         \
        (R) name##_checked(filch_here, filch_mark FILCH_EACH(FILCH_PASS, __VA_ARGS__));            \
        filch_check_leave(filch_here, filch_open, #name);                                          \
        FILCH_PICK(R, FILCH_NOTHING, FILCH_CHECKED_RETURN)()                                       \
    }
#define FILCH_CHECKED_RESULT(R) R filch_checked_result =
#define FILCH_CHECKED_RETURN() return filch_checked_result;
#define FILCH_CHECK_FIELD unsigned order;
#define FILCH_CHECK_FORK(child, f) (child)->order = filch_check_fork(f)
#define FILCH_CHECK_SPAWN(f) (void)filch_check_fork(f)
#define FILCH_CHECK_SYNC() filch_check_sync(filch_here, filch_mark)
#define FILCH_CHECK_JOIN(child)                                                                    \
    filch_check_join((child).slot, (child).order, #child, __FILE__, __LINE__)
#else
#define FILCH_BODY_SUFFIX _body
#define FILCH_DEFINE_CHECK(...)
#define FILCH_CHECK_FIELD
#define FILCH_CHECK_FORK(child, f) (void)0
#define FILCH_CHECK_SPAWN(f) (void)0
#define FILCH_CHECK_SYNC() (void)0
#define FILCH_CHECK_JOIN(child) (void)0
#endif

/* ---- Lists of arguments ------------------------------------------------------------------------ */

#define FILCH_FIELD(type, a) type a;
#define FILCH_PARAM(type, a) , type a
#define FILCH_PASS(type, a) , a
#define FILCH_TO_CHILD(type, a) filch_child->args.a = a;
#define FILCH_TO_SLOT(type, a) filch_args->a = a;
#define FILCH_IN_SLOT(type, a) , filch_args->a
#define FILCH_IN_CHILD(type, a) , filch_child->args.a

#define FILCH_FIELD_NONE char filch_nothing;
#define FILCH_PARAM_NONE
#define FILCH_PASS_NONE
#define FILCH_TO_CHILD_NONE filch_child->args.filch_nothing = 0;
#define FILCH_TO_SLOT_NONE
#define FILCH_IN_SLOT_NONE
#define FILCH_IN_CHILD_NONE

/* m(type, a) for each pair, or m_NONE. The list ends with `~`. */
#define FILCH_EACH(m, ...) FILCH_CAT(FILCH_EACH_, FILCH_COUNT(__VA_ARGS__))(m, __VA_ARGS__)
#define FILCH_EACH_1(m, end) m##_NONE
#define FILCH_EACH_2(m, a, ...) m a
#define FILCH_EACH_3(m, a, ...) m a FILCH_EACH_2(m, __VA_ARGS__)
#define FILCH_EACH_4(m, a, ...) m a FILCH_EACH_3(m, __VA_ARGS__)
#define FILCH_EACH_5(m, a, ...) m a FILCH_EACH_4(m, __VA_ARGS__)
#define FILCH_EACH_6(m, a, ...) m a FILCH_EACH_5(m, __VA_ARGS__)
#define FILCH_EACH_7(m, a, ...) m a FILCH_EACH_6(m, __VA_ARGS__)
#define FILCH_EACH_8(m, a, ...) m a FILCH_EACH_7(m, __VA_ARGS__)
#define FILCH_EACH_9(m, a, ...) m a FILCH_EACH_8(m, __VA_ARGS__)
#define FILCH_EACH_10(m, a, ...) m a FILCH_EACH_9(m, __VA_ARGS__)
#define FILCH_EACH_11(m, a, ...) m a FILCH_EACH_10(m, __VA_ARGS__)
#define FILCH_EACH_12(m, a, ...) m a FILCH_EACH_11(m, __VA_ARGS__)
#define FILCH_EACH_13(m, a, ...) m a FILCH_EACH_12(m, __VA_ARGS__)
#define FILCH_EACH_14(m, a, ...) m a FILCH_EACH_13(m, __VA_ARGS__)
#define FILCH_EACH_15(m, a, ...) m a FILCH_EACH_14(m, __VA_ARGS__)
#define FILCH_EACH_16(m, a, ...) m a FILCH_EACH_15(m, __VA_ARGS__)
#define FILCH_EACH_17(m, a, ...) m a FILCH_EACH_16(m, __VA_ARGS__)

#define FILCH_COUNT(...)                                                                           \
    FILCH_COUNT_(__VA_ARGS__, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ~)
#define FILCH_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, count, ...) count

/* name##suffix and `, arguments` out of "name, arguments...". */
#define FILCH_OF(suffix, ...) FILCH_CAT(FILCH_FIRST(__VA_ARGS__, ~), suffix)
#define FILCH_FIRST(a, ...) a
#define FILCH_ARGUMENTS(...)                                                                       \
    FILCH_CAT(FILCH_ARGUMENTS_,                                                                    \
              FILCH_COUNT_(__VA_ARGS__, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, ~))     \
    (__VA_ARGS__)
#define FILCH_ARGUMENTS_1(name)
#define FILCH_ARGUMENTS_2(name, ...) , __VA_ARGS__

/* a when R is void, otherwise b. (`void *` is not void: the probe is not followed by its bracket.) */
#define FILCH_PICK(R, a, b) FILCH_SECOND(FILCH_PROBE_##R() a, b, ~)
#define FILCH_SECOND(...) FILCH_SECOND_(__VA_ARGS__)
#define FILCH_SECOND_(a, b, ...) b
#define FILCH_PROBE_void() ,

#define FILCH_CAT(a, b) FILCH_CAT_(a, b)
#define FILCH_CAT_(a, b) a##b

#ifdef __cplusplus
#define FILCH_TYPEOF(x) decltype(x)
#define FILCH_STATIC_ASSERT(condition, text) static_assert(condition, text)
#define FILCH_CHECK_COPY(type)                                                                     \
    (void)sizeof(                                                                                  \
        char[__is_trivially_copyable(type) && alignof(type) <= alignof(max_align_t) ? 1 : -1])
#else
#define FILCH_TYPEOF(x) __typeof__(x)
#define FILCH_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#define FILCH_CHECK_COPY(type)                                                                     \
    (void)sizeof(struct {                                                                          \
        _Static_assert(_Alignof(type) <= _Alignof(max_align_t),                                    \
                       "an argument needs a larger alignment than a submitted task has");          \
        char filch_one;                                                                            \
    })
#endif

#endif
