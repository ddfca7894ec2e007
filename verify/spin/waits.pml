/* SPDX-License-Identifier: MIT */
/*
 * Going to sleep over strands that wait: src/sleep/README.md 2 and 7, with the loop of
 * src/worker/steps.h, src/worker/timer.c, src/worker/lookout.c and the wait word
 * (src/strand/wait_word.h). Names are those of the code, without filch_worker_ and filch_pool_.
 *
 * A thread from outside submits the tasks, one strand each:
 *
 *   SLEEPERS  wait until the time is up: a timer that is due at 1 or 2
 *   WAITERS   wait for an event, with a timer that is due at 1, or without
 *   SETTERS   set the event, and end after the waiters: another worker must run those
 *   OTHERS    have other work to do, and end after the strands that wait
 *
 * If there is no setter, the thread from outside sets the event. Time passes by itself. With
 * -DBEGUN the first worker has the first strand and, in its queue, the last. With -DMANNED the last
 * worker begins as the lookout. In both cases all threads were started before. The model checks:
 *
 *   no wake-up is lost          the only end is the one where all sleep and all tasks have ended:
 *                               the thread from outside waits for it
 *   no worker sleeps beside a   the same: setters and others keep their workers until the rest is
 *   ready strand or a timer     done
 *   a wait is ended once        assertions
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SLEEPERS
#define SLEEPERS 1
#endif
#ifndef WAITERS
#define WAITERS 0
#endif
#ifndef SETTERS
#define SETTERS 0
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
/* The order of strands: sleepers, waiters, setters, others. */
#define WAITING (SLEEPERS + WAITERS)
#define TASKS (WAITING + SETTERS + OTHERS)
#define POOL_IS_THERE skip
#define set_next(strand) given[seat - 1] = strand /* see below */

#include "sleep.pml"

mtype = { OVER, OPEN, PARKED }; /* filch_wait.word; OVER is ENDED */

#define NEVER 3 /* FILCH_NEVER_NS */

#define set_of(s) (1 << (s))
#define is_sleeper(s) ((s) <= SLEEPERS)
#define is_waiter(s) ((s) > SLEEPERS && (s) <= WAITING)
#define is_setter(s) ((s) > WAITING && (s) <= WAITING + SETTERS)

/* Strands are counted from 1, and sets of them are bits. */
mtype wait_word[TASKS + 1] = OVER;
bool has_begun[TASKS + 1]; /* it has waited once, and now only ends */
byte due[TASKS + 1];       /* its timer; 0: it has none in the wheel */
byte inject;               /* pool->inject, ready: sets; their locks are never held between steps */
byte ready;                /* pool->ready */
byte own_ready[WORKERS];   /* worker->ready */
byte given[WORKERS];       /* worker->next, from the thread that pops its seat */
byte listed;               /* strands that wait for the event */
bool is_set;               /* the event */
byte done;                 /* tasks that have ended */
byte now;                  /* time: 0, 1, 2 */

byte next_ns = NEVER, watched_ns = NEVER, watcher; /* filch_timers; watcher: plus 1 */
byte lookout;                                      /* pool->lookout */
bool came[WORKERS]; /* to its loop since the last look: turn, looked_turn */

byte done_count;

#define is_due (next_ns <= now)
#define is_unwatched (next_ns < watched_ns) /* filch_timers_is_unwatched */
#define is_single(set) ((set) != 0 && ((set) & ((set)-1)) == 0)
#define all_set(count) (((1 << (count)) - 1) << 1) /* of the first strands */
#if defined(BEGUN) || defined(MANNED)
#define starts_in_bed(w) true
#else
#define starts_in_bed(w) ((w) == 0)
#endif
#ifdef BEGUN
#define SUBMITTED_FIRST 2
#define SUBMITTED_LAST (TASKS - 1)
#else
#define SUBMITTED_FIRST 1
#define SUBMITTED_LAST TASKS
#endif
#define waiting_are_done ((done & all_set(WAITING)) == all_set(WAITING))
#define waiters_set (all_set(WAITING) & ~all_set(SLEEPERS))
#define waiters_are_done ((done & waiters_set) == waiters_set)

/* ---- src/worker/wake.c and outside.c --------------------------------------------------------- */

/* The lowest strand of a set. */
inline take_from_into(set, strand)
{
    strand = 1;
    do
    :: !(set & set_of(strand)) -> strand++
    :: else -> break
    od;
    set = set & ~set_of(strand)
}

inline take_from(set)
{
    take_from_into(set, mine)
}

