/* SPDX-License-Identifier: MIT */
/*
 * From submit to destroy: src/worker/outside.c, pool.c and the loop in worker.c. Names are those
 * of the code, without filch_worker_ and filch_pool_.
 *
 * The main thread submits SUBMITS tasks, which submit NESTED more between them. SUBMITTERS other
 * threads submit one each. GUESTS call filch_run and take a seat if there is one. WAITERS call
 * filch_pool_wait. The main thread destroys the pool when the submitters and waiters have returned
 * and the guests are in filch_run or have been.
 *
 * The task of a guest may fork one child, which a worker may steal. Then the guest leaves, and the
 * thief resumes its strand. With -DTHREADS_FAIL each thread but the first may fail to start. Then
 * the keeper tries again later. The model checks:
 *
 *   destroy returns, and so do all      there is no other end; and `ltl ends`, under weak fairness
 *   no use, no task after the pool      POOL_IS_THERE, at every access; is_freed is set last
 *   each thread ends once               is_ended; pthread_join waits for it
 *   wait returns when nothing is left   queued_or_running
 *   a job is there until it is done     job_is_there: its memory is the stack of filch_run
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef GUESTS
#define GUESTS 1
#endif
#ifndef SUBMITS
#define SUBMITS 1
#endif
#ifndef NESTED
#define NESTED 0
#endif
#ifndef SUBMITTERS
#define SUBMITTERS 0
#endif
#ifndef WAITERS
#define WAITERS 0
#endif
#define POOL_IS_THERE assert(!is_freed)

bool is_created, is_freed;

#include "sleep.pml"

mtype = { FREE, PENDING, TAKEN, AWAITED, DONE }; /* a child's slot, and, without TAKEN, a job */

/* What a worker has found: g is the job of guest g, CHILD + g its child, STRAND + g its resumed
 * strand. */
#define SUBMITTED 10
#define CHILD 20
#define STRAND 30

/* pool->inject; its lock is never held between steps */
chan inject = [SUBMITS + NESTED + GUESTS + SUBMITTERS] of { byte };
byte shown[WORKERS];                                /* filch_worker.strand: whose job it runs */
mtype child[GUESTS + 1] = FREE;
mtype job[GUESTS + 1] = PENDING;
bool job_futex[GUESTS + 1];

byte pending;                                       /* pool->pending, and its mark: */
bool is_awaited;                                    /* FILCH_POOL_AWAITED */
byte pending_futex;                                 /* a bit for each process */
byte stopping;                                      /* pool->stopping */
bool stopping_futex;

bool is_visited, is_removed;                        /* the keeper's list of pools */

byte nested_left = NESTED, guests_in, submitters_out, waiters_out;
byte queued_or_running;
bool is_ended[WORKERS];
bool job_is_there[GUESTS + 1];

/* An inline is a function of the same name. For an early return it is a loop, left by break. */

#define LOCALS                                                                                     \
    byte mine, follow, k;                                                                          \
    bool found;                                                                                    \
    SLEEP_LOCALS

/* ---- src/worker/pool.c: a seat was given back ------------------------------------------------ */

inline filch_pool_gave_seat()
{
    if
    :: atomic { stopping != 0 -> POOL_IS_THERE };
       atomic {
           POOL_IS_THERE;
           stopping++
       };
       stopping_futex = false /* filch_futex_wake: needs only the address */
    :: else
    fi
}

/* ---- src/worker/look.c ----------------------------------------------------------------------- */

inline look_everywhere()
{
    found = (len(inject) > 0);
    do
    :: atomic {
           POOL_IS_THERE;
           if
           :: shown[k] != NONE && child[shown[k]] == PENDING -> found = true
           :: else
           fi;
           k++;
           if
           :: k == WORKERS -> k = 0;
              break
           :: else
           fi
       }
    od
}

inline filch_pool_notify_if_work()
{
    look_everywhere();
    if
    :: found -> found = false;
       filch_pool_notify()
    :: else
    fi
}

/* ---- src/worker/outside.c: pending jobs ------------------------------------------------------ */

inline filch_pool_begin()
{
    atomic {
        POOL_IS_THERE;
        pending++
    }
}

