/* SPDX-License-Identifier: MIT */
/*
 * The parts of the macros in filch/task.h. Not for users: any of them may change.
 */
#ifndef FILCH_IMPL_TASK_H
#define FILCH_IMPL_TASK_H

/* Then compilers name the line of the user, and not one line for each macro on the way to it. The
 * tests of the headers want all warnings. */
#ifndef FILCH_IMPL_ALL_WARNINGS
#pragma GCC system_header
#endif

#include <filch/future.h>
#include <filch/impl/check.h>
#include <filch/pool.h>
#include <filch/strand.h>

#ifdef __cplusplus
#include <type_traits>
#endif

#define FILCH_IMPL_ALWAYS_INLINE static inline __attribute__((always_inline, unused))

#ifdef __cplusplus
extern "C" {
#endif

/* Used by checked builds: count open forks, and stop the program at a join that is out of order. */
FILCH_API unsigned filch_check_enter(const char *file, int line, filch_frame *f, const char *task);
FILCH_API void filch_check_leave(const char *file, int line, filch_frame *f, unsigned open,
                                 const char *task);
FILCH_API unsigned filch_check_fork(filch_frame *f);
FILCH_API void filch_check_join(filch_frame *f, unsigned order, const char *name, const char *file,
                                int line);
FILCH_API void filch_check_sync(filch_frame *f, filch_frame *mark);

/* Used by FILCH_RUN: like filch_run, but where that returns an error, runs the task serially. */
FILCH_API void filch_run_always(filch_pool *pool, filch_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#define FILCH_IMPL_FUNCTION(suffix, R, name, n, ...)                                               \
    static inline __attribute__((unused)) R FILCH_IMPL_CAT(name, suffix)(                          \
        filch_frame * filch_here __attribute__((unused)),                                          \
        filch_frame * filch_mark __attribute__((unused))                                           \
                      FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))

/* ---- What FILCH_DECLARE generates; R is the result, `...` n - 1 pairs (type, argument) and ~ - */

/* The arguments, and the variable that FILCH_FORK declares. A task too large for its slot stays
 * there. */
#define FILCH_IMPL_DEFINE_MEMORY(R, name, n, ...)                                                  \
    struct name##_names {                                                                          \
        FILCH_IMPL_EACH(n, FILCH_IMPL_NAME, __VA_ARGS__)                                           \
    };                                                                                             \
    FILCH_IMPL_STATIC_ASSERT(                                                                      \
        sizeof(struct name##_names) == 0 FILCH_IMPL_EACH(n, FILCH_IMPL_ONE, __VA_ARGS__),          \
        "FILCH_TASK arguments are no arrays: write (type *, name), or use a struct");              \
    typedef struct name##_args {                                                                   \
        FILCH_IMPL_EACH(n, FILCH_IMPL_FIELD, __VA_ARGS__)                                          \
    } name##_args;                                                                                 \
    typedef struct name##_is_a_FILCH_TASK {                                                        \
        filch_slot *slot;                                                                          \
        FILCH_IMPL_CHECK_FIELD                                                                     \
        name##_args args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FIELD)(R)                         \
    } name##_forked;                                                                               \
    enum {                                                                                         \
        name##_fits = sizeof(name##_args) <= FILCH_SLOT_ROOM FILCH_IMPL_PICK(                      \
                                                 R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FITS)(R) \
    };

/* How a thief, or a join that has no `name_forked`, runs the task in a slot. For this function,
 * name_thunk_run and name_thunk_future, messages and dumps show the task's name (base/symbol.c). */
#define FILCH_IMPL_DEFINE_THUNK(R, name, n, ...)                                                   \
    static __attribute__((unused)) void name##_thunk(filch_frame *filch_f, filch_slot *filch_task) \
    {                                                                                              \
        name##_forked *const filch_child =                                                         \
            name##_fits ? NULL : *(name##_forked **)(void *)filch_task->room;                      \
        name##_args *const filch_args =                                                            \
            name##_fits ? (name##_args *)(void *)filch_task->room : &filch_child->args;            \
        (void)filch_args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_KEEP_RESULT)                             \
        (R, name)                                                                                  \
            name##_body(filch_f, filch_f FILCH_IMPL_EACH(n, FILCH_IMPL_IN_SLOT, __VA_ARGS__));     \
    }