/* Hand the strand over to a sleeper or a new thread, unless a worker searches. Then it is NONE. */
inline filch_pool_hand_over(strand)
{
    coarse {
        filch_sleep_pop(sleep, RUNNING, true);
        if
        :: seat != NONE -> set_next(strand);
           strand = NONE
        :: else
        fi
    };
    if
    :: filch_seat_call(CALLED)
    :: coarse { seat == NONE && (sleep.searchers > 0 || startable_count == 0) -> skip }
    :: coarse { seat == NONE && sleep.searchers == 0 && startable_count > 0 -> skip };
       start_vacant(strand);
       if
       :: was_started -> was_started = false;
          strand = NONE
       :: else
       fi
    fi
}

/* Hand a single strand over, or queue the strands. */
inline filch_pool_resume(strands)
{
    do
    :: strands == 0 -> break
    :: else ->
       if
       :: is_single(strands) -> take_from_into(strands, single);
          filch_pool_hand_over(single);
          if
          :: single == NONE -> break
          :: else -> strands = set_of(single);
             single = NONE
          fi
       :: else
       fi;
       d_step { /* filch_queue_push_list */
           ready = ready | strands;
           strands = 0
       };
       filch_pool_notify();
       break
    od
}

/* ---- src/strand/wait_word.h ------------------------------------------------------------------ */

/* End the wait of strand s. If it was parked, it goes into `to`. */
inline filch_wait_end(s, to)
{
    if
    :: wait_word[s] == PARKED -> to = to | set_of(s)
    :: else
    fi;
    wait_word[s] = OVER
}

/* ---- src/worker/timer.c ---------------------------------------------------------------------- */

inline update_next()
{
    next_ns = NEVER;
    k = 1;
    do
    :: k <= TASKS ->
       if
       :: due[k] != 0 && due[k] < next_ns -> next_ns = due[k]
       :: else
       fi;
       k++
    :: else -> break
    od;
    k = 0
}

inline filch_timer_start(s, deadline)
{
    due[s] = deadline;
    if
    :: due[s] < next_ns -> next_ns = due[s]
    :: else
    fi;
    owes_watch = owes_watch || is_unwatched
}

/* On the way to sleep. */
inline filch_timers_watch()
{
    d_step {
        if
        :: next_ns != NEVER -> update_next();
           if
           :: is_unwatched -> until = next_ns;
              watched_ns = until;
              watcher = _pid + 1
           :: else
           fi
        :: else
        fi
    }
}

/* Awake again. The answer goes to `found`. */
inline filch_timers_unwatch()
{
    d_step {
        if
        :: watcher == _pid + 1 -> watcher = NONE;
           watched_ns = NEVER
        :: else
        fi;
        found = is_unwatched
    }
}

/* Put strands whose time is up into pool->ready. */
inline filch_pool_fire_timers()
{
    do
    :: atomic {
           if
           :: !is_due -> break
           :: else
           fi;
           d_step {
               victim = 1;
               do
               :: victim <= TASKS ->
                  if
                  :: due[victim] != 0 && due[victim] <= now -> due[victim] = 0;
                     filch_wait_end(victim, fired)
                  :: else
                  fi;
                  victim++
               :: else -> break
               od;
               victim = 0;
               update_next()
           };
           if
           :: fired == 0 -> break
           :: else
           fi
       };
#ifdef BUG_NOTIFY_BEFORE_READY
       filch_pool_notify();
#endif
       atomic {
           ready = ready | fired;
           fired = 0
       };
#if !defined(BUG_FIRED_QUIETLY) && !defined(BUG_NOTIFY_BEFORE_READY)
       filch_pool_notify();
#endif
       break
    od
}

/* ---- src/worker/lookout.c -------------------------------------------------------------------- */

/* A strand was put into this worker's queue. */
inline filch_lookout_notify()
{
    if
    :: !is_single(own_ready[_pid]) || lookout == NONE -> filch_pool_notify()
    :: else
    fi
}

inline filch_lookout_begin()
{
    d_step {
        do
        :: k < WORKERS -> found = found || is_single(own_ready[k]);
           k++
        :: else -> break
        od;
        k = 0;
        if
        :: found && lookout == NONE -> lookout = _pid + 1;
           is_lookout = true;
           do
           :: k < WORKERS -> came[k] = true;
              k++
           :: else -> break
           od
        :: else
        fi;
        found = false;
        k = 0
    }
}

/* `found` is is_lying. The model leaves open whether a worker that came to its loop is busy. */
inline filch_lookout_look()
{
    atomic {
        do
        :: k < WORKERS ->
           found = found || (own_ready[k] != 0 && (!is_single(own_ready[k]) || !came[k]));
           if
           :: own_ready[k] != 0 || came[k] -> is_busy = true
           :: own_ready[k] == 0
           fi;
           came[k] = false;
           k++
        :: else -> break
        od;
        k = 0
    };
    if
    :: is_busy && !found -> is_busy = false
    :: else ->
       d_step { /* stop */
           lookout = NONE;
           is_lookout = false;
           is_busy = false
       };
#ifndef BUG_LOOKOUT_STOPS_BLIND
       d_step {
           do
           :: k < WORKERS -> found = found || own_ready[k] != 0;
              k++
           :: else -> break
           od;
           k = 0
       };
#endif
       if
       :: found -> found = false;
          filch_pool_notify()
       :: else
       fi
    fi
}

