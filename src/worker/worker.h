/* SPDX-License-Identifier: MIT */
/*
 * A worker: a seat in the pool and, most of the time, a thread that acts as it.
 *
 * The thread's own stack runs the loop. Tasks run on strands. The loop enters a strand, and the
 * strand leaves back to the loop. So the loop never moves to another thread, and a strand is handed
 * over only when no thread uses its stack any more.
 *
 * A thread from outside that calls filch_run is a guest. It takes a free seat and acts as that
 * worker until its job is complete, or no task of the job is left to steal. README.md has the loop.
 */
#ifndef FILCH_WORKER_WORKER_H
#define FILCH_WORKER_WORKER_H

#include "base/thread_clock.h"
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
#include <signal.h>

typedef struct filch_worker filch_worker;
typedef struct filch_source filch_source;
typedef FILCH_ATOMIC(filch_pool *) filch_pool_link;

enum filch_counter {
#define FILCH_COUNTER_INDEX(name) FILCH_COUNT_##name,
    FILCH_COUNTERS(FILCH_COUNTER_INDEX)
#undef FILCH_COUNTER_INDEX
        FILCH_COUNTER_COUNT
};

/* How long a loop's body takes: this many iterations take half a microsecond (src/loop/pace.h). */
typedef struct filch_pace_note {
    uintptr_t body;
    size_t chunk;
} filch_pace_note;

#define FILCH_PACE_NOTES 16

/* A victim's `rounds` when a thief first saw its ready strands: filch_lookout_may_take. */
typedef struct filch_glimpse {
    uint32_t victim, rounds; /* victim is its index plus 1 */
    uint64_t ticks;
} filch_glimpse;

#define FILCH_GLIMPSES 8

/* The keeper's last look at a worker: worker/crowd.h. */
typedef struct filch_crowd_note {
    uint32_t turns;
    filch_thread_clock clock;
    uint64_t cpu_ns;    /* of that thread */
    uint64_t looked_ns; /* when the look was */
    uint64_t since_ns;  /* when it first saw these turns and this thread */
} filch_crowd_note;

/* Why a strand leaves its stack, and so what its worker does next. */
enum filch_leave {
    FILCH_LEAVE_ENDED,     /* its task has ended: the strand is free */
    FILCH_LEAVE_FOR_CHILD, /* waits for a stolen task: src/fork/README.md */
    FILCH_LEAVE_FOR_JOB,   /* waits for the job of a filch_run: worker/job.h */
    FILCH_LEAVE_TO_WAIT,   /* waits for the end of strand->wait: strand/wait_word.h */
    FILCH_LEAVE_TO_YIELD,  /* can go on, after the others */
};

/* The holder of a seat is the thread that acts as the worker: its own thread, or a guest. */
struct filch_worker {
    /* Constant after creation; read by any thread. */
    filch_pool *pool;
    unsigned index;

    /* The worker's own thread. Written by the thread that starts it, which holds the seat. */
    pthread_t thread; /* valid if has_thread */
    bool has_thread;
    bool starts_in_bed; /* the thread sleeps first: it is started before there is work */

    /* Any thread: src/sleep/README.md. */
    filch_seat seat __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Shared with thieves. Only the holder writes `strand` and `rounds`; `source` is written by the
     * worker's own thread. */
    FILCH_ATOMIC(filch_strand *) strand __attribute__((aligned(FILCH_CACHE_LINE))); /* it runs */
    FILCH_ATOMIC(filch_strand *) shelf; /* a free strand, for any worker that gets none elsewhere */
    filch_queue ready;       /* strands that its tasks resumed; any worker may take them */
    filch_queue spawned;     /* jobs that its tasks spawned; any worker may take them */
    filch_atomic_u32 rounds; /* how often it has looked for a strand to run */
    filch_parked parked;     /* strands that left their stack here to wait, with tasks to steal */
    /* Of the worker's own thread, not of a guest; NULL: none yet. source.h */
    FILCH_ATOMIC(filch_source *) source;

