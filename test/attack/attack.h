/* SPDX-License-Identifier: MIT */
/*
 * attack: random programs over the whole public interface, which account for all that they do.
 *
 *     seed --> settings --> pools, threads, failures
 *                               |
 *                             actor --> operation --> operation of a smaller actor ...
 *
 * An actor is a seeded source of choices with a budget of operations. act() spends the budget. An
 * operation that starts tasks or threads gives each of them an actor with a part of its budget. So
 * the seed alone determines the program; only the scheduling is up to the machine. README.md has
 * the rules for operations.
 */
#ifndef FILCH_TEST_ATTACK_H
#define FILCH_TEST_ATTACK_H

#include "record.h"

#include <filch/filch.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define ATTACK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATTACK_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ATTACK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTACK_ASAN 1
#endif
#endif
#ifndef ATTACK_TSAN
#define ATTACK_TSAN 0
#endif
#ifndef ATTACK_ASAN
#define ATTACK_ASAN 0
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- what can be left out -------------------------------------------------------------------- */

/* Operations: what tasks and threads do. One function for each; actor.c lists them. */
#define OPERATIONS(X)                                                                              \
    X(tree)                                                                                        \
    X(spawn)                                                                                       \
    X(plain)                                                                                       \
    X(loop)                                                                                        \
    X(reduce)                                                                                      \
    X(sort)                                                                                        \
    X(invoke)                                                                                      \
    X(run)                                                                                         \
    X(submit)                                                                                      \
    X(brief)                                                                                       \
    X(look)                                                                                        \
    X(thread)                                                                                      \
    X(child)                                                                                       \
    X(scope)                                                                                       \
    X(limit)                                                                                       \
    X(future)                                                                                      \
    X(promise)                                                                                     \
    X(any)                                                                                         \
    X(channel)                                                                                     \
    X(shared)                                                                                      \
    X(select)                                                                                      \
    X(mutex)                                                                                       \
    X(rwlock)                                                                                      \
    X(cond)                                                                                        \
    X(sem)                                                                                         \
    X(event)                                                                                       \
    X(barrier)                                                                                     \
    X(once)                                                                                        \
    X(sleep)                                                                                       \
    X(period)                                                                                      \
    X(yield)                                                                                       \
    X(local)                                                                                       \
    X(shield)                                                                                      \
    X(pipeline)                                                                                    \
    X(blocking)                                                                                    \
    X(bytes)                                                                                       \
    X(started)                                                                                     \
    X(closed)                                                                                      \
    X(spliced)                                                                                     \
    X(crowd)                                                                                       \
    X(rivals)                                                                                      \
    X(waiting)                                                                                     \
    X(tcp)                                                                                         \
    X(stream)                                                                                      \
    X(file)                                                                                        \
    X(names)

/* Surroundings: what happens to the process meanwhile. */
#define SURROUNDINGS(X)                                                                            \
    X(signals) /* at a high rate, to any thread */                                                 \
    X(stops)   /* SIGSTOP and SIGCONT, from the supervisor */                                      \
    X(onecore)                                                                                     \
    X(nice)                                                                                        \
    X(many) /* 128 workers */

/* Failures of the calls that the library makes. faults.c has the calls and errors of each. */
#define FAULTS(X)                                                                                  \
    X(memory)                                                                                      \
    X(mapping)                                                                                     \
    X(advice)                                                                                      \
    X(threads)                                                                                     \
    X(rings)                                                                                       \
    X(epoll)                                                                                       \
    X(descriptors)                                                                                 \
    X(transfers)                                                                                   \
    X(short)                                                                                       \
    X(interrupts)                                                                                  \
    X(paths)                                                                                       \
    X(settings)

#define PARTS(X) OPERATIONS(X) SURROUNDINGS(X) FAULTS(X)

typedef enum part {
#define PART(name) PART_##name,
    PARTS(PART)
#undef PART
        PART_COUNT
} part;

#define COUNT_PART(name) +1
enum {
    OPERATION_COUNT = OPERATIONS(COUNT_PART),
    FIRST_FAULT = OPERATION_COUNT SURROUNDINGS(COUNT_PART),
};

extern const char *const part_names[PART_COUNT];

/* ---- what determines a program --------------------------------------------------------------- */

/* A bit for each. */
_Static_assert(PART_COUNT < 64, "there are too many parts for a word");

#define ONLY_MAX 400

typedef struct settings {
    uint64_t seed, parts; /* a bit for each part */
    unsigned budget, depth, worker_limit, pool_limit, thread_limit, loose_limit;
    unsigned size_limit; /* of the numbers within an operation: tasks, entries, bytes */
    unsigned only_count; /* of `only`; 0: all operations may run */
    uint32_t only[ONLY_MAX];
    const char *deque, *io; /* NULL: chosen by the seed */
    bool is_traced;
} settings;

static inline bool has_part(const settings *s, part p)
{
    return s->parts >> p & 1;
}

/* ---- what the supervisor sees ---------------------------------------------------------------- */

/* In memory that the supervisor shares with the program. */
typedef struct board {
    filch_atomic_u64 progress, counts[PART_COUNT], errors;
    FILCH_ATOMIC(const char *) stage; /* what the program does now */
    filch_atomic_u32 is_stopped;      /* the surroundings: may the supervisor stop the process? */
    char config[512];
    record record;
} board;

extern board *the_board;