/* ---- src/worker/steps.h ---------------------------------------------------------------------- */

/* The ready strands of the other workers; a single one only if it has been lying there, which is
 * left open. */
inline steal()
{
    k = 1;
    do
    :: k < WORKERS && mine == NONE -> victim = (_pid + k) % WORKERS;
       if
       :: own_ready[victim] != 0 -> take_from(own_ready[victim])
       :: own_ready[victim] == 0 || is_single(own_ready[victim])
       fi;
       victim = 0;
       k++
    :: else -> break
    od;
    k = 0
}

/* A strand to run, or none. Timers first: the search then finds the strands they end. */
inline find()
{
    filch_pool_fire_timers();
    atomic {
        came[_pid] = true;
        if
        :: follow != NONE -> mine = follow;
           follow = NONE
        :: follow == NONE && own_ready[_pid] != 0 -> take_from(own_ready[_pid])
        :: follow == NONE && own_ready[_pid] == 0 && ready != 0 -> take_from(ready)
        :: follow == NONE && own_ready[_pid] == 0 && ready == 0 && inject != 0 -> take_from(inject)
        :: else -> steal()
        fi
    }
}

/* The answer goes to `found`. A single strand is left to the lookout, if there is one. */
inline look_everywhere()
{
    d_step {
        found = (ready != 0);
        do
        :: k < WORKERS ->
           found = found || (own_ready[k] != 0 && !(lookout != NONE && is_single(own_ready[k])));
           k++
        :: else -> break
        od;
        k = 0
    };
    d_step {
        found = found || inject != 0;
#ifndef BUG_TIMERS_NOT_LOOKED_AT
        found = found || is_unwatched
#endif
    }
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

inline stop_searching()
{
    filch_sleep_found(sleep, was_last);
    if
    :: was_last && filch_pool_sleeper_count > 0 -> filch_pool_notify_if_work()
    :: else
    fi;
    was_last = false
}

/* The strand has left its stack, and from now on belongs to the thread that ends its wait. */
inline await_end()
{
#ifdef BUG_PARKED_IS_STORED
    if
    :: wait_word[mine] == OVER -> follow = mine
    :: else -> wait_word[mine] = PARKED
    fi;
    mine = NONE
#else
    d_step {
        if
        :: wait_word[mine] == OVER -> follow = mine
        :: else -> wait_word[mine] = PARKED
        fi;
        mine = NONE
    }
#endif
}

/* Run the strand until it waits or ends: has_waited says which. */
inline run_strand()
{
    if
    :: is_sleeper(mine) && !has_begun[mine] ->
       atomic {
           has_begun[mine] = true;
           wait_word[mine] = OPEN;
           if
           :: filch_timer_start(mine, 1)
           :: filch_timer_start(mine, 2)
           fi
       };
       await_end()
    :: is_waiter(mine) && !has_begun[mine] ->
       atomic { /* under the lock of the event */
           has_begun[mine] = true;
           if
           :: is_set -> goto ends
           :: else -> wait_word[mine] = OPEN;
              listed = listed | set_of(mine)
           fi
       };
       if
       :: d_step { filch_timer_start(mine, 1) }
       :: true
       fi;
       await_end()
    :: is_setter(mine) ->
       set_event(own_ready[_pid]);
       if
       :: was_listed -> was_listed = false; filch_lookout_notify()
       :: else
       fi;
       waiters_are_done -> goto ends
    :: (is_sleeper(mine) || is_waiter(mine)) && has_begun[mine] ->
       assert(wait_word[mine] == OVER);
       /* filch_timer_stop, off the list */
       d_step { due[mine] = 0; listed = listed & ~set_of(mine) };
       goto ends
    :: !is_sleeper(mine) && !is_waiter(mine) && !is_setter(mine) ->
       waiting_are_done -> goto ends
    fi
}

/* All listed strands; parked ones go into `to`. */
inline set_event(to)
{
    d_step {
        is_set = true;
        victim = 1;
        do
        :: victim <= WAITING ->
           if
           :: listed & set_of(victim) && wait_word[victim] != OVER ->
              was_listed = was_listed || wait_word[victim] == PARKED;
              filch_wait_end(victim, to)
           :: else
           fi;
           victim++
        :: else -> break
        od;
        victim = 0;
        listed = 0
    }
}

/* Until called, or until the time is up. */
inline filch_seat_nap()
{
    atomic {
        if
        :: bed[_pid] == EMPTY -> bed[_pid] = ASLEEP
        :: else
        fi
    };
end_asleep:
    do
    :: d_step { !in_futex[_pid] && bed[_pid] == ASLEEP -> in_futex[_pid] = true }
    :: d_step {
           !in_futex[_pid] && bed[_pid] != ASLEEP -> assert(bed[_pid] == CALLED);
           is_called = true;
           bed[_pid] = EMPTY
       };
       break
    :: d_step { /* the time is up; a call at the last moment counts */
           in_futex[_pid] && ((until != NEVER && until <= now) || is_lookout) ->
               in_futex[_pid] = false;
           if
           :: bed[_pid] == ASLEEP -> bed[_pid] = EMPTY
           :: else -> is_called = true; bed[_pid] = EMPTY
           fi
       };
       break
    od
}

inline sleep_and_watch()
{
    do
    :: filch_seat_nap();
       if
       :: !is_called && until != NEVER && until <= now ->
          filch_timers_unwatch();
          found = false;
          filch_pool_fire_timers();
          until = NEVER;
#ifndef BUG_WATCHES_ONCE
          filch_timers_watch()
#endif
       :: else
       fi;
       if
       :: is_lookout && !is_called -> filch_lookout_look()
       :: is_lookout && is_called ->
          d_step {
              is_lookout = false;
#ifndef BUG_LOOKOUT_STAYS
              lookout = NONE
#endif
          };
          if
          :: given[_pid] != NONE && filch_pool_sleeper_count > 0 -> filch_pool_notify_if_work()
          :: else
          fi
       :: else
       fi;
       if
       :: is_called -> break
       :: else
       fi
    od;
    is_called = false;
    if
    :: until != NEVER ->
       filch_timers_unwatch();
       owes_watch = found;
       found = false;
       until = NEVER
    :: else
    fi
}

inline pay_watch()
{
    owes_watch = false;
#ifndef BUG_STARTER_OWES_NOTHING
    if
    :: is_unwatched -> filch_pool_notify()
    :: else
    fi
#endif
}

active [WORKERS] proctype filch_worker_main()
{
    byte mine, follow, victim, k, fired, until = NEVER;
    bool searching, found, was_listed, owes_watch, is_lookout, is_busy, is_called;
    SLEEP_LOCALS;

end_not_started:
    is_started[_pid];
#ifdef BEGUN
    if
    :: _pid == 0 -> follow = 1;
       goto look
    :: else
    fi;
#endif
#ifdef MANNED
    is_lookout = (_pid == WORKERS - 1);
#endif
    if
    :: starts_in_bed(_pid) -> goto asleep
    :: else -> goto called
    fi;
look:
    find();
    if
    :: mine == NONE && searching -> goto sleeps
    :: mine == NONE && !searching -> goto rest
    :: mine != NONE && !searching -> goto work
    :: mine != NONE && searching -> searching = false
    fi;
    stop_searching();
work:
    if
    :: owes_watch -> pay_watch()
    :: else
    fi;
    run_strand();
    goto look;
ends:
    atomic {
        assert(!(done & set_of(mine)));
        done = done | set_of(mine);
        done_count++;
        mine = NONE
    };
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
    filch_sleep_push(sleep, _pid, searching);
    filch_timers_watch();
    owes_watch = false;
    filch_lookout_begin();
    filch_pool_notify_if_work();
asleep:
    sleep_and_watch();
called:
    atomic {
        follow = given[_pid];
        given[_pid] = NONE;
        searching = (follow == NONE)
    };
    goto look
}

/* Submits the tasks, and ends the waits if no task does. */
active proctype outside()
{
    byte fired, victim, single;
    bool was_listed;
    SLEEP_LOCALS;

    d_step {
        reset_seats();
        filch_pool_start_first();
#if defined(BEGUN) || defined(MANNED)
        start_others();
#endif
#ifdef BEGUN
        sleep.top = next[0];
        sleep.sleepers--;
        on_stack[0] = false;
        own_ready[0] = set_of(TASKS);
#endif
#ifdef MANNED
        lookout = WORKERS;
#endif
        victim = SUBMITTED_FIRST
    };
    do
    :: victim <= SUBMITTED_LAST ->
       d_step {
           inject = inject | set_of(victim);
           victim++
       };
       filch_pool_notify()
    :: else -> break
    od;
    victim = 0;
    if
    :: WAITERS > 0 && SETTERS == 0 ->
       set_event(fired);
       was_listed = false;
       filch_pool_resume(fired)
    :: else
    fi;
    done_count == TASKS
}

active proctype clock()
{
end_of_time:
    do
    :: now < 2 -> now++
    od
}
