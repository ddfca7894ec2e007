/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake: src/sleep/README.md, with the loop of src/worker/steps.h, the slow halves of fork
 * and join (src/fork/fork.c) and the questions of the split stack (src/deque/split.h). Names are
 * those of the code, without filch_worker_ and filch_pool_.
 *
 * A thread from outside submits JOBS tasks. A task forks and joins as it likes, until FORKS tasks
 * were forked in all. The model checks:
 *
 *   no task is lost or run twice    assertions on slots and counts
 *   no wake-up is lost              the only end is the one where all sleep and all tasks were run:
 *                                   the thread from outside waits for it, and no other thread helps
 *   no task waits for a sleeper     any task may run while there is work in a queue and an idle
 *                                   worker to take it; if that worker sleeps on, or its thread is
 *                                   not started, all ends there
 *   a private task is asked for     the same with -DASKED, for tasks that are private to a strand
 *                                   that no worker has asked
 *   every task is run, all sleep    `ltl quiet`, under weak fairness
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef JOBS
#define JOBS 1
#endif
#ifndef FORKS
#define FORKS 2
#endif
#define STRANDS (JOBS + FORKS) /* at most one for each task */
#define POOL_IS_THERE skip
#ifdef BUG_LEAVES_WITHOUT_ASKING
#define ASKS_WHEN_LEAVING false
#else
#define ASKS_WHEN_LEAVING true
#endif

#include "sleep.pml"

mtype = { FREE, PENDING, TAKEN, AWAITED, DONE }; /* filch_slot.state; TAKEN: stolen */

#define JOB 255 /* the task of a strand, if it came from outside; else the stolen slot, plus 1 */

typedef Strand {
    byte task;   /* NONE: the strand is free */
    byte forked; /* slots in use: the handle f */
    byte split;  /* split.word: public are [tail, split) */
    byte tail;
    bool asked;  /* split.asked */
    bool armed   /* split.limits: the next fork or join is slow */
}

Strand strand[STRANDS + 1]; /* from 1 on */
mtype slot[STRANDS * FORKS] = FREE;
byte shown[WORKERS]; /* filch_worker.strand */
byte inject;         /* filch_queue: its lock is never held between steps */

byte submitted, forks_left = FORKS, done_count;

#define my strand[mine]
#define newest (my.forked - 1)
#define slot_id(s, i) ((s - 1) * FORKS + i)
#define my_newest slot[slot_id(mine, newest)]
#define public_count(s) (strand[s].split - strand[s].tail)
#define idle_count (sleep.searchers + sleep.sleepers + vacant.sleepers)

/* An inline is a function of the same name. For an early return it is a loop, left by break. */

/* ---- src/fork/fork.c ------------------------------------------------------------------------- */

/* Publish the slots below `count`. */
inline serve(count)
{
    do
    :: coarse {
           d_step { /* filch_split_publish */
               if
               :: count > my.split -> my.split = count;
                  is_published = true
               :: else
               fi
           };
           if
           :: filch_pool_idle_count > public_count(mine) -> my.armed = true;
              break
           :: else -> my.armed = false /* filch_split_answer: the limits, then the exchange */
           fi
       };
       atomic {
           was_asked = my.asked;
           my.asked = false;
           if
#ifdef BUG_QUESTION_FORGOTTEN
           :: true -> was_asked = false;
              break
#else
           :: was_asked -> was_asked = false
           :: else -> break
#endif
           fi
       }
    od;
    if
    :: is_published -> is_published = false;
#ifndef BUG_NOTIFY_BEFORE_PUBLISH
       filch_pool_notify()
#endif
    :: else
    fi
}

/* FILCH_FORK: filch_fork_is_slow, filch_fork_slow */
inline fork()
{
    do
    :: atomic {
           forks_left > 0 -> forks_left--;
           assert(slot[slot_id(mine, my.forked)] == FREE);
           slot[slot_id(mine, my.forked)] = PENDING;
           my.forked++;
           if
           :: !my.armed -> break
           :: else
           fi
       };
#ifdef BUG_NOTIFY_BEFORE_PUBLISH
       filch_pool_notify();
#endif
       serve(my.forked);
       break
    od
}

/* The forker runs its newest task: it was private, or is again. A fork of that task is the strand's
 * next fork. */
inline run_here()
{
    assert(my_newest == PENDING);
    my_newest = FREE;
    my.forked--;
    done_count++
}

/* The newest task was stolen, and is complete. */
inline filch_split_reset()
{
    assert(my_newest == DONE && public_count(mine) == 0);
    my_newest = FREE;
    my.forked--;
    my.split = my.forked;
    my.tail = my.forked
}

/* The split has moved down: fast limits stay fast, and a question stays pending. */
inline filch_split_set()
{
    d_step {
        if
        :: !my.armed ->
#ifndef BUG_QUESTION_FORGOTTEN
           my.armed = my.asked;
#endif
           my.asked = false
        :: else
        fi
    }
}

