/* SPDX-License-Identifier: MIT */
/*
 * The state of one execution, which all parts of the model checker share.
 *
 *     thread.c    model threads: coroutines that stop before each operation
 *     location.c  atomic words and their stores
 *     memory.c    which stores an operation may read, and which it makes visible (README.md)
 *     sc.c        which of these choices seq_cst forbids
 *     futex.c     waiting: futexes, pauses
 *     heap.c      memory of the program; shadow.c its plain accesses: races, use after free
 *     depend.c    which operations do not commute, and which orders the search must try for that
 *     share.c     which words are shared: bounded search preempts threads only there
 *     explore.c   choices, and how the search tries all of them
 *     run.c       one execution after the other; report.c prints
 *
 * The compiler does not instrument the engine. All state of the engine is MC_KEEP or comes from
 * mmap.
 */
#ifndef MC_ENGINE_H
#define MC_ENGINE_H

#include "mc/mc.h"

#include <filch/atomic.h>

#include <string.h>

/* ---- knowledge of threads about each other --------------------------------------------------- */

/* A thread's clock numbers its operations. A view holds, for each thread, the last operation that
 * happens before. */
typedef struct view {
    uint32_t hb[MC_THREADS_MAX];
} view;

static inline void join_view(view *to, const view *from)
{
    for (int i = 0; i < MC_THREADS_MAX; i++)
        to->hb[i] = from->hb[i] > to->hb[i] ? from->hb[i] : to->hb[i];
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A value that a location has, or had. */
typedef struct store {
    uint64_t value;
    view view;     /* an acquiring load of this store learns it */
    uint64_t rank; /* in modification order */
    uint32_t seq;  /* the step of `tid` that made it; 0: a plain store, or there from the start */
    uint8_t tid;
    bool is_uninitialised, is_rmw;
    const uint32_t *past; /* the past of that step */
    mc_site site;
} store;

/* A run of operations of one thread at one word. */
typedef struct stay {
    const struct location *location;
    view before;  /* the thread's view until then */
    uint32_t end; /* clock of the thread's next operation elsewhere */
} stay;

typedef enum visit_kind {
    VISIT_NONE, /* no operation: another event keeps the thread from reading older stores */
    VISIT_READ,
    VISIT_WRITE, /* also a read-modify-write */
} visit_kind;

/* A thread has read or written the store of this rank. Or it is a seq_cst fence, which has no
 * word. */
typedef struct visit {
    uint8_t tid;
    visit_kind kind;
    uint32_t clock;
    uint64_t rank;
    view now;             /* the thread's view after this visit */
    struct visit *before; /* of the same thread, at the same location */

    /* Only for seq_cst (sc.c). */
    const stay *stay; /* NULL: a fence */
    struct visit *sc_before, *todo;
    uint64_t round;
} visit;

/* An atomic word and its history; stores are in modification order. */
typedef struct location {
    uintptr_t address;
    uint32_t size;
    uint32_t count, capacity;
    store **stores;
    visit *last[MC_THREADS_MAX];         /* of each thread */
    uint32_t last_write[MC_THREADS_MAX]; /* clock of each thread's last atomic store */
    bool is_overwritten;                 /* by a plain store since the last operation */
    uint8_t plain_tid;
    uint32_t plain_clock;
    struct { /* per thread, for mc_pause: the word's place in `spinning`, and of which round */
        uint32_t round, place;
    } spun[MC_THREADS_MAX];
} location;

/* ---- operations, as the exploration sees them ------------------------------------------------ */

typedef enum kind {
    OP_LOAD,
    OP_STORE,
    OP_RMW,
    OP_CAS,
    OP_WAIT,
    OP_WAKE,
    OP_PAUSE,
    OP_JOIN,
    OP_ALIVE,
    OP_CRASH,
} kind;

/* Effects that do not commute with others; see are_dependent. */
enum {
    READS = 1,
    WRITES = 2,
    WAITS = 4,
    WAKES = 8,
};

typedef struct spin {
    const location *location;
    uint64_t rank; /* of the store that was read */
} spin;

/* An operation that a thread is about to do. */
typedef struct operation {
    kind kind;
    unsigned effects; /* at most */
    uintptr_t address;
    uint64_t wanted; /* of OP_CAS */
    int target;      /* of OP_JOIN, OP_ALIVE */
    mc_site site;
} operation;

/* The operation as it was done. */
typedef struct deed {
    kind kind;
    unsigned effects;  /* its possible effects: mc_next_effects */
    const store *read; /* or NULL */
    store *written;    /* or NULL */
} deed;

/* An operation that was done, with all that identifies it in an equivalent order. */
typedef struct step {
    uint8_t tid;
    unsigned effects;
    uintptr_t address;
    uint64_t rank; /* of the store it made or read */
    uint32_t seq;  /* the thread's steps are 1, 2 ... */
    /* Steps of each thread that come before this one in every equivalent order. */
    uint32_t past[MC_THREADS_MAX];
    int node;          /* where it was chosen */
    const spin *spins; /* of OP_PAUSE */
    unsigned spin_count;
} step;

/* ---- threads --------------------------------------------------------------------------------- */

typedef enum thread_state {
    THREAD_LOCAL,        /* has code to run up to its next operation */
    THREAD_AT_OPERATION, /* stopped before it */
    THREAD_BLOCKED,      /* in a futex wait */
    THREAD_ENDED,
    THREAD_CRASHED,
} thread_state;

typedef struct thread {
    thread_state state;
    int id;
    void *sp;
    char *tls; /* its copy of the program's thread-local variables while it does not run */
    void (*fn)(void *);
    void *argument;

    operation op;
    /* The view; the view after an acquire fence; the view at the last release fence. */
    view now, acquired, released;
    stay *stay; /* NULL: its last operation was at no word */
    uint32_t seq;
    uint32_t past[MC_THREADS_MAX]; /* of its last step */

    uintptr_t waits_on;
    bool has_timeout, may_crash, is_joined;
    unsigned spins, faults, spurious, timeouts; /* how many are left */
    uint64_t clock_ns;

    /* MC_BOUNDED: the step that another thread did instead, counted from 1; 0: none. */
    unsigned preempted_at;

    uint32_t round; /* pauses so far */
    /* Stores that the thread has read since its last pause. */
    spin *spinning;
    unsigned spin_count, spin_capacity;
} thread;

/* ---- the execution --------------------------------------------------------------------------- */

typedef enum outcome {
    RUNNING,
    COMPLETE,
    BLOCKED, /* equals another execution, or needs no end */
    FAILED,
} outcome;

typedef struct engine {
    const mc_program *program;
    mc_options options;
    mc_result result;
    bool is_reduced; /* by depend.c */
    bool has_places; /* a store may go behind newer ones: MC_FULL */
    bool is_traced;

    thread *current; /* NULL: the engine runs, or no execution does */
    thread threads[MC_THREADS_MAX];
    int thread_count;
    void *scheduler_sp;
    outcome outcome;
    const void *failure_pc[MC_THREADS_MAX];

    uint32_t base_clock;  /* all clocks of earlier executions are below */
    uint64_t fingerprint; /* of the steps so far, in any equivalent order */
    visit *sc;            /* the seq_cst operations so far, the last one first */
    bool has_sc_fence;
    location *locations;
    unsigned location_count;

    step *steps;
    unsigned step_count;
    unsigned asleep; /* threads that need not be tried here: sleep set */
} engine;

extern engine mc;

#define MC_STEPS_MAX 200000

/* thread.c */
void mc_threads_init(void);
thread *mc_thread_start(void (*fn)(void *), void *argument);
void mc_thread_resume(thread *t);
void mc_announce(const operation *op);
void mc_block(void); /* until state is LOCAL again */
/* End the execution, from inside a thread. */
void mc_leave(void) __attribute__((noreturn));
bool mc_is_enabled(const thread *t);

/* location.c */
location *mc_locate(thread *t, uintptr_t address, uint32_t size, mc_site site); /* t visits it */
const location *mc_find(uintptr_t address); /* NULL: it was not accessed yet, or was overwritten */
store *mc_insert(location *l, uint32_t at, uint64_t value, int tid, mc_site site);
uint64_t mc_rank_behind(const location *l, uint32_t i); /* of a store behind store i */
void mc_visit(const thread *t, location *l, uint64_t rank, visit_kind how, int order);
uint64_t mc_oldest(const thread *t, const location *l);

static inline const store *mc_newest(const location *l)
{
    return l->stores[l->count - 1];
}

/* memory.c */
void mc_tick(thread *t);
unsigned mc_next_effects(const thread *t);

/* sc.c */
void mc_stay(thread *t, const location *l); /* t's next operation is at l; NULL: at no word */
void mc_sc_add(visit *v);
void mc_sc_fence(const thread *t);
/* Whether psc stays without a cycle if the operation reads store i, or writes behind it. */
bool mc_sc_allows(const thread *t, location *l, uint32_t i, bool is_write, int order);

/* futex.c */
bool mc_has_news(const spin *spins, unsigned count);
void mc_spin_note(thread *t, location *l, uint64_t rank);

/* heap.c */
void mc_heap_init(void);
void mc_heap_reset(void);
void *mc_scratch(size_t bytes); /* engine memory until the end of the execution; zeroed */
void *mc_reserve(size_t bytes); /* engine memory for ever; zeroed when touched */
char *mc_stack_of(int id, size_t *bytes);
bool mc_offset(uintptr_t address, size_t *offset); /* false: the address is not watched */
bool mc_heap_leaks(char *text, size_t size);
void mc_check_live(uintptr_t address, size_t size, const void *pc);
bool mc_is_initialised(uintptr_t address, size_t size);
void mc_mark_written(size_t offset, size_t size);

/* shadow.c */
void mc_shadow_init(size_t watched_bytes);
typedef enum plain { PLAIN_READ, PLAIN_COPY, PLAIN_WRITE, PLAIN_FREE } plain;
void mc_plain(uintptr_t address, size_t size, plain how, const void *pc);
void mc_check_plain(thread *t, uintptr_t address, size_t size, bool is_write, mc_site site);
uint16_t *mc_location_ids(size_t offset);
void mc_shadow_reset_clocks(void);

/* depend.c */
void mc_commit(thread *t, const deed *deed);
bool mc_is_needed(const thread *t, const location *l, uint32_t i, bool is_write);
bool mc_is_preempted_in_vain(const thread *t);
uint64_t mc_fingerprint(void); /* of the execution that has ended */

/* share.c */
void mc_share_begin(void);
void mc_share_note(const thread *t, const step *s);
bool mc_share_matters(const thread *t);
unsigned mc_share_count(void);

/* explore.c */
void mc_explore_begin(unsigned preemptions);
bool mc_explore_next(void); /* false: all was tried */
void mc_explore_rewind(void);
int mc_pick_thread(unsigned enabled); /* -1: nothing new to try here */
unsigned mc_pick(unsigned count);
uint32_t mc_pick_store(uint32_t newest, const uint32_t *candidates, unsigned count);
void mc_add_backtrack(int node, unsigned initials);
int mc_node(void);
bool mc_is_repeated(void);
void mc_replay(const char *choices);
char *mc_choices(void);

/* report.c */
__attribute__((format(printf, 3, 4))) void mc_trace(const thread *t, mc_site site,
                                                    const char *format, ...);
void mc_trace_reset(void);
void mc_print_trace(void);
void mc_resolve_failure(void); /* put places in for {0}, {1} ... */
const char *mc_order_name(int order);
const char *mc_value_name(uint64_t value, uint32_t size);
bool mc_is_acquire(int order);
bool mc_is_release(int order);

/* The report prints the places of these instructions for {0} and {1}. */
__attribute__((noreturn, format(printf, 3, 4))) void
mc_fail_at(const void *pc, const void *other_pc, const char *format, ...);

/* run.c */
__attribute__((noreturn, format(printf, 2, 3))) void mc_fatal(const char *what, const char *format,
                                                              ...);

#endif
