/* SPDX-License-Identifier: MIT */
/*
 * A worker: a seat in the pool and, most of the time, a thread that sits on it.
 *
 * The thread's own stack runs the loop below; tasks run on strands, which the loop enters and which leave back to it.
 * So the loop never moves to another thread, and a strand is handed to others only when nobody stands
 * on its stack any more.
 *
 * A thread from outside that calls filch_run is a guest: it takes a seat that is free and acts as that
 * worker until its task is complete or nothing of it is left to help with.
 */
#ifndef FILCH_WORKER_WORKER_H
#define FILCH_WORKER_WORKER_H

#include "base/topology.h"
#include "deque/queue.h"
#include "sleep/sleep.h"
#include "steal/policy.h"
#include "strand/strand.h"
#include "worker/job.h"
#include "worker/overflow.h"
#include "worker/parked.h"
#include "worker/part.h"
#include "worker/timer.h"

#include <filch/trace.h>

#include <pthread.h>

typedef struct filch_worker filch_worker;
typedef struct filch_source filch_source;

enum filch_counter {
#define FILCH_COUNTER_INDEX(name) FILCH_COUNT_##name,
    FILCH_COUNTERS(FILCH_COUNTER_INDEX)
#undef FILCH_COUNTER_INDEX
        FILCH_COUNTER_COUNT
};

/* What a loop's body costs: how many iterations take half a microsecond. */
typedef struct filch_pace_note {
    uintptr_t body;
    size_t chunk;
} filch_pace_note;

#define FILCH_PACE_NOTES 16

/* When a thief first saw the ready queue of another as it was: lookout.h. */
typedef struct filch_glimpse {
    uint32_t victim, turn; /* victim is its number plus 1 */
    uint64_t ticks;
} filch_glimpse;

#define FILCH_GLIMPSES 8

/* Why a strand leaves its stack: what its worker does next. */
enum filch_leave {
    FILCH_LEAVE_ENDED,     /* its task has ended: the strand is free */
    FILCH_LEAVE_FOR_CHILD, /* waits for a stolen task: src/wait/README.md */
    FILCH_LEAVE_FOR_JOB,   /* waits for a task from outside, filch_run: worker/job.h */
    FILCH_LEAVE_TO_WAIT,   /* waits for the end of strand->wait: strand/wait_word.h */
    FILCH_LEAVE_TO_YIELD,  /* may go on, after the others */
};

struct filch_worker {
    filch_pool *pool;
    unsigned index;
    pthread_t thread; /* when has_thread; written by whoever took the seat off the stack */
    bool has_thread;

    /* Sleep and wake: src/sleep/README.md. */
    filch_seat seat __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Where thieves look. Written by whoever sits here. */
    FILCH_ATOMIC(filch_strand *) strand __attribute__((aligned(FILCH_CACHE_LINE)));
    FILCH_ATOMIC(filch_strand *)
    shelf; /* whoever needs a strand and gets none elsewhere may take it */
    filch_queue
        ready; /* strands whose wait has ended: made so by a task of this worker; anybody may take them */
    filch_queue spawned;   /* jobs of a task of this worker */
    filch_atomic_u32 turn; /* how often it has looked for something to run */
    filch_parked parked;   /* strands that wait, with tasks to steal */
    FILCH_ATOMIC(filch_source *)
    source; /* of the seat's thread, and not of who sits here: worker/source.h; NULL: it has none */

    /* All that follows belongs to whoever sits here. */
    filch_context native __attribute__((aligned(FILCH_CACHE_LINE))); /* while a strand runs */
    filch_strand *next;  /* resume this one before anything else */
    filch_strand *spare; /* an empty one, for the next task; on the shelf while nobody sits here */
    enum filch_leave leave; /* why the strand left; next, what for */
    void *waits_for;        /* a filch_slot or a filch_job */
    bool
        has_waited; /* a strand has left to wait: a guest leaves, too, since others may have to run for that to end */
    bool
        owes_watch; /* a timer or an operation was started that nobody may watch: filch_worker_pay_watch */
    bool is_visited; /* by a guest: the thread, and what is the thread's, is another */
    filch_glimpse glimpses[FILCH_GLIMPSES];
    filch_magazine free; /* more of them; empty while nobody sits here */
    void *root;          /* a guest helps only this filch_run; NULL: everything */
    filch_victims victims;
    unsigned spin_halvings; /* its spin time is 1 / 2^spin_halvings of the longest: spin.h */
    filch_pace_note paces[FILCH_PACE_NOTES];
    size_t
        declined; /* chunks of loops since somebody was last woken, or could have been, for one */
    bool is_offer_taken; /* whether the last part of a loop that was offered found a thief */

    /* Written by whoever sits here, read by anyone. */
    filch_atomic_u64 counters[FILCH_COUNTER_COUNT];

    uint32_t looked_turn; /* the lookout's: worker/lookout.h */
};

