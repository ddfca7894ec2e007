/* SPDX-License-Identifier: MIT */
/*
 * The parts of the macros in filch/task.h. Not for users: any of them may change.
 */
#ifndef FILCH_IMPL_TASK_H
#define FILCH_IMPL_TASK_H

#include <filch/future.h>
#include <filch/impl/check.h>
#include <filch/pool.h>
#include <filch/strand.h>

#define FILCH_IMPL_ALWAYS_INLINE static inline __attribute__((always_inline, unused))

#ifdef __cplusplus
extern "C" {
#endif

/* Used by checked builds: count open forks, and stop the program at a join that is out of order. */
FILCH_API unsigned filch_check_enter(filch_frame *f, const char *task);
FILCH_API void filch_check_leave(filch_frame *f, unsigned open, const char *task);
FILCH_API unsigned filch_check_fork(filch_frame *f);
FILCH_API void filch_check_join(filch_frame *f, unsigned order, const char *name, const char *file,
                                int line);
FILCH_API void filch_check_sync(filch_frame *f, filch_frame *mark);

/* Used by FILCH_RUN: like filch_run, but where that returns an error, runs the task serially. */
FILCH_API void filch_run_always(filch_pool *pool, filch_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#define FILCH_IMPL_FUNCTION(suffix, R, name, ...)                                                  \
    static inline __attribute__((unused)) R FILCH_IMPL_CAT(name, suffix)(                          \
        filch_frame * filch_here __attribute__((unused)),                                          \
        filch_frame * filch_mark __attribute__((unused))                                           \
                      FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))

/* ---- What FILCH_DECLARE generates; R is the result, `...` the (type, argument) pairs --------- */

/* The arguments, and the variable that FILCH_FORK declares. A task too large for its slot stays
 * there. */
#define FILCH_IMPL_DEFINE_MEMORY(R, name, ...)                                                     \
    typedef struct name##_args {                                                                   \
        FILCH_IMPL_EACH(FILCH_IMPL_FIELD, __VA_ARGS__)                                             \
    } name##_args;                                                                                 \
    typedef struct name##_forked {                                                                 \
        filch_slot *slot;                                                                          \
        FILCH_IMPL_CHECK_FIELD                                                                     \
        name##_args args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FIELD)(R)                         \
    } name##_forked;                                                                               \
    enum {                                                                                         \
        name##_fits = sizeof(name##_args) <= FILCH_SLOT_ROOM FILCH_IMPL_PICK(                      \
                                                 R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FITS)(R) \
    };

/* How a thief, or a join that has no `name_forked`, runs the task in a slot. */
#define FILCH_IMPL_DEFINE_THUNK(R, name, ...)                                                      \
    static __attribute__((unused)) void name##_thunk(filch_frame *filch_f, filch_slot *filch_task) \
    {                                                                                              \
        name##_forked *const filch_child =                                                         \
            name##_fits ? NULL : *(name##_forked **)(void *)filch_task->room;                      \
        name##_args *const filch_args =                                                            \
            name##_fits ? (name##_args *)(void *)filch_task->room : &filch_child->args;            \
        (void)filch_args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_KEEP_RESULT)                             \
        (R, name) name##_body(filch_f, filch_f FILCH_IMPL_EACH(FILCH_IMPL_IN_SLOT, __VA_ARGS__));  \
    }