static inline void add(filch_atomic_u64 *count, uint64_t value)
{
    /* relaxed: read after the end of the threads, or as a sign of life. */
    filch_fetch_add_relaxed(count, value);
}

static inline uint64_t get(filch_atomic_u64 *count)
{
    /* relaxed: as above. */
    return filch_load_relaxed(count);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Report what is wrong, and abort. */
void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define FAIL(...) fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition) ((condition) ? (void)0 : FAIL("not so: %s", #condition))
#define CHECK_EQUAL(a, b)                                                                          \
    do {                                                                                           \
        unsigned long long left_ = (unsigned long long)(a), right_ = (unsigned long long)(b);      \
        if (left_ != right_)                                                                       \
            FAIL("%s is %lld, %s is %lld", #a, (long long)left_, #b, (long long)right_);           \
    } while (0)

/* ---- actors ---------------------------------------------------------------------------------- */

typedef struct actor {
    uint64_t state; /* of its random numbers */
    unsigned budget, depth;
    bool is_cancellable; /* in a scope, or forked by such a task */
    bool is_shielded;
    bool has_lock;  /* waits for no lock of the world, and starts no pool or process */
    bool is_inside; /* a pool that comes and goes: uses no other pool */
    bool is_forked; /* in the child of a fork(): the world's locks may be held for ever */
    bool is_named;  /* `at` is its own entry of the record */
    uint32_t at;    /* the entry of the record below which its operations come */
} actor;

/* A random number below `count`. */
uint32_t below(actor *a, uint32_t count);
static inline bool one_in(actor *a, uint32_t count)
{
    return below(a, count) == 0;
}
uint64_t number(actor *a);

/* An actor with part of the budget of `a`: a share of 1 / `shares`. */
actor part_of(actor *a, unsigned shares);

/* Spend the budget. */
void act(filch_frame *f, actor *a);

/* A number of things to do, unless that is more than the settings allow. */
unsigned sized(unsigned count);

/* A deadline that is past, near or a little later. */
uint64_t some_deadline(actor *a);

/* What a call may return beside success. -ECANCELED and -ENOMEM follow from the actor and the
 * faults. */
enum { MAY_TIME_OUT = 1, MAY_BREAK = 2, MAY_FAIL = 4, MAY_END = 8 };

/* Check that the result is one that the call may have. Returns whether it is a success. */
bool ok_at(const char *file, int line, filch_frame *f, const actor *a, long result, int may);
#define ok(f, a, result, may) ok_at(__FILE__, __LINE__, f, a, (long)(result), may)

/* ---- the world of a program ------------------------------------------------------------------ */

#define POOLS_MAX 4
#define CHANNELS 3

typedef struct world {
    const settings *settings;
    filch_pool *pools[POOLS_MAX];
    unsigned pool_count;
    bool may_lack_memory;
    char folder[64]; /* for files */
    int folder_fd;

    /* Each pair is counted on both sides, and compared at the end. */
    filch_atomic_u64 promised, kept; /* tasks that must run, and those that ran */
    filch_atomic_u64 unsure;         /* tasks that may have run: their scope was cancelled */
    filch_atomic_u64 sent, received; /* in the shared channels: the sums of entries */
    filch_atomic_u64 inside;         /* holders of a unit of the semaphore */

    filch_mutex mutex;
    uint64_t locked, unlocked; /* under the mutex */
    filch_cond cond;
    uint64_t tickets; /* under the mutex */
    filch_rwlock rwlock;
    uint64_t left, right; /* written together */
    filch_sem sem;
    unsigned units; /* of the semaphore */
    filch_event event;
    filch_channel *channels[CHANNELS];
} world;

extern world the_world;

/* One of the pools of the world. The calling task may belong to another pool. */
filch_pool *some_pool(actor *a);

/* Count a task that must run, and one that runs. */
static inline void promise(void)
{
    add(&the_world.promised, 1);
}
static inline void keep(void)
{
    add(&the_world.kept, 1);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* A plain thread. Its end is an event, so that tasks can wait for it. */
typedef struct helper {
    pthread_t thread;
    void (*fn)(filch_frame *f, void *arg);
    void *arg;
    filch_event ended;
} helper;

void helper_start(helper *h, void (*fn)(filch_frame *f, void *arg), void *arg);
void helper_join(filch_frame *f, helper *h);

/* ---- faults ---------------------------------------------------------------------------------- */

/* From the next call on, make calls of the library fail as the seed chooses. */
void faults_start(const settings *s, char *text, size_t bytes);
void faults_stop(void);
bool fault_is_on(part fault);
int fault_percent(part fault);

/* Make no call fail for a while: for the generator's own needs. The pairs nest. */
void faults_pause(void);
void faults_resume(void);

/* For `may` of ok(): an I/O call may return any error while calls of the kernel fail. */
int may_fail_io(int may);

/* What the library has and has not given back. */
typedef struct balance {
    uint64_t blocks, mapped_bytes;
} balance;
balance faults_balance(void);

/* ---- the program ----------------------------------------------------------------------------- */

/* Run the program in this process. Returns when all is accounted for; otherwise aborts. */
void program_run(const settings *s);

/* Print what the pools of the program do; called when the program hangs. */
void program_dump(void);

/* The operations. `f` is NULL on plain threads. */
#define OPERATION(name) void op_##name(filch_frame *f, actor *a);
OPERATIONS(OPERATION)
#undef OPERATION

#endif