    /* Shared with the keeper: worker/crowd.h. */
    filch_atomic_u32 own_clock; /* of the worker's own thread; written by it, once */
    filch_atomic_u32 clock;     /* of the thread that acts as this worker; 0: the seat is free */
    filch_atomic_u32 turns;     /* how often it has come to its loop, or a guest to the seat */
    filch_atomic_u32 absence;   /* not 0: it is awake, but does not count */

    /* The holder only. */
    filch_context native __attribute__((aligned(FILCH_CACHE_LINE))); /* while a strand runs */
    /* Run this strand before all others. A waker may set it while it holds the seat. */
    filch_strand *next;
    filch_strand *spare;    /* a free strand, for the next task; NULL while the seat is free */
    enum filch_leave leave; /* why the strand left, */
    void *waits_for;        /* and what for: a filch_slot or a filch_job */
    /* A strand has left to wait or yield. A guest leaves then, since perhaps only another worker
     * can run the task that this strand waits for. */
    bool has_waited;
    /* It started a timer or an operation, or stopped watching: filch_worker_pay_watch. */
    bool owes_watch;
    bool is_visited; /* the holder is a guest, which has no source */
    filch_glimpse glimpses[FILCH_GLIMPSES];
    filch_magazine free; /* more free strands; empty while the seat is free */
    void *root;          /* a guest helps only this filch_run; NULL: everything */
    filch_victims victims;
    /* The last fair round, and the number of fair rounds: find.c. */
    uint64_t fair_ticks;
    unsigned fair_turns;
    unsigned rounds_to_clock; /* until the worker next reads the clock for a fair round */
    uint64_t clock_ticks;     /* the clock at the last reading */
    unsigned spin_halvings;   /* its spin time is 1 / 2^spin_halvings of the longest: spin.h */
    /* Loops: src/loop. */
    filch_pace_note paces[FILCH_PACE_NOTES];
    size_t declined;     /* chunks of loops since a part was last offered with a wake-up */
    bool is_offer_taken; /* a thief took the part of a loop that was offered last */

    /* Written by the holder, read by any thread. */
    filch_atomic_u64 counters[FILCH_COUNTER_COUNT];

    /* The lookout only: this worker's rounds when it last looked. */
    uint32_t looked_rounds;

    filch_crowd_note crowd; /* the keeper only */
};

/* The thread that created a pool, as far as the pool's threads are like it. */
typedef struct filch_creator {
    sigset_t blocked; /* signals */
    int policy;       /* of the scheduler; negative: unknown, or threads are not to inherit it */
    int priority, nice;
} filch_creator;

struct filch_pool {
    /* Constant after creation. */
    filch_options options; /* complete: no zero that means a default */
    filch_policy *policy;
    const filch_kind *kind; /* NULL: the split stack */
    filch_topology topology;
    unsigned worker_count;
    uint64_t spin_ns; /* the longest spin time of its workers: spin.h */
    filch_creator creator;
    filch_worker **workers;

    /* Any thread. Each has its own lock, or is atomic. */
    filch_strands strands;
    filch_queue inject; /* jobs from outside */
    filch_queue ready;  /* strands resumed from outside, by a timer, or by a sleeping worker */
    filch_timers timers;
    filch_parts parts;
    filch_sleep sleep;        /* free seats whose thread sleeps, and the searchers */
    filch_sleep vacant;       /* free seats that have no thread yet */
    filch_atomic_u32 lookout; /* the lookout's index plus 1; 0: there is none */