/* FILCH_JOIN: filch_join_is_slow, filch_join_slow */
inline join()
{
    do
    :: atomic {
           my.forked > 0 ->
           if
           :: !my.armed && newest >= my.split -> run_here();
              break
           :: else
           fi
       };
       if
       :: my.armed -> serve(newest)
       :: else
       fi;
       if
       :: d_step { newest >= my.split -> run_here() }
       :: d_step { /* filch_split_take_back */
              newest < my.split && newest >= my.tail -> my.split = my.tail + (newest - my.tail) / 2;
              run_here()
          };
          filch_split_set()
       :: d_step { newest < my.tail && my_newest == DONE -> filch_split_reset() };
          filch_split_set()
       :: newest < my.tail -> goto wait_for_child
       fi;
       break
    od
}

/* ---- src/worker/steps.h ---------------------------------------------------------------------- */

/* A strand for the task: have_spare, prepare. There is always memory. */
inline prepare(what)
{
    mine = 1;
    do
    :: strand[mine].task != NONE -> mine++
    :: else -> break
    od;
    my.task = what
}

/* Two steps: the exchange, here, and then the limits, in arm_asked. A strand that does not run has
 * fast limits: run makes them slow, so states that differ only in that are one. */
inline filch_split_ask(victim)
{
    if
    :: !strand[victim].asked -> strand[victim].asked = true;
       asks = asks | (1 << victim)
    :: else
    fi
}

inline arm_asked()
{
    victim = STRANDS;
    do
    :: victim > 0 ->
       strand[victim].armed = strand[victim].armed ||
           ((asks >> victim) & 1 && strand[victim].task != NONE);
       victim--
    :: else -> break
    od;
    asks = 0
}

/* One round over all other workers. */
inline steal(ask)
{
    k = 1;
    do
    :: mine == NONE && k < WORKERS -> victim = shown[(_pid + k) % WORKERS];
       if
       :: victim != NONE && public_count(victim) > 0 -> /* filch_split_steal */
          assert(slot[slot_id(victim, strand[victim].tail)] == PENDING);
          slot[slot_id(victim, strand[victim].tail)] = TAKEN;
          strand[victim].tail++;
          prepare(slot_id(victim, strand[victim].tail))
       :: victim != NONE && public_count(victim) == 0 && ask -> filch_split_ask(victim)
       :: else
       fi;
       k++
    :: else -> break
    od;
    victim = NONE;
    k = 0
}

/* A strand to run, or none: worker->next, a task from outside, one to steal. */
inline find(ask)
{
    d_step {
        if
        :: follow != NONE -> mine = follow;
           follow = NONE
        :: follow == NONE && inject > 0 -> inject--;
           prepare(JOB)
        :: else -> steal(ask)
        fi
    }
}

/* Is there work that no worker has? The answer goes to `found`. */
inline look_everywhere(ask)
{
    found = (inject > 0);
    do
    :: atomic {
           asks == 0 -> k++;
           victim = shown[(_pid + k) % WORKERS];
           if
           :: victim != NONE && public_count(victim) > 0 -> found = true
           :: victim != NONE && public_count(victim) == 0 && ask -> filch_split_ask(victim)
           :: else
           fi;
           victim = NONE;
           if
           :: asks == 0 && k == WORKERS - 1 -> k = 0;
              break
           :: else
           fi
       }
    :: atomic {
           asks != 0 -> arm_asked();
           if
           :: k == WORKERS - 1 -> k = 0;
              break
           :: else
           fi
       }
    od
}

#ifdef BUG_WAKES_ALWAYS
#define wakes_always true
#else
#define wakes_always false
#endif

inline filch_pool_notify_if_work()
{
    look_everywhere(true);
    if
    :: found || wakes_always -> found = false;
       filch_pool_notify()
    :: else
    fi
}

/* A searcher has found something. */
inline stop_searching()
{
#ifdef BUG_LOOK_BEFORE_LEAVING
    look_everywhere(false);
    filch_sleep_found(sleep, was_last);
    if
    :: was_last && found -> filch_pool_notify()
    :: else
    fi;
    was_last = false;
    found = false
#else
    do
    :: atomic {
           filch_sleep_found(sleep, was_last);
           if
#ifdef BUG_LAST_SEARCHER_LEAVES
           :: true -> was_last = false;
              break
#endif
           :: !was_last || filch_pool_sleeper_count == 0 -> was_last = false;
              break
           :: else -> was_last = false
           fi
       };
       look_everywhere(ASKS_WHEN_LEAVING);
       if
       :: found -> found = false;
          filch_pool_notify()
       :: else
       fi;
       break
    od
#endif
}