/* One store per argument, one for the thunk, one comparison. */
#define FILCH_IMPL_DEFINE_FORK(R, name, ...)                                                       \
    FILCH_IMPL_ALWAYS_INLINE void name##_fork(                                                     \
        filch_frame **filch_at,                                                                    \
        name##_forked *filch_child FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))                 \
    {                                                                                              \
        filch_frame *filch_f = *filch_at;                                                          \
        FILCH_IMPL_CHECK_FORK(filch_child, filch_f);                                               \
        FILCH_IMPL_EACH(FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                          \
        if (name##_fits) {                                                                         \
            name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                  \
            (void)filch_args;                                                                      \
            FILCH_IMPL_EACH(FILCH_IMPL_TO_SLOT, __VA_ARGS__)                                       \
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
    FILCH_IMPL_ALWAYS_INLINE void name##_spawn(                                                    \
        filch_frame **filch_at,                                                                    \
        filch_frame *filch_mark FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))                    \
    {                                                                                              \
        filch_frame *const filch_f = *filch_at;                                                    \
        FILCH_IMPL_CHECK_SPAWN(filch_f);                                                           \
        name##_args *const filch_args = (name##_args *)(void *)filch_f->room;                      \
        (void)filch_args;                                                                          \
        FILCH_IMPL_EACH(FILCH_IMPL_TO_SLOT, __VA_ARGS__)                                           \
        /* relaxed: carried to thieves by [task-ready] when the slot is published. */              \
        filch_store_relaxed(&filch_f->state, (uintptr_t)name##_thunk);                             \
        *filch_at =                                                                                \
            filch_fork_is_slow(filch_f) ? filch_spawn_slow(filch_f, filch_mark) : filch_f + 1;     \
    }

/* One comparison, then a direct call with arguments that the compiler still has in registers. It
 * must stay one expression with one call: then gcc inlines the recursion as in a serial program. */
#define FILCH_IMPL_DEFINE_JOIN(R, name, ...)                                                       \
    FILCH_IMPL_ALWAYS_INLINE R name##_join(filch_frame **filch_at, name##_forked *filch_child)     \
    {                                                                                              \
        filch_frame *const filch_f = *filch_at = filch_child->slot;                                \
        const bool filch_stolen = filch_join_is_slow(filch_f) && !filch_join_slow(filch_f);        \
        FILCH_IMPL_PICK(R, FILCH_IMPL_JOIN_VOID, FILCH_IMPL_JOIN_VALUE)                            \
        (R, name,                                                                                  \
         name##_body(filch_f, filch_f FILCH_IMPL_EACH(FILCH_IMPL_IN_CHILD, __VA_ARGS__)));         \
    }

#define FILCH_IMPL_DEFINE_RUN(R, name, ...)                                                        \
    static __attribute__((unused)) void name##_root(filch_frame *filch_f, void *filch_work)        \
    {                                                                                              \
        name##_forked *const filch_child = (name##_forked *)filch_work;                            \
        (void)filch_child;                                                                         \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_ROOT_RESULT)                             \
        () name##_body(filch_f, filch_f FILCH_IMPL_EACH(FILCH_IMPL_IN_CHILD, __VA_ARGS__));        \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    R name##_run(filch_pool *filch_in FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))              \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_IMPL_EACH(FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                          \
        filch_run_always(filch_in, name##_root, filch_child);                                      \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RETURN_RESULT)()                         \
    }                                                                                              \
    static inline __attribute__((unused)) int name##_submit(                                       \
        filch_pool *filch_in FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))                       \
    {                                                                                              \
        name##_forked filch_work, *const filch_child = &filch_work;                                \
        FILCH_IMPL_EACH(FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                          \
        return filch_submit_copy(filch_in, name##_root, filch_child, sizeof filch_work);           \
    }

/* FILCH_FUTURE_SUBMIT: the caller's memory holds the future, the arguments and the result. */
#define FILCH_IMPL_DEFINE_FUTURE(R, name, ...)                                                     \
    typedef struct name##_future {                                                                 \
        filch_future future;                                                                       \
        name##_args args;                                                                          \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_RESULT_FIELD)(R)                         \
    } name##_future;                                                                               \
    static __attribute__((unused)) int name##_complete(filch_frame *filch_f, void *filch_work,     \
                                                       void **filch_value)                         \
    {                                                                                              \
        name##_future *const filch_child = (name##_future *)filch_work;                            \
        (void)filch_child;                                                                         \
        (void)filch_value;                                                                         \
        FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_FUTURE_RESULT)                           \
        () name##_body(filch_f, filch_f FILCH_IMPL_EACH(FILCH_IMPL_IN_CHILD, __VA_ARGS__));        \
        return 0;                                                                                  \
    }                                                                                              \
    static inline __attribute__((unused)) int name##_future_start(                                 \
        filch_pool *filch_in,                                                                      \
        name##_future *filch_child FILCH_IMPL_EACH(FILCH_IMPL_PARAM, __VA_ARGS__))                 \
    {                                                                                              \
        filch_future_init(&filch_child->future);                                                   \
        FILCH_IMPL_EACH(FILCH_IMPL_TO_CHILD, __VA_ARGS__)                                          \
        return filch_future_submit(filch_in, &filch_child->future, name##_complete, filch_child);  \
    }

/* Ends the declarations: takes the semicolon that follows FILCH_DECLARE. */
#define FILCH_IMPL_DEFINE_END(R, name, ...) typedef struct name##_forked name##_forked

/* The parts that differ for a void result. */
#define FILCH_IMPL_NOTHING(...)
#define FILCH_IMPL_RESULT_FIELD(R) R result;
#define FILCH_IMPL_RESULT_FITS(R) &&sizeof(R) <= FILCH_SLOT_ROOM
#define FILCH_IMPL_KEEP_RESULT(R, name)                                                            \
    *(name##_fits ? (R *)(void *)filch_task->room : &filch_child->result) =
#define FILCH_IMPL_JOIN_VALUE(R, name, call)                                                       \
    return filch_stolen ? *(name##_fits ? (R *)(void *)filch_f->room : &filch_child->result) : call
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
#define FILCH_IMPL_DEFINE_OUTER(R, name, ...)                                                      \
    FILCH_IMPL_FUNCTION(_body, R, name, __VA_ARGS__) FILCH_IMPL_NOEXCEPT                           \
    {                                                                                              \
        FILCH_IMPL_CHECK_ENTER(filch_here, #name)                                                  \
        FILCH_IMPL_TRY FILCH_IMPL_PICK(R, FILCH_IMPL_NOTHING, FILCH_IMPL_INNER_RESULT)(R)          \
            name##_inner(filch_here, filch_mark FILCH_IMPL_EACH(FILCH_IMPL_PASS, __VA_ARGS__));    \
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
#define FILCH_IMPL_CHECK_ENTER(f, task) const unsigned filch_open = filch_check_enter(f, task);
#define FILCH_IMPL_CHECK_LEAVE(f, task) filch_check_leave(f, filch_open, task);
#define FILCH_IMPL_CHECK_FIELD unsigned order;
#define FILCH_IMPL_CHECK_FORK(child, f) (child)->order = filch_check_fork(f)
#define FILCH_IMPL_CHECK_SPAWN(f) (void)filch_check_fork(f)
#define FILCH_IMPL_CHECK_SYNC() filch_check_sync(filch_here, filch_mark)
#define FILCH_IMPL_CHECK_JOIN(child)                                                               \
    filch_check_join((child).slot, (child).order, #child, __FILE__, __LINE__)
#else
#define FILCH_IMPL_CHECK_ENTER(f, task)
#define FILCH_IMPL_CHECK_LEAVE(f, task)
#define FILCH_IMPL_CHECK_FIELD
#define FILCH_IMPL_CHECK_FORK(child, f) (void)0
#define FILCH_IMPL_CHECK_SPAWN(f) (void)0
#define FILCH_IMPL_CHECK_SYNC() (void)0
#define FILCH_IMPL_CHECK_JOIN(child) (void)0
#endif

/* ---- Lists of arguments ---------------------------------------------------------------------- */

#define FILCH_IMPL_FIELD(type, a) type a;
#define FILCH_IMPL_PARAM(type, a) , type a
#define FILCH_IMPL_PASS(type, a) , a
#define FILCH_IMPL_TO_CHILD(type, a) filch_child->args.a = a;
#define FILCH_IMPL_TO_SLOT(type, a) filch_args->a = a;
#define FILCH_IMPL_IN_SLOT(type, a) , filch_args->a
#define FILCH_IMPL_IN_CHILD(type, a) , filch_child->args.a

#define FILCH_IMPL_FIELD_NONE char filch_nothing;
#define FILCH_IMPL_PARAM_NONE
#define FILCH_IMPL_PASS_NONE
#define FILCH_IMPL_TO_CHILD_NONE filch_child->args.filch_nothing = 0;
#define FILCH_IMPL_TO_SLOT_NONE
#define FILCH_IMPL_IN_SLOT_NONE
#define FILCH_IMPL_IN_CHILD_NONE

/* m(type, a) for each pair, or m_NONE. The list ends with `~`. */
#define FILCH_IMPL_EACH(m, ...)                                                                    \
    FILCH_IMPL_CAT(FILCH_IMPL_EACH_, FILCH_IMPL_COUNT(__VA_ARGS__))(m, __VA_ARGS__)
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
    FILCH_IMPL_COUNT_(__VA_ARGS__, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ~)
#define FILCH_IMPL_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, count, ...) count

/* name##suffix and `, arguments` out of "name, arguments...". */
#define FILCH_IMPL_OF(suffix, ...) FILCH_IMPL_CAT(FILCH_IMPL_FIRST(__VA_ARGS__, ~), suffix)
#define FILCH_IMPL_FIRST(a, ...) a
#define FILCH_IMPL_ARGUMENTS(...)                                                                  \
    FILCH_IMPL_CAT(FILCH_IMPL_ARGUMENTS_, FILCH_IMPL_COUNT_(__VA_ARGS__, 2, 2, 2, 2, 2, 2, 2, 2,   \
                                                            2, 2, 2, 2, 2, 2, 2, 2, 1, ~))         \
    (__VA_ARGS__)
#define FILCH_IMPL_ARGUMENTS_1(name)
#define FILCH_IMPL_ARGUMENTS_2(name, ...) , __VA_ARGS__

/* a if R is void, otherwise b. (`void *` is not void: its bracket does not follow the probe.) */
#define FILCH_IMPL_PICK(R, a, b) FILCH_IMPL_SECOND(FILCH_IMPL_PROBE_##R() a, b, ~)
#define FILCH_IMPL_SECOND(...) FILCH_IMPL_SECOND_(__VA_ARGS__)
#define FILCH_IMPL_SECOND_(a, b, ...) b
#define FILCH_IMPL_PROBE_void() ,

#define FILCH_IMPL_CAT(a, b) FILCH_IMPL_CAT_(a, b)
#define FILCH_IMPL_CAT_(a, b) a##b

#ifdef __cplusplus
#define FILCH_IMPL_TYPEOF(x) decltype(x)
#define FILCH_IMPL_STATIC_ASSERT(condition, text) static_assert(condition, text)
#define FILCH_IMPL_CHECK_COPY(type)                                                                \
    (void)sizeof(                                                                                  \
        char[__is_trivially_copyable(type) && alignof(type) <= alignof(max_align_t) ? 1 : -1])
#else
#define FILCH_IMPL_TYPEOF(x) __typeof__(x)
#define FILCH_IMPL_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#define FILCH_IMPL_CHECK_COPY(type)                                                                \
    (void)sizeof(struct {                                                                          \
        _Static_assert(_Alignof(type) <= _Alignof(max_align_t),                                    \
                       "an argument needs a larger alignment than a submitted task has");          \
        char filch_one;                                                                            \
    })
#endif

#endif