    /* Any thread: worker/crowd.h. */
    filch_atomic_u32 surplus;          /* workers beyond those that may be awake */
    filch_atomic_u32 absent_count;     /* workers that are awake, but do not count */
    filch_atomic_u32 guest_count;      /* threads that act as guests, or are about to */
    filch_atomic_u32 is_crowd_watched; /* 1: the keeper looks at the pool now and then */
    filch_atomic_u64 cpus_read_ns;     /* when the number of CPUs was last read */
    bool has_quota;                    /* constant: there is a cgroup quota, which may change */
    filch_atomic_u32 has_rest; /* 1: the keeper is to look for what is left: second_look.h */

    /* The lookout only: worker/lookout.c. */
    unsigned quiet_looks; /* how often in a row it found nothing to do */
    bool is_look_near;    /* a source wants the next look soon */

    /* Any thread. */
    filch_atomic_u32 put_off;       /* 1: a start has failed, so no thread tries another for now */
    filch_atomic_u32 failed_starts; /* how many starts of threads in a row have failed */
    filch_atomic_u32 stopping;      /* 0, or: filch_pool_destroy collects the seats */
    filch_atomic_u32 pending; /* jobs submitted and callers of filch_run, plus FILCH_POOL_AWAITED */
    filch_atomic_u32 scopes;  /* open scopes: the pool is not destroyed before they are closed */

    /* The keeper only. */
    uint64_t retry_ns;                       /* when to try again; 0: no start is put off */
    uint64_t crowd_look_ns, crowd_period_ns; /* the next look, and the time since the last one */
    uint64_t crowd_long_ns;      /* when a worker became absent because it was away for long */
    uint64_t rest_look_ns;       /* when to look for what is left: second_look.h; 0: not */
    filch_pool_link listed_next; /* the list of all pools: worker/listed.h */

    /* fork(): worker/pool.c. */
    filch_atomic_u32 *alive; /* on a page of its own, which the kernel clears in a forked child */
    bool tells_process;      /* the kernel does not clear `alive`: it has the process, too */
    unsigned generation;     /* how often the pool was rebuilt in forked children */
};

/* In `pending`: a thread sleeps until the rest is zero. */
#define FILCH_POOL_AWAITED ((uint32_t)1 << 31)

static inline void filch_count(filch_worker *worker, enum filch_counter counter, uint32_t count)
{
    filch_atomic_u64 *value = &worker->counters[counter];
    /* relaxed: own variable; others only read it. */
    filch_store_relaxed(value, filch_load_relaxed(value) + count);
}

/* ---- worker.c -------------------------------------------------------------------------------- */

/* A seat that a thread holds. The seats of a thread form a list on its stack, since a task of one
 * pool may run a job in another pool. */
typedef struct filch_visit {
    filch_worker *worker;
    const struct filch_visit *outer;
} filch_visit;

/* The calling thread's innermost seat, or NULL. */
const filch_visit *filch_visit_self(void);

/* The seat that the calling thread holds in this pool, or NULL. */
filch_worker *filch_worker_self_in(const filch_pool *pool);

/* The main function of a pool's thread. */
void *filch_worker_main(void *worker);

/*
 * Act as `worker`, whose seat the caller has taken. Run `job` and the tasks that it forks until it
 * is complete, or no such task is left. With job NULL, run queued work until none is found. Returns
 * false if there was no memory for a strand to run the job on.
 */
bool filch_worker_visit(filch_worker *worker, filch_job *job);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* Leave the strand, on whose stack the caller runs. Returns when the strand is resumed. */
void filch_worker_leave(filch_strand *strand, enum filch_leave why, void *what);

/* Can a task on this strand wait by leaving it? False, also for NULL: the task blocks its
 * thread. */
bool filch_strand_can_leave(const filch_strand *strand);

/* Wait until `job` is done: on a strand by leaving it, otherwise by blocking the thread. */
void filch_worker_wait(filch_job *job);

/* The worker may have left a timer or its source unwatched, and will not sleep or poll soon. Let
 * another worker watch: README.md. */
void filch_worker_pay_watch(filch_worker *worker);

/* ---- stolen.c -------------------------------------------------------------------------------- */