/* The strand has left its stack: from now on it belongs to the thief, or the child is complete. */
inline await_child()
{
#ifdef BUG_AWAITED_IS_STORED
    if
    :: my_newest == DONE -> follow = mine
    :: else -> my_newest = AWAITED
    fi;
    mine = NONE
#else
    d_step {
        if
        :: my_newest == DONE -> follow = mine
        :: else -> my_newest = AWAITED
        fi;
        mine = NONE
    }
#endif
}

/* A worker is idle, and there is work to take. A long task goes on until that is over. */
#ifdef ASKED
#define waits_for_thief(w)                                                                         \
    (shown[w] != NONE &&                                                                           \
     (public_count(shown[w]) > 0 ||                                                                \
      (strand[shown[w]].forked > strand[shown[w]].tail && !strand[shown[w]].armed)))
#else
#define waits_for_thief(w) (shown[w] != NONE && public_count(shown[w]) > 0)
#endif
#define somebody_should_come                                                                       \
    (idle_count > 0 && (inject > 0 || waits_for_thief(0) || waits_for_thief(WORKERS / 2) ||        \
                        waits_for_thief(WORKERS - 1)))

/* Run the strand until its task ends or waits. A strand with forks comes from wait_for_child. */
inline run_strand()
{
    d_step {
#ifndef BUG_SHOWN_UNARMED
        my.armed = true; /* filch_split_arm */
#endif
        shown[_pid] = mine;
        if
        :: my.forked > 0 -> filch_split_reset()
        :: else
        fi
    };
    do
#ifndef SHORT_TASKS
    :: true -> !somebody_should_come /* a long task */
#endif
    :: fork()
    :: join()
    :: d_step { /* the end of run_job */
           my.forked == 0 && my.task == JOB -> done_count++;
           shown[_pid] = NONE;
           my.task = NONE;
           my.armed = false;
           mine = NONE
       };
       goto look
    :: d_step { /* the end of run_stolen */
           my.forked == 0 && my.task != JOB -> done_count++;
           assert(slot[my.task - 1] == TAKEN || slot[my.task - 1] == AWAITED);
           if
           :: slot[my.task - 1] == AWAITED -> /* filch_strand_of */
               follow = (my.task - 1) / FORKS + 1
           :: else
           fi;
           slot[my.task - 1] = DONE
       };
       d_step {
           shown[_pid] = NONE;
           my.task = NONE;
           my.armed = false;
           mine = NONE
       };
       goto look
    od;
wait_for_child:
    atomic {
        shown[_pid] = NONE;
        my.armed = false
    };
    await_child()
}

/* Push the seat, then look at everything once more. */
inline go_to_bed()
{
#ifdef BUG_LOOK_BEFORE_PUSH
    filch_pool_notify_if_work();
    filch_sleep_push(sleep, _pid, searching);
#else
    filch_sleep_push(sleep, _pid, searching);
#ifndef BUG_NO_RECHECK
    filch_pool_notify_if_work();
#endif
#endif
}

active [WORKERS] proctype filch_worker_main()
{
    byte mine, follow, victim, asks, k;
    bool searching, is_published, was_asked, found, is_ended;
    SLEEP_LOCALS;

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
        find(false);
        if
        :: mine == NONE && searching -> goto search
        :: mine == NONE && !searching -> goto rest
        :: mine != NONE && !searching -> goto work
        :: mine != NONE && searching -> searching = false
        fi
    };
leave:
    stop_searching();
work:
    run_strand();
    goto look;
search: /* another round, which asks, or the time is up */
    if
    :: atomic {
           find(true);
           if
           :: asks == 0 && mine == NONE -> goto sleeps
           :: asks == 0 && mine != NONE -> searching = false;
              goto leave
           :: else
           fi
       };
       atomic {
           arm_asked();
           if
           :: mine == NONE -> goto sleeps
           :: else -> searching = false;
              goto leave
           fi
       }
    :: goto sleeps
    fi;
rest:
    atomic {
        filch_sleep_search(sleep, 1, searching);
        if
        :: searching -> goto look
        :: else
        fi
    };
sleeps:
    go_to_bed();
asleep:
    filch_seat_sleep(is_ended);
    goto called
}

/* Calls filch_submit. */
active proctype outside()
{
    SLEEP_LOCALS;

    d_step {
        reset_seats();
        filch_pool_start_first()
    };
    do
    :: submitted < JOBS ->
#ifdef BUG_NOTIFY_BEFORE_INJECT
       filch_pool_notify();
#endif
       atomic { /* filch_queue_push */
           inject++;
           submitted++
       };
#ifndef BUG_NOTIFY_BEFORE_INJECT
       filch_pool_notify()
#endif
    :: else -> break
    od;
    done_count == JOBS + FORKS - forks_left
}

#define is_in_bed(w) (in_futex[w] || !is_started[w])

ltl quiet {
    <>[] (submitted == JOBS && done_count == JOBS + FORKS - forks_left && is_in_bed(0) &&
          is_in_bed(WORKERS / 2) && is_in_bed(WORKERS - 1))
}