inline filch_pool_end()
{
    do
    :: atomic {
           POOL_IS_THERE;
           assert(pending > 0);
           pending--;
           if
           :: !(pending == 0 && is_awaited) -> break
           :: else
           fi
       };
       /* filch_futex_wake of all sleepers; needs only the address */
#ifdef BUG_WAKE_ONE_WAITER
       pending_futex = pending_futex & (pending_futex - 1);
#else
       pending_futex = 0;
#endif
       break
    od
}

/* ---- src/worker/run.c: what runs on a strand ------------------------------------------------- */

/* The last touch of the job of filch_run. */
inline finish_job(g)
{
    do
    :: atomic {
           assert(job_is_there[g]);
           assert(job[g] == PENDING || job[g] == AWAITED);
           queued_or_running--;
           was_last = (job[g] == AWAITED);
           job[g] = DONE;
           if
           :: !was_last -> break
           :: else -> was_last = false
           fi
       };
       job_futex[g] = false; /* filch_futex_wake: needs only the address */
       break
    od
}

/* run_job for a job of filch_submit. */
inline run_submitted()
{
#ifdef BUG_END_BEFORE_TASK
    filch_pool_end();
#endif
    if
    :: atomic { nested_left > 0 -> nested_left-- };
       filch_pool_begin();
       atomic {
           POOL_IS_THERE;
           inject!SUBMITTED;
           queued_or_running++
       };
       filch_pool_notify()
    :: skip
    fi;
    atomic {
        POOL_IS_THERE;
        queued_or_running--
    };
#ifndef BUG_END_BEFORE_TASK
    filch_pool_end()
#endif
}

/* run_job for the job of guest g, on the seat s: from its beginning, or after its wait for its
 * child. */
inline run_guests_job(g, s)
{
    atomic {
        POOL_IS_THERE;
        assert(job_is_there[g]);
        shown[s] = g
    };
    do
    :: mine < SUBMITTED -> /* fork and join, once */
       atomic {
           POOL_IS_THERE;
           child[g] = PENDING;
           mine = STRAND + g
       };
       filch_pool_notify();
       if
       :: atomic { child[g] == PENDING -> child[g] = FREE } /* taken back, and run here */
       :: child[g] == DONE
       :: child[g] != PENDING -> /* wait_for_child: leave the strand */
          atomic {
              POOL_IS_THERE;
              shown[s] = NONE
          };
          atomic { /* await_child */
              if
              :: child[g] == DONE -> shown[s] = g
              :: else -> child[g] = AWAITED;
                 break
              fi
          }
       fi
    :: atomic {
           mine > STRAND || mine < SUBMITTED -> assert(child[g] == FREE || child[g] == DONE);
           child[g] = FREE;
           POOL_IS_THERE
       };
       finish_job(g);
       atomic {
           POOL_IS_THERE;
           shown[s] = NONE
       };
       break
    od
}

/* run_stolen */
inline run_child(g)
{
    atomic {
        POOL_IS_THERE;
        assert(job_is_there[g]);
        assert(child[g] == TAKEN || child[g] == AWAITED);
        if
        :: child[g] == AWAITED -> follow = STRAND + g
        :: else
        fi;
        child[g] = DONE
    }
}

/* ---- src/worker/worker.c: the loop ----------------------------------------------------------- */

inline find()
{
    atomic {
        POOL_IS_THERE;
        if
        :: follow != NONE -> mine = follow;
           follow = NONE
        :: follow == NONE && len(inject) > 0 -> inject?mine
        :: else -> /* steal */
           do
           :: k < WORKERS ->
              if
              :: mine == NONE && shown[k] != NONE && child[shown[k]] == PENDING ->
                  child[shown[k]] = TAKEN;
                 mine = CHILD + shown[k]
              :: else
              fi;
              k++
           :: else -> break
           od;
           k = 0
        fi
    }
}

/* run: the job or strand of find, on the seat s */
inline run_found(s)
{
    if
    :: mine == SUBMITTED -> run_submitted()
    :: mine > CHILD && mine < STRAND -> run_child(mine - CHILD)
    :: mine > STRAND || mine < SUBMITTED -> run_guests_job(mine % 10, s)
    fi;
    mine = NONE
}

inline stop_searching()
{
    filch_sleep_found(sleep, was_last);
    if
    :: was_last && filch_pool_sleeper_count > 0 -> was_last = false;
       filch_pool_notify_if_work()
    :: else -> was_last = false
    fi
}

/* ---- src/worker/outside.c -------------------------------------------------------------------- */