/* One store per argument, one for the thunk, one comparison. */
#define FILCH_IMPL_DEFINE_FORK(R, name, n, ...)                                                    \
    FILCH_IMPL_ALWAYS_INLINE void name##_fork(                                                     \
        filch_frame **filch_at,                                                                    \
        name##_forked *filch_child FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))              \
    {                                                                                              \
        filch_frame *filch_f = *filch_at;                                                          \
        FILCH_IMPL_CHECK_FORK(filch_child, filch_f);                                               \
        FILCH_IMPL_EACH(n, FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                       \
        if (name##_fits) {                                                                         \
            name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                  \
            (void)filch_args;                                                                      \
            FILCH_IMPL_EACH(n, FILCH_IMPL_TO_SLOT, __VA_ARGS__)                                    \
        } else {                                                                                   \
            *(name##_forked **)(void *)filch_f->room = filch_child;                                \
        }                                                                                          \
        filch_fork_fill(filch_f, name##_thunk);                                                    \
        if (filch_fork_is_slow(filch_f))                                                           \
            filch_f = filch_fork_slow(filch_f);                                                    \
        filch_child->slot = filch_f;                                                               \
        *filch_at = filch_f + 1;                                                                   \
    }                                                                                              \
    FILCH_IMPL_ALWAYS_INLINE void name##_spawn(                                                    \
        filch_frame **filch_at,                                                                    \
        filch_frame *filch_mark FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))                 \
    {                                                                                              \
        filch_frame *const filch_f = *filch_at;                                                    \
        FILCH_IMPL_CHECK_SPAWN(filch_f);                                                           \
        name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                      \
        (void)filch_args;                                                                          \
        FILCH_IMPL_EACH(n, FILCH_IMPL_TO_SLOT, __VA_ARGS__)                                        \
        filch_fork_fill(filch_f, name##_thunk);                                                    \
        *filch_at =                                                                                \
            filch_fork_is_slow(filch_f) ? filch_spawn_slow(filch_f, filch_mark) : filch_f + 1;     \
    }

/* One comparison, then a direct call with arguments that the compiler still has in registers. It
 * must stay one expression with one call: then gcc inlines the recursion as in a serial program. */
#define FILCH_IMPL_DEFINE_JOIN(R, name, n, ...)                                                    \
    FILCH_IMPL_ALWAYS_INLINE R name##_join(filch_frame **filch_at,                                 \
                                           name##_forked *filch_child FILCH_IMPL_PLACE_PARAMS)     \
    {                                                                                              \
        FILCH_IMPL_CHECK_JOIN(filch_child);                                                        \
        filch_frame *const filch_f = *filch_at = filch_child->slot;                                \
        const bool filch_stolen = filch_join_is_slow(filch_f) && !filch_join_slow(filch_f);        \
        FILCH_IMPL_PICK(R, FILCH_IMPL_JOIN_VOID, FILCH_IMPL_JOIN_VALUE)                            \
        (R, name,                                                                                  \
         name##_body(filch_f, filch_f FILCH_IMPL_EACH(n, FILCH_IMPL_IN_CHILD, __VA_ARGS__)));      \
    }

#define FILCH_IMPL_DEFINE_RUN(R, name, n, ...)                                                     \
    static __attribute__((unused)) void name##_thunk_run(filch_frame *filch_f, void *filch_work)   \
    {                                                                                              \
        name##_forked *const filch_child = (name##_forked *)filch_work;                            \
        (void)filch_child;                                                                         \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_ROOT_RESULT)                             \
        () name##_body(filch_f, filch_f FILCH_IMPL_EACH(n, FILCH_IMPL_IN_CHILD, __VA_ARGS__));     \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    R name##_run(filch_pool *filch_in FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))           \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_IMPL_EACH(n, FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                       \
        filch_run_always(filch_in, name##_thunk_run, filch_child);                                 \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RETURN_RESULT)()                         \
    }                                                                                              \
    static inline __attribute__((unused)) int name##_submit(                                       \
        filch_pool *filch_in FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))                    \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_IMPL_EACH(n, FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                       \
        return filch_submit_copy(filch_in, name##_thunk_run, filch_child, sizeof filch_work);      \
    }

/* FILCH_FUTURE_SUBMIT: the caller's memory holds the future, the arguments and the result. */
#define FILCH_IMPL_DEFINE_FUTURE(R, name, n, ...)                                                  \
    typedef struct name##_future {                                                                 \
        filch_future future;                                                                       \
        name##_args args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FIELD)(R)                         \
    } name##_future;                                                                               \
    static __attribute__((unused)) int name##_thunk_future(filch_frame *filch_f, void *filch_work, \
                                                           void **filch_value)                     \
    {                                                                                              \
        name##_future *const filch_child = (name##_future *)filch_work;                            \
        (void)filch_child;                                                                         \
        (void)filch_value;                                                                         \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_FUTURE_RESULT)                           \
        () name##_body(filch_f, filch_f FILCH_IMPL_EACH(n, FILCH_IMPL_IN_CHILD, __VA_ARGS__));     \
        return 0;                                                                                  \
    }                                                                                              \
    static inline __attribute__((unused)) int name##_future_start(                                 \
        filch_pool *filch_in,                                                                      \
        name##_future *filch_child FILCH_IMPL_EACH(n, FILCH_IMPL_PARAM, __VA_ARGS__))              \
    {                                                                                              \
        filch_future_init(&filch_child->future);                                                   \
        FILCH_IMPL_EACH(n, FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                       \
        return filch_future_submit(filch_in, &filch_child->future, name##_thunk_future,            \
                                   filch_child);                                                   \
    }

/* Never defined. FILCH_FORK and the others mention it or the struct of this name first: the name is
 * the compiler's message about a function that is no task. The declaration takes the semicolon that
 * follows FILCH_DECLARE. */
#define FILCH_IMPL_DEFINE_END(R, name, n, ...)                                                     \
    extern __attribute__((unused)) name##_forked name##_is_a_FILCH_TASK

/* The parts that differ for a void result. */
#define FILCH_IMPL_NOTHING(...)
#define FILCH_IMPL_RESULT_FIELD(R) FILCH_IMPL_KEPT(R) result;
#define FILCH_IMPL_RESULT_FITS(R) &&sizeof(R) <= FILCH_SLOT_ROOM
#define FILCH_IMPL_KEEP_RESULT(R, name)                                                            \
    *(name##_fits ? (FILCH_IMPL_KEPT(R) *)(void *)filch_task->room : &filch_child->result) =
#define FILCH_IMPL_JOIN_VALUE(R, name, call)                                                       \
    return filch_stolen ? *(name##_fits ? (FILCH_IMPL_KEPT(R) *)(void *)filch_f->room              \
                                        : &filch_child->result)                                    \
                        : call
#define FILCH_IMPL_JOIN_VOID(R, name, call)                                                        \
    if (!filch_stolen)                                                                             \
    call
#define FILCH_IMPL_ROOT_RESULT() filch_child->result =
#define FILCH_IMPL_FUTURE_RESULT() *filch_value = &filch_child->result, filch_child->result =
#define FILCH_IMPL_RETURN_RESULT() return filch_child->result;

/* ---- What the checked builds add ------------------------------------------------------------- */

#if FILCH_CHECKED || FILCH_IMPL_HAS_EXCEPTIONS
/* The user's function is name_inner. name_body calls it, checks that it has joined all its forks,
 * and stops exceptions. */
#define FILCH_IMPL_BODY_SUFFIX _inner
#define FILCH_IMPL_DEFINE_OUTER(R, name, n, ...)                                                   \
    FILCH_IMPL_FUNCTION(_body, R, name, n, __VA_ARGS__) FILCH_IMPL_NOEXCEPT                        \
    {                                                                                              \
        FILCH_IMPL_CHECK_ENTER(filch_here, #name)                                                  \
        FILCH_IMPL_TRY FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_INNER_RESULT)(R)          \
            name##_inner(filch_here, filch_mark FILCH_IMPL_EACH(n, FILCH_IMPL_PASS, __VA_ARGS__)); \
        FILCH_IMPL_CHECK_LEAVE(filch_here, #name)                                                  \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_INNER_RETURN)() FILCH_IMPL_CATCH(#name)  \
    }
#define FILCH_IMPL_INNER_RESULT(R) R filch_result =
#define FILCH_IMPL_INNER_RETURN() return filch_result;
#else
#define FILCH_IMPL_BODY_SUFFIX _body
#define FILCH_IMPL_DEFINE_OUTER(...)
#endif

#if FILCH_IMPL_HAS_EXCEPTIONS
#define FILCH_IMPL_NOEXCEPT noexcept
#define FILCH_IMPL_TRY try {
#define FILCH_IMPL_CATCH(name)                                                                     \
    }                                                                                              \
    catch (...)                                                                                    \
    {                                                                                              \
        filch_impl_terminate(name);                                                                \
    }
#else
#define FILCH_IMPL_NOEXCEPT
#define FILCH_IMPL_TRY
#define FILCH_IMPL_CATCH(name)
#endif

#if FILCH_CHECKED
#define FILCH_IMPL_CHECK_ENTER(f, task)                                                            \
    const unsigned filch_open = FILCH_IMPL_PLACE(filch_check_enter, f, task);
#define FILCH_IMPL_CHECK_LEAVE(f, task) FILCH_IMPL_PLACE(filch_check_leave, f, filch_open, task);
#define FILCH_IMPL_CHECK_FIELD unsigned order;
#define FILCH_IMPL_CHECK_FORK(child, f) (child)->order = filch_check_fork(f)
#define FILCH_IMPL_CHECK_SPAWN(f) (void)filch_check_fork(f)
#define FILCH_IMPL_CHECK_SYNC(f, mark) filch_check_sync(f, mark)
#define FILCH_IMPL_CHECK_JOIN(child)                                                               \
    filch_check_join((child)->slot, (child)->order, filch_name, filch_file, filch_line)
#define FILCH_IMPL_PLACE_PARAMS , const char *filch_name, const char *filch_file, int filch_line
#define FILCH_IMPL_PLACE_OF(name) , name, __FILE__, __LINE__
#else
#define FILCH_IMPL_CHECK_ENTER(f, task)
#define FILCH_IMPL_CHECK_LEAVE(f, task)
#define FILCH_IMPL_CHECK_FIELD
#define FILCH_IMPL_CHECK_FORK(child, f) (void)0
#define FILCH_IMPL_CHECK_SPAWN(f) (void)0
#define FILCH_IMPL_CHECK_SYNC(f, mark) (void)0
#define FILCH_IMPL_CHECK_JOIN(child) (void)0
#define FILCH_IMPL_PLACE_PARAMS
#define FILCH_IMPL_PLACE_OF(name)
#endif

/* ---- Mistakes in FILCH_TASK(result, name, (type, argument)...) ------------------------------- */

/* GOOD, or what is wrong: RESULT (it is missing), PAIR (an argument without brackets), MANY. The
 * list ends with `~`. */
#define FILCH_IMPL_SHAPE(R, name, ...)                                                             \
    FILCH_IMPL_CAT(FILCH_IMPL_SHAPE_, FILCH_IMPL_IS_BRACKETED(name))(__VA_ARGS__)
#define FILCH_IMPL_SHAPE_1(...) RESULT
#define FILCH_IMPL_SHAPE_0(...)                                                                    \
    FILCH_IMPL_CAT(FILCH_IMPL_ALL_, FILCH_IMPL_COUNT(__VA_ARGS__))(__VA_ARGS__)

#define FILCH_IMPL_AND_1(rest) rest
#define FILCH_IMPL_AND_0(rest) PAIR
#define FILCH_IMPL_ALL_1(end) GOOD
#define FILCH_IMPL_ALL_2(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_1(__VA_ARGS__))
#define FILCH_IMPL_ALL_3(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_2(__VA_ARGS__))
#define FILCH_IMPL_ALL_4(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_3(__VA_ARGS__))
#define FILCH_IMPL_ALL_5(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_4(__VA_ARGS__))
#define FILCH_IMPL_ALL_6(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_5(__VA_ARGS__))
#define FILCH_IMPL_ALL_7(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_6(__VA_ARGS__))
#define FILCH_IMPL_ALL_8(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_7(__VA_ARGS__))
#define FILCH_IMPL_ALL_9(a, ...)                                                                   \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_8(__VA_ARGS__))
#define FILCH_IMPL_ALL_10(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_9(__VA_ARGS__))
#define FILCH_IMPL_ALL_11(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_10(__VA_ARGS__))
#define FILCH_IMPL_ALL_12(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_11(__VA_ARGS__))
#define FILCH_IMPL_ALL_13(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_12(__VA_ARGS__))
#define FILCH_IMPL_ALL_14(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_13(__VA_ARGS__))
#define FILCH_IMPL_ALL_15(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_14(__VA_ARGS__))
#define FILCH_IMPL_ALL_16(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_15(__VA_ARGS__))
#define FILCH_IMPL_ALL_17(a, ...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_AND_, FILCH_IMPL_IS_PAIR(a))(FILCH_IMPL_ALL_16(__VA_ARGS__))
#define FILCH_IMPL_ALL_MANY(...) MANY

#define FILCH_IMPL_IS_BRACKETED(a) FILCH_IMPL_SECOND(FILCH_IMPL_BRACKETED a, 0, ~)
#define FILCH_IMPL_BRACKETED(...) ~, 1
#define FILCH_IMPL_IS_PAIR(a) FILCH_IMPL_SECOND(FILCH_IMPL_PAIR a, 0, ~)
#define FILCH_IMPL_PAIR(...)                                                                       \
    ~, FILCH_IMPL_COUNT_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
                         0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, ~)

/* What FILCH_TASK, FILCH_DECLARE and FILCH_BODY become. The first three arguments are functions for
 * FILCH_IMPL_REFUSE. There is no semicolon behind FILCH_IMPL_REFUSE: so the compiler skips the body
 * of a task with a mistake. */
#define FILCH_IMPL_TASK_GOOD(pair, many, result, ...)                                              \
    FILCH_IMPL_DECLARE_GOOD(pair, many, result, __VA_ARGS__);                                      \
    FILCH_IMPL_BODY_GOOD(pair, many, result, __VA_ARGS__)
#define FILCH_IMPL_TASK_PAIR(pair, many, result, R, name, ...)                                     \
    FILCH_IMPL_STAND_IN(R, name) FILCH_IMPL_REFUSE(pair, FILCH_IMPL_TEXT_PAIR)
#define FILCH_IMPL_TASK_MANY(pair, many, result, R, name, ...)                                     \
    FILCH_IMPL_STAND_IN(R, name) FILCH_IMPL_REFUSE(many, FILCH_IMPL_TEXT_MANY)
#define FILCH_IMPL_TASK_RESULT(pair, many, result, name, ...)                                      \
    FILCH_IMPL_STAND_IN(int, name) FILCH_IMPL_REFUSE(result, FILCH_IMPL_TEXT_RESULT)

#define FILCH_IMPL_TEXT_PAIR                                                                       \
    "FILCH_TASK arguments are written (type, name), each in brackets; a type with a comma needs "  \
    "a typedef"
#define FILCH_IMPL_TEXT_MANY "FILCH_TASK has at most 16 arguments"
#define FILCH_IMPL_TEXT_RESULT "FILCH_TASK begins with the type of the result, then the name"

/* Stop with the text. Behind an assertion that fails, clang reports the missing semicolon and the
 * body, too. Behind one with an invalid condition, it skips the body in silence. The condition is a
 * function that clang refuses with the text. FILCH_TASK itself must name the function: clang shows
 * all macros between a mistake and the place where it is written. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgcc-compat"
#ifdef __cplusplus
extern "C" {
#endif
int filch_impl_refuse_pair(void) __attribute__((diagnose_if(1, FILCH_IMPL_TEXT_PAIR, "error")));
int filch_impl_refuse_many(void) __attribute__((diagnose_if(1, FILCH_IMPL_TEXT_MANY, "error")));
int filch_impl_refuse_result(void) __attribute__((diagnose_if(1, FILCH_IMPL_TEXT_RESULT, "error")));
#ifdef __cplusplus
}
#endif
#pragma clang diagnostic pop
#define FILCH_IMPL_REFUSE(function, text) FILCH_IMPL_STATIC_ASSERT(function, text)
#else
#define FILCH_IMPL_REFUSE(function, text) FILCH_IMPL_STATIC_ASSERT(0, text)
#endif

#define FILCH_IMPL_DECLARE_GOOD(pair, many, result, ...) FILCH_IMPL_GENERATE(__VA_ARGS__, ~)
#define FILCH_IMPL_BODY_GOOD(pair, many, result, ...) FILCH_IMPL_OPEN(__VA_ARGS__, ~)
#define FILCH_IMPL_OPEN(R, name, ...)                                                              \
    FILCH_IMPL_FUNCTION(FILCH_IMPL_BODY_SUFFIX, R, name, FILCH_IMPL_COUNT(__VA_ARGS__), __VA_ARGS__)
#define FILCH_IMPL_GENERATE(R, name, ...)                                                          \
    FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_TYPEDEF_RESULT)                              \
    (name##_type_0, R) FILCH_IMPL_GENERATE_(R, name, FILCH_IMPL_COUNT(__VA_ARGS__), __VA_ARGS__)
#define FILCH_IMPL_GENERATE_(R, name, n, ...)                                                      \
    FILCH_IMPL_TYPES(n, name, __VA_ARGS__)                                                         \
    FILCH_IMPL_DEFINE(FILCH_IMPL_PICK(R, void, name##_type_0), name, n,                            \
                      FILCH_IMPL_TYPED(n, name, __VA_ARGS__))
#define FILCH_IMPL_DEFINE(...)                                                                     \
    FILCH_IMPL_FUNCTION(FILCH_IMPL_BODY_SUFFIX, __VA_ARGS__);                                      \
    FILCH_IMPL_QUIET                                                                               \
    FILCH_IMPL_DEFINE_OUTER(__VA_ARGS__)                                                           \
    FILCH_IMPL_DEFINE_MEMORY(__VA_ARGS__)                                                          \
    FILCH_IMPL_DEFINE_THUNK(__VA_ARGS__)                                                           \
    FILCH_IMPL_DEFINE_FORK(__VA_ARGS__)                                                            \
    FILCH_IMPL_DEFINE_JOIN(__VA_ARGS__)                                                            \
    FILCH_IMPL_DEFINE_RUN(__VA_ARGS__)                                                             \
    FILCH_IMPL_DEFINE_FUTURE(__VA_ARGS__)                                                          \
    FILCH_IMPL_LOUD                                                                                \
    FILCH_IMPL_DEFINE_END(__VA_ARGS__)
#define FILCH_IMPL_DECLARE_PAIR FILCH_IMPL_TASK_PAIR
#define FILCH_IMPL_DECLARE_MANY FILCH_IMPL_TASK_MANY
#define FILCH_IMPL_DECLARE_RESULT FILCH_IMPL_TASK_RESULT

#define FILCH_IMPL_BODY_PAIR FILCH_IMPL_TASK_PAIR
#define FILCH_IMPL_BODY_MANY FILCH_IMPL_TASK_MANY
#define FILCH_IMPL_BODY_RESULT FILCH_IMPL_TASK_RESULT

/* In place of a task with a mistake: uses of it say nothing more. */
#ifdef __cplusplus
#define FILCH_IMPL_ANY ...
#else
#define FILCH_IMPL_ANY
#endif
#define FILCH_IMPL_STAND_IN(R, name)                                                               \
    typedef struct name##_is_a_FILCH_TASK {                                                        \
        filch_slot *slot;                                                                          \
        unsigned order;                                                                            \
    } name##_forked;                                                                               \
    typedef struct name##_future {                                                                 \
        filch_future future;                                                                       \
    } name##_future;                                                                               \
    extern name##_forked name##_is_a_FILCH_TASK;                                                   \
    enum { name##_fits = 1 };                                                                      \
    R name##_body(FILCH_IMPL_ANY);                                                                 \
    void name##_fork(FILCH_IMPL_ANY);                                                              \
    void name##_spawn(FILCH_IMPL_ANY);                                                             \
    R name##_join(FILCH_IMPL_ANY);                                                                 \
    R name##_run(FILCH_IMPL_ANY);                                                                  \
    int name##_submit(FILCH_IMPL_ANY);                                                             \
    int name##_future_start(FILCH_IMPL_ANY);

/* ---- Lists of arguments ---------------------------------------------------------------------- */

/*
 * FILCH_IMPL_TYPES defines a name of the task for the type of each pair. FILCH_IMPL_TYPED replaces
 * the types by these names, for the generated code. The types themselves are written only there and
 * in the user's function. So an unknown type is not one error for each generated function. The
 * lists end with `~`, and the names are numbered from there; name_type_0 is that of the result.
 */
#define FILCH_IMPL_TYPES(n, name, ...) FILCH_IMPL_TYPES_##n(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED(n, name, ...) FILCH_IMPL_TYPED_##n(name, __VA_ARGS__)
#define FILCH_IMPL_TYPE_OF(type, a) type
#define FILCH_IMPL_NAME_OF(type, a) a
#define FILCH_IMPL_TYPES_1(name, end)
#define FILCH_IMPL_TYPES_2(name, p, ...) FILCH_IMPL_TYPEDEF(name##_type_1, FILCH_IMPL_TYPE_OF p)
#define FILCH_IMPL_TYPES_3(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_2, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_2(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_4(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_3, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_3(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_5(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_4, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_4(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_6(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_5, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_5(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_7(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_6, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_6(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_8(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_7, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_7(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_9(name, p, ...)                                                           \
    FILCH_IMPL_TYPEDEF(name##_type_8, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_8(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_10(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_9, FILCH_IMPL_TYPE_OF p)                                        \
    FILCH_IMPL_TYPES_9(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_11(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_10, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_10(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_12(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_11, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_11(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_13(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_12, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_12(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_14(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_13, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_13(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_15(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_14, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_14(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_16(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_15, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_15(name, __VA_ARGS__)
#define FILCH_IMPL_TYPES_17(name, p, ...)                                                          \
    FILCH_IMPL_TYPEDEF(name##_type_16, FILCH_IMPL_TYPE_OF p)                                       \
    FILCH_IMPL_TYPES_16(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_1(name, end) end
#define FILCH_IMPL_TYPED_2(name, p, ...) (name##_type_1, FILCH_IMPL_NAME_OF p), __VA_ARGS__
#define FILCH_IMPL_TYPED_3(name, p, ...)                                                           \
    (name##_type_2, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_2(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_4(name, p, ...)                                                           \
    (name##_type_3, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_3(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_5(name, p, ...)                                                           \
    (name##_type_4, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_4(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_6(name, p, ...)                                                           \
    (name##_type_5, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_5(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_7(name, p, ...)                                                           \
    (name##_type_6, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_6(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_8(name, p, ...)                                                           \
    (name##_type_7, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_7(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_9(name, p, ...)                                                           \
    (name##_type_8, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_8(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_10(name, p, ...)                                                          \
    (name##_type_9, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_9(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_11(name, p, ...)                                                          \
    (name##_type_10, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_10(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_12(name, p, ...)                                                          \
    (name##_type_11, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_11(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_13(name, p, ...)                                                          \
    (name##_type_12, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_12(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_14(name, p, ...)                                                          \
    (name##_type_13, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_13(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_15(name, p, ...)                                                          \
    (name##_type_14, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_14(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_16(name, p, ...)                                                          \
    (name##_type_15, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_15(name, __VA_ARGS__)
#define FILCH_IMPL_TYPED_17(name, p, ...)                                                          \
    (name##_type_16, FILCH_IMPL_NAME_OF p), FILCH_IMPL_TYPED_16(name, __VA_ARGS__)

#define FILCH_IMPL_FIELD(type, a) FILCH_IMPL_KEPT(type) a;
#define FILCH_IMPL_NAME(type, a) char a;
#define FILCH_IMPL_ONE(type, a) +1
#define FILCH_IMPL_PARAM(type, a) , type a
#define FILCH_IMPL_PASS(type, a) , a
#define FILCH_IMPL_TO_CHILD(type, a) filch_child->args.a = a;
#define FILCH_IMPL_TO_SLOT(type, a) filch_args->a = a;
#define FILCH_IMPL_IN_SLOT(type, a) , filch_args->a
#define FILCH_IMPL_IN_CHILD(type, a) , filch_child->args.a

#define FILCH_IMPL_FIELD_NONE char filch_nothing;
#define FILCH_IMPL_NAME_NONE char filch_nothing;
#define FILCH_IMPL_ONE_NONE +1
#define FILCH_IMPL_PARAM_NONE
#define FILCH_IMPL_PASS_NONE
#define FILCH_IMPL_TO_CHILD_NONE filch_child->args.filch_nothing = 0;
#define FILCH_IMPL_TO_SLOT_NONE
#define FILCH_IMPL_IN_SLOT_NONE
#define FILCH_IMPL_IN_CHILD_NONE

/* m(type, a) for each pair, or m_NONE. The list ends with `~`, and n is its FILCH_IMPL_COUNT.
 * Counting takes long, so it is done once for each list. */
#define FILCH_IMPL_EACH(n, m, ...) FILCH_IMPL_EACH_##n(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_1(m, end) m##_NONE
#define FILCH_IMPL_EACH_2(m, a, ...) m a
#define FILCH_IMPL_EACH_3(m, a, ...) m a FILCH_IMPL_EACH_2(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_4(m, a, ...) m a FILCH_IMPL_EACH_3(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_5(m, a, ...) m a FILCH_IMPL_EACH_4(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_6(m, a, ...) m a FILCH_IMPL_EACH_5(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_7(m, a, ...) m a FILCH_IMPL_EACH_6(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_8(m, a, ...) m a FILCH_IMPL_EACH_7(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_9(m, a, ...) m a FILCH_IMPL_EACH_8(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_10(m, a, ...) m a FILCH_IMPL_EACH_9(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_11(m, a, ...) m a FILCH_IMPL_EACH_10(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_12(m, a, ...) m a FILCH_IMPL_EACH_11(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_13(m, a, ...) m a FILCH_IMPL_EACH_12(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_14(m, a, ...) m a FILCH_IMPL_EACH_13(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_15(m, a, ...) m a FILCH_IMPL_EACH_14(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_16(m, a, ...) m a FILCH_IMPL_EACH_15(m, __VA_ARGS__)
#define FILCH_IMPL_EACH_17(m, a, ...) m a FILCH_IMPL_EACH_16(m, __VA_ARGS__)

#define FILCH_IMPL_COUNT(...)                                                                      \
    FILCH_IMPL_COUNT_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,     \
                      MANY, MANY, MANY, MANY, MANY, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, \
                      4, 3, 2, 1, ~)
#define FILCH_IMPL_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x,  \
                          y, z, a2, b2, c2, d2, e2, f2, count, ...)                                \
    count

/* `, arguments` out of "name, arguments...". */
#define FILCH_IMPL_ARGUMENTS(...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_ARGUMENTS_, FILCH_IMPL_HAS_MORE(__VA_ARGS__))(__VA_ARGS__)
#define FILCH_IMPL_HAS_MORE(...)                                                                   \
    FILCH_IMPL_COUNT_(__VA_ARGS__, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,  \
                      2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, ~)
#define FILCH_IMPL_ARGUMENTS_1(name)
#define FILCH_IMPL_ARGUMENTS_2(name, ...) , __VA_ARGS__

/* a if R is void, otherwise b. (`void *` is not void: its bracket does not follow the probe.) */
#define FILCH_IMPL_PICK(R, a, b) FILCH_IMPL_SECOND(FILCH_IMPL_PROBE_##R() a, b, ~)
#define FILCH_IMPL_SECOND(...) FILCH_IMPL_SECOND_(__VA_ARGS__)
#define FILCH_IMPL_SECOND_(a, b, ...) b
#define FILCH_IMPL_PROBE_void() ,

#define FILCH_IMPL_CAT(a, b) FILCH_IMPL_CAT_(a, b)
#define FILCH_IMPL_CAT_(a, b) a##b

/* ---- Names that must be those of tasks ------------------------------------------------------- */

/*
 * The list is "name, arguments..., ~". Each macro ends with a function of the task, and the
 * brackets with its arguments follow. A name that is not that of a task shall be one error:
 *
 *   - gcc reports an undeclared name once for each function. So mention name_is_a_FILCH_TASK first.
 *     The function stands in brackets: otherwise, C declares an unknown function implicitly.
 *   - clang reports each use of each undeclared name, and often suggests the name of another task.
 *     It suggests nothing for the name of a struct. If the first operand of __builtin_choose_expr
 *     is invalid, clang skips the others.
 */
#ifdef __clang__
#define FILCH_IMPL_IF_VALID(expression, function)                                                  \
    (__builtin_choose_expr(sizeof(expression) > 0, function, 0))
#define FILCH_IMPL_TASK_FUNCTION(suffix, name, ...)                                                \
    (__builtin_choose_expr(sizeof(struct name##_is_a_FILCH_TASK) > 0, name##suffix, 0))
#define FILCH_IMPL_FORK(child, join, name, ...)                                                    \
    struct name##_is_a_FILCH_TASK child;                                                           \
    FILCH_IMPL_STATIC __typeof__(FILCH_IMPL_IF_VALID(child, name##_join)) *const join =            \
        FILCH_IMPL_IF_VALID(child, name##_join);                                                   \
    FILCH_IMPL_IF_VALID(child, name##_fork)
#define FILCH_IMPL_SPAWN(name, ...)                                                                \
    struct name##_is_a_FILCH_TASK filch_spawned __attribute__((unused));                           \
    FILCH_IMPL_STATIC_ASSERT(FILCH_IMPL_IF_VALID(filch_spawned, name##_fits),                      \
                             FILCH_IMPL_TEXT_FITS);                                                \
    FILCH_IMPL_IF_VALID(filch_spawned, name##_spawn)
#define FILCH_IMPL_SUBMIT(name, ...)                                                               \
    (__builtin_choose_expr(sizeof(struct name##_is_a_FILCH_TASK) > 0,                              \
                           (FILCH_IMPL_CHECK_SUBMIT(name##_forked), name##_submit), 0))
#else
#define FILCH_IMPL_TASK_FUNCTION(suffix, name, ...)                                                \
    (void)sizeof(name##_is_a_FILCH_TASK), (name##suffix)
#define FILCH_IMPL_FORK(child, join, name, ...)                                                    \
    FILCH_IMPL_TYPEOF(name##_is_a_FILCH_TASK) child;                                               \
    FILCH_IMPL_JOIN_OF const join = name##_join;                                                   \
    (name##_fork)
#define FILCH_IMPL_SPAWN(name, ...)                                                                \
    (void)sizeof(name##_is_a_FILCH_TASK);                                                          \
    FILCH_IMPL_STATIC_ASSERT(name##_fits, FILCH_IMPL_TEXT_FITS);                                   \
    (name##_spawn)
#define FILCH_IMPL_SUBMIT(name, ...)                                                               \
    FILCH_IMPL_CHECK_SUBMIT(FILCH_IMPL_TYPEOF(name##_is_a_FILCH_TASK)), (name##_submit)
#endif
#define FILCH_IMPL_TEXT_FITS                                                                       \
    "the arguments of a spawned task are larger than its slot: fork it, or pass a pointer"

/* The type in which an argument or a result is kept: not const, and without references. Types are
 * checked where the task is defined. */
#ifdef __cplusplus
#define FILCH_IMPL_QUIET
#define FILCH_IMPL_LOUD
#define FILCH_IMPL_TYPEOF(x) decltype(x)
#define FILCH_IMPL_JOIN_OF static auto *
/* So a child with the name of its task is an error with clang++, too: its join would be itself. */
#define FILCH_IMPL_STATIC static constexpr
#define FILCH_IMPL_STATIC_ASSERT(condition, text) static_assert(condition, text)
#define FILCH_IMPL_KEPT(type) std::decay_t<type>
/* Instead of a type that cannot be copied: its errors would hide the one that matters. */
struct filch_impl_any {
    template <class... T> filch_impl_any(T &&...);
};
#define FILCH_IMPL_TYPEDEF(T, type)                                                                \
    FILCH_IMPL_TYPEDEF_RESULT(T##_given, type)                                                     \
    typedef std::conditional_t<std::is_trivially_copyable<std::decay_t<T##_given>>::value,         \
                               T##_given, filch_impl_any>                                          \
        T;
#define FILCH_IMPL_TYPEDEF_RESULT(T, type)                                                         \
    typedef __typeof__(type) T;                                                                    \
    static_assert(std::is_trivially_copyable<std::decay_t<T>>::value &&                            \
                      !std::is_reference<T>::value,                                                \
                  "FILCH_TASK arguments and results are trivially copyable: pass a pointer");      \
    static_assert(!std::is_array<T>::value,                                                        \
                  "FILCH_TASK arguments are no arrays: write (type *, name), or use a struct");
#define FILCH_IMPL_CHECK_SUBMIT(forked)                                                            \
    (void)sizeof(filch_impl_check_submit<(alignof(forked) <= alignof(max_align_t))>)
template <bool fits> struct filch_impl_check_submit {
    static_assert(fits, "an argument needs a larger alignment than a submitted task has");
};
#else
/* An argument that is an array is one error, not also a warning for each copy of it. */
#define FILCH_IMPL_QUIET                                                                           \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"")          \
        _Pragma("GCC diagnostic ignored \"-Warray-bounds\"")
#define FILCH_IMPL_LOUD _Pragma("GCC diagnostic pop")
#define FILCH_IMPL_TYPEOF(x) __typeof__(x)
#define FILCH_IMPL_JOIN_OF __extension__ static __auto_type
#define FILCH_IMPL_STATIC static
#define FILCH_IMPL_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#define FILCH_IMPL_KEPT(type) __typeof__(((void)0, *(type *)0))
/* gcc reports an unknown type in __typeof__ only once. Clang has a better message for an unknown
 * type elsewhere: so it is used in the first operand of __builtin_choose_expr, too. If that operand
 * is invalid, clang skips the others. */
#ifdef __clang__
#define FILCH_IMPL_GIVEN(type)                                                                     \
    __typeof__(*__builtin_choose_expr(__builtin_types_compatible_p(type, void) >= 0,               \
                                      (__typeof__(type) *)0, 0))
#else
#define FILCH_IMPL_GIVEN(type) __typeof__(type)
#endif
#define FILCH_IMPL_TYPEDEF(T, type)                                                                \
    typedef FILCH_IMPL_GIVEN(type) T;                                                              \
    _Static_assert(__builtin_types_compatible_p(T, FILCH_IMPL_KEPT(T)),                            \
                   "FILCH_TASK arguments are no arrays: write (type *, name), or use a struct");
#define FILCH_IMPL_TYPEDEF_RESULT FILCH_IMPL_TYPEDEF
#define FILCH_IMPL_CHECK_SUBMIT(forked)                                                            \
    (void)sizeof(struct {                                                                          \
        _Static_assert(_Alignof(forked) <= _Alignof(max_align_t),                                  \
                       "an argument needs a larger alignment than a submitted task has");          \
        char filch_one;                                                                            \
    })
#endif

#endif