struct filch_pool {
    filch_options options; /* complete: no zero that means a default */
    filch_policy *policy;
    const filch_kind *kind; /* NULL: the split stack */
    filch_topology topology;
    unsigned worker_count;
    uint64_t spin_ns; /* the longest spin time of its workers: spin.h */
    filch_worker **workers;
    filch_strands strands;
    filch_queue inject; /* jobs */
    filch_queue ready;  /* strands whose wait was ended from outside, or by a timer */
    filch_timers timers;
    filch_parts parts;
    filch_sleep sleep;        /* seats of idle workers */
    filch_sleep vacant;       /* seats whose thread could not be started: only for guests */
    filch_atomic_u32 lookout; /* the number of the worker that is it, plus 1; 0: none */
    unsigned
        quiet_looks; /* the lookout's: how often there was nothing to do; next, whether to look again at once */
    bool is_look_near;
    filch_atomic_u32 thread_count; /* started, or about to be */
    filch_atomic_u32 has_threads;  /* one was started */
    filch_atomic_u32 vacant_count; /* seats whose thread could not be started */
    filch_atomic_u32 stopping;
    filch_atomic_u32 pending; /* jobs submitted and callers of filch_run, plus FILCH_POOL_AWAITED */
    filch_atomic_u32 scopes;  /* that are open: the pool is not destroyed over them */
    filch_atomic_u32
        *alive;          /* a page of its own, which the kernel wipes in the child of a fork() */
    pid_t process;       /* or, where it does not, the process that created the pool */
    unsigned generation; /* how often it was made anew, in children of a fork() */
};

/* A caller whose struct has a larger `size` has not set it. */
#define FILCH_LARGEST_STRUCT_BYTES 4096

/* In `pending`: somebody sleeps until it is zero. */
#define FILCH_POOL_AWAITED ((uint32_t)1 << 31)

static inline void filch_count(filch_worker *worker, enum filch_counter counter)
{
    filch_atomic_u64 *value = &worker->counters[counter];
    /* relaxed: own variable; others only read it. */
    filch_store_relaxed(value, filch_load_relaxed(value) + 1);
}

/* A seat that a thread holds, in a list on its stack: a task of one pool may run one in another pool, and so on. */
typedef struct filch_visit {
    filch_worker *worker;
    const struct filch_visit *outer;
} filch_visit;

/* The innermost, or NULL. */
const filch_visit *filch_visit_self(void);

/* The seat that the calling thread holds in this pool, or NULL. */
filch_worker *filch_worker_self_in(const filch_pool *pool);

/* The main function of a pool's thread. */
void *filch_worker_main(void *worker);

/*
 * Act as `worker`: run `job` and help with what it forks until it is complete, or there is nothing to help with. With job
 * NULL: run what is in the inject queue. Returns false when there was no memory for a strand to run it on.
 */
bool filch_worker_visit(filch_worker *worker, filch_job *job);

/* Wait until `job` is done: on a strand by leaving it, elsewhere by blocking the thread. */
void filch_worker_wait(filch_job *job);

/* Count a job or a filch_run in and out; filch_pool_wait waits for none. */
void filch_pool_begin(filch_pool *pool);
void filch_pool_end(filch_pool *pool);

/* There is more to do: wake a worker if one sleeps and nobody searches. `worker`, who counts it, may be NULL. */
void filch_pool_notify(filch_pool *pool, filch_worker *worker);

/* The same for one strand, which a sleeper goes on with as soon as it is awake: it need not search for it, and is no searcher on whom others might count. False: nobody sleeps, or somebody searches; the
 * strand is still the caller's. */
bool filch_pool_hand_over(filch_pool *pool, filch_strand *strand);

/* Put a job into the inject queue, and see to it that somebody takes it. */
void filch_pool_inject(filch_pool *pool, filch_job *job);

/* Work may have been left behind by who gives up a seat: wake somebody for it. */
void filch_pool_notify_if_work(filch_pool *pool);

/* Strands of this pool, linked by link.next, may go on. From any thread; the caller keeps the pool alive, and holds no lock. */
void filch_pool_resume(filch_pool *pool, filch_link *strands);

/* A strand may go on, whose wait the caller has ended. From any thread, which holds no lock. */
void filch_strand_resume(filch_strand *strand);

/* Let a worker run the job, of a task of this pool or from outside. The one who waits for its end keeps the pool alive. */
void filch_pool_spawn(filch_pool *pool, filch_job *job);

/* A timer or an operation was started here, and we neither go to sleep nor come to the loop soon: let somebody else watch it. */
void filch_worker_pay_watch(filch_worker *worker);

/* Leave the stack of the strand, which the caller is on; returns when it is resumed. */
void filch_worker_leave(filch_strand *strand, enum filch_leave why, void *what);

/* By a join whose child was stolen, on the forker's strand: returns when the child is complete, or
 * was given back (only with a shared deque). Spins for a short while, then leaves the strand. */
void filch_stolen_wait(filch_strand *strand, filch_slot *child);

/* Is this strand one that can be left, or is the thread to be blocked? */
bool filch_strand_can_leave(const filch_strand *strand);

/* Does FILCH_VERBOSE ask to be told how things were chosen? */
bool filch_is_verbose(void);

/* False: no thread could be started, and those from outside do all the work. */
bool filch_pool_may_have_threads(filch_pool *pool);

/* Strands that may go on, jobs, or tasks of strands that wait: which nobody runs. */
bool filch_pool_has_queued(filch_pool *pool);

/* End what is due. */
void filch_pool_fire_timers(filch_pool *pool);

/* By a thread from outside that will wait for something in the pool: where no threads can be started, it has to do the work, and to watch the timers. Returns after how
 * many nanoseconds to come again; FILCH_NEVER_NS: there are threads. Others from outside may start timers, too, or find out that there are no threads, and cannot tell who waits already: hence the polling. */
uint64_t filch_pool_help(filch_pool *pool);

/* After a seat was pushed: if the pool is being destroyed, that waits for it. */
void filch_pool_gave_seat(filch_pool *pool);

/* In the child of a fork(): make the pool anew. 0, or -EOWNERDEAD: the caller is a task of it that called fork(). */
int filch_pool_check(filch_pool *pool);

/* Whether this process is the one the pool was created in, or rebuilt in. */
bool filch_pool_is_alive(const filch_pool *pool);

#endif