/* The first half of visit. A guest takes a vacant seat, if there is one. */
inline take_seat()
{
    filch_sleep_pop(vacant, RUNNING, false);
    is_vacant = (seat != NONE);
    if
    :: seat == NONE -> filch_sleep_pop(sleep, RUNNING, false)
    :: else
    fi;
    own = seat;
    seat = NONE
}

inline give_seat_back()
{
#ifndef BUG_SEAT_IS_KEPT
    if
#ifndef BUG_GUEST_MIXES_STACKS
    :: is_vacant -> filch_sleep_push(vacant, own - 1, RUNNING)
#endif
    :: else -> filch_sleep_push(sleep, own - 1, RUNNING)
    fi;
#endif
    own = NONE;
    is_vacant = false;
#ifndef BUG_GUEST_LEAVES_QUIETLY
    filch_pool_notify_if_work()
#endif
}

/* Put a job into the inject queue, and make sure that a thread takes it. */
inline filch_pool_inject(id)
{
    atomic {
        POOL_IS_THERE;
        inject!id;
        queued_or_running++
    };
    filch_pool_notify()
}

inline filch_submit()
{
#ifdef BUG_BEGIN_AFTER_INJECT
    filch_pool_inject(SUBMITTED);
    filch_pool_begin()
#else
    filch_pool_begin();
    filch_pool_inject(SUBMITTED)
#endif
}

inline filch_job_wait(g)
{
    atomic {
        if
#ifdef BUG_NO_JOB_MARK
        :: true
#endif
        :: job[g] == PENDING -> job[g] = AWAITED
        :: else
        fi
    };
    do
    :: atomic { !job_futex[g] && job[g] != DONE -> job_futex[g] = true }
    :: !job_futex[g] && job[g] == DONE -> break
    od
}

#ifdef BUG_NO_AWAITED_MARK
#define mark true
#else
#define mark is_awaited
#endif

inline filch_pool_wait()
{
    do
    :: atomic {
           POOL_IS_THERE;
           seen_pending = pending;
           seen_awaited = is_awaited;
           if
           :: seen_pending == 0 -> assert(queued_or_running == 0);
              break
           :: else
           fi
       };
       atomic { /* the mark, by compare and swap */
           POOL_IS_THERE;
           if
           :: !seen_awaited && pending == seen_pending && !is_awaited -> seen_awaited = true;
#ifndef BUG_NO_AWAITED_MARK
              is_awaited = true
#endif
           :: else
           fi
       };
       atomic { /* filch_futex_wait */
           POOL_IS_THERE;
           if
           :: seen_awaited && pending == seen_pending && mark ->
               pending_futex = pending_futex | (1 << _pid)
           :: else
           fi
       };
       !((pending_futex >> _pid) & 1)
    od;
    atomic { /* remove the mark, unless a job has come meanwhile */
        if
        :: pending == 0 && is_awaited == seen_awaited -> is_awaited = false
        :: else
        fi;
        POOL_IS_THERE;
        seen_awaited = false
    }
}

/* ---- src/worker/pool.c: the end -------------------------------------------------------------- */

inline stop_threads()
{
    atomic {
        POOL_IS_THERE;
        stopping = 1
    };
    do
    :: seen_stopping = stopping;
       do
       :: filch_sleep_pop(sleep, RUNNING, false);
#ifndef BUG_VACANT_NOT_TAKEN
          if
          :: seat == NONE -> filch_sleep_pop(vacant, RUNNING, false)
          :: else
          fi;
#endif
          if
          :: seat == NONE -> break
          :: else -> seat_count++;
             if
             :: has_thread[seat - 1] -> filch_seat_call(ENDED)
             :: else -> seat = NONE
             fi
          fi
       od;
#ifdef BUG_SEATS_NOT_COUNTED
       break;
#endif
       if
       :: seat_count == WORKERS -> break
       :: else
       fi;
       if
       :: atomic { stopping == seen_stopping -> stopping_futex = true }; /* filch_futex_wait */
          !stopping_futex
       :: stopping != seen_stopping
       fi
    od;
#ifndef BUG_NOT_JOINED
    do /* pthread_join */
    :: k < WORKERS ->
       !has_thread[k] || is_ended[k];
       k++
    :: else -> break
    od
#endif
}

/* ---- the threads ----------------------------------------------------------------------------- */