/* By a join whose child was stolen, on the forker's strand. Polls for a short while, then leaves
 * the strand. Returns when the child is complete, or was given back (only with a shared deque). */
void filch_stolen_wait(filch_strand *strand, filch_slot *child);

/* ---- find.c ---------------------------------------------------------------------------------- */

/* Fire the timers that are due. */
void filch_pool_fire_timers(filch_pool *pool);

/* ---- wake.c ---------------------------------------------------------------------------------- */

/* There is work: if no worker searches, wake a worker that sleeps, or start a thread for a vacant
 * seat. `worker` counts the wake-up; may be NULL. */
void filch_pool_notify(filch_pool *pool, filch_worker *worker);

/* How many workers could still get work: those that sleep, those that search, and vacant seats. */
unsigned filch_pool_idle_count(filch_pool *pool);

/* The same without the workers that search, as a hint. */
unsigned filch_pool_sleeper_count(filch_pool *pool);

/* By the keeper: if starts are put off, and it is time, allow them again, and wake a worker if
 * there is work. Returns when to call again, or FILCH_NEVER_NS. */
uint64_t filch_pool_retry(filch_pool *pool);

/* Start the thread of the first worker, which sleeps until there is work. No other thread knows the
 * pool yet. Returns 0, or an error of pthread_create like -EAGAIN. */
int filch_pool_start_first(filch_pool *pool);

/* Like filch_pool_notify, but hand one strand to the woken worker. That worker need not look for
 * the strand, and does not count as a searcher. False: no worker sleeps, or one searches; the
 * strand is still the caller's. */
bool filch_pool_hand_over(filch_pool *pool, filch_strand *strand);

/* ---- look.c ---------------------------------------------------------------------------------- */

/* Are strands that can go on, jobs, or tasks of waiting strands queued? */
bool filch_pool_has_queued(filch_pool *pool);

/* By a thread that has given up its seat: wake a worker if there is work. */
void filch_pool_notify_if_work(filch_pool *pool);

/* Is there work that no worker has, or a source that no thread looks after? The caller looks after
 * the source of `self`, if that is not NULL. */
bool filch_pool_needs_worker(filch_pool *pool, const filch_worker *self);

/* ---- outside.c ------------------------------------------------------------------------------- */

/* Count a job or a filch_run in and out. filch_pool_wait returns when the count is zero. */
void filch_pool_begin(filch_pool *pool);
void filch_pool_end(filch_pool *pool);

/* Put a job into the inject queue, and wake a worker for it. */
void filch_pool_inject(filch_pool *pool, filch_job *job);

/* Let a worker run the job. From a task of this pool or from outside. The thread that waits for the
 * job's end keeps the pool alive. */
void filch_pool_spawn(filch_pool *pool, filch_job *job);

/* Resume strands of this pool, linked by link.next. From any thread that keeps the pool alive and
 * holds no lock. */
void filch_pool_resume(filch_pool *pool, filch_link *strands);

/* Resume a strand whose wait the caller has ended. From any thread that holds no lock. */
void filch_strand_resume(filch_strand *strand);

/* ---- pool.c ---------------------------------------------------------------------------------- */

/* In a forked child, rebuild the pool. Returns 0, or
 *   -EOWNERDEAD  the caller is a task of the pool that called fork()
 *   an error of pthread_create, for the pool's first thread or the keeper */
int filch_pool_check(filch_pool *pool);

/* Was the pool created, or rebuilt, in this process? */
bool filch_pool_is_alive(const filch_pool *pool);

/* Is the pool alive, or is a thread rebuilding it? */
bool filch_pool_is_used(const filch_pool *pool);

/* After a push of a seat: tell filch_pool_destroy, if it waits for seats. */
void filch_pool_gave_seat(filch_pool *pool);

/* Is FILCH_VERBOSE set, and not "0"? Then the pool reports its choices on stderr. */
bool filch_is_verbose(void);

#endif