active [WORKERS] proctype filch_worker_main()
{
    bool searching, ends;
    LOCALS;

end_not_started:
    is_started[_pid];
    if
    :: _pid == 0 -> goto asleep /* starts_in_bed */
    :: else
    fi;
called:
    searching = true;
look:
    atomic {
        find();
        if
        :: mine == NONE && searching -> goto sleeps
        :: mine == NONE && !searching -> goto rest
        :: mine != NONE && !searching -> goto work
        :: mine != NONE && searching -> searching = false
        fi
    };
    stop_searching();
work:
    run_found(_pid);
    goto look;
rest:
    atomic {
        filch_sleep_search(sleep, 1, searching);
        if
        :: searching -> goto look
        :: else
        fi
    };
sleeps:
#ifdef BUG_NO_SLEEP_WHILE_STOPPING
    if
    :: stopping != 0 && searching -> goto look
    :: else
    fi;
#endif
#ifdef BUG_STOPPING_READ_EARLY
    ends = (stopping != 0);
#endif
    filch_sleep_push(sleep, _pid, searching);
    searching = false;
    filch_pool_notify_if_work();
#if defined(BUG_STOPPING_READ_EARLY)
    if
    :: ends -> ends = false;
       filch_pool_gave_seat()
    :: else
    fi;
#elif defined(BUG_ENDS_OUT_OF_BED)
    if
    :: atomic { stopping != 0 -> POOL_IS_THERE };
       goto end
    :: else
    fi;
#elif !defined(BUG_DESTROYER_NOT_TOLD)
    filch_pool_gave_seat();
#endif
asleep:
    filch_seat_sleep(ends);
    if
    :: !ends -> goto called
    :: else
    fi;
end:
    atomic { /* filch_thread_stop, and the end of the thread */
        POOL_IS_THERE;
        assert(!is_ended[_pid]);
        is_ended[_pid] = true
    }
}

/* A guest. Its job lies on its stack. */
active [GUESTS] proctype filch_run()
{
    byte own;
    bool is_vacant;
    LOCALS;

#define me (_pid - WORKERS + 1)
    is_created;
    filch_pool_begin();
    atomic {
        job_is_there[me] = true;
        guests_in++
    };
    /* visit */
    take_seat();
    if
    :: own != NONE ->
       atomic {
           queued_or_running++;
           mine = me
       };
       run_guests_job(me, own - 1);
       mine = NONE;
#ifdef BUG_GUEST_ENDS_ON_SEAT
       filch_job_wait(me);
       job_is_there[me] = false;
       filch_pool_end();
       give_seat_back();
       goto end;
#endif
       give_seat_back()
    :: else -> filch_pool_inject(me)
    fi;
    filch_job_wait(me);
    job_is_there[me] = false;
    filch_pool_end();
end:
    skip
}

#if SUBMITTERS > 0
active [SUBMITTERS] proctype submits()
{
    LOCALS;

    is_created;
    filch_submit();
    submitters_out++
}
#endif

#if WAITERS > 0
active [WAITERS] proctype waits()
{
    byte seen_pending;
    bool seen_awaited;

    is_created;
    filch_pool_wait();
    waiters_out++
}
#endif

active proctype main()
{
    byte seen_pending, seen_stopping, seat_count, submits_left = SUBMITS;
    bool seen_awaited;
    LOCALS;

    atomic {
        reset_seats();
        filch_pool_start_first();
        is_created = true
    };
    do
    :: submits_left > 0 -> filch_submit();
       submits_left--
    :: else -> break
    od;
    guests_in == GUESTS && submitters_out == SUBMITTERS && waiters_out == WAITERS;
    /* filch_pool_destroy */
#ifndef BUG_DESTROY_DOES_NOT_WAIT
    filch_pool_wait();
#endif
    stop_threads();
    /* filch_listed_remove */
#ifdef BUG_VISIT_NOT_AWAITED
    is_removed = true;
#else
    atomic { !is_visited -> is_removed = true };
#endif
    assert(queued_or_running == 0 && pending == 0 && len(inject) == 0);
    is_freed = true
}

#ifdef THREADS_FAIL
/* src/worker/keeper.c, and filch_pool_retry in wake.c. The time may come at once. */
active proctype keeper()
{
    LOCALS;

end_no_start_is_put_off:
    do
    :: atomic { is_put_off && !is_removed -> is_visited = true };
       atomic {
           POOL_IS_THERE;
           is_put_off = false
       };
       filch_pool_notify_if_work();
       is_visited = false
    od
}
#endif

ltl ends { <> is_freed }
