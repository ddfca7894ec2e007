/* SPDX-License-Identifier: MIT */
/*
 * The sleep word, the seats and their beds, function by function as in src/sleep/sleep.c, and how
 * workers are woken or started, as in src/worker/wake.c.
 *
 * All other models include it. They define WORKERS, and POOL_IS_THERE, which must hold at every
 * access to the pool. Processes 0 .. WORKERS-1 are the threads of the seats; the others come from
 * outside.
 *
 * The first thread is there from the beginning, and begins in its bed. The others begin when they
 * are started. With -DTHREADS_FAIL each of these starts may fail, FAILURES times in all. Then a
 * process of the model ends the time in which starts are put off.
 *
 * A step, d_step or atomic, is one access to memory that other processes may write, with all that
 * its process does alone before the next. A loop that reads one word and swaps it is one step: a
 * swap that fails has changed nothing. filch_sleep_pop also reads the `next` of a seat, and only
 * the epoch makes that equal to one step. -DFINE takes it apart.
 *
 * The epoch is not a number, which would make the states endless. `fresh` has a bit for each
 * process whose view of the word is of the current epoch, and a new epoch clears them all. That is
 * a counter that never wraps.
 */
#define NONE 0 /* where there may be none, seats and strands count from 1, as in the word's top */

mtype = { EMPTY, ASLEEP, CALLED, ENDED }; /* enum filch_bed_state */

typedef Word { /* filch_sleep.word */
    byte fresh; /* epoch */
    byte searchers;
    byte sleepers;
    byte top
}

Word sleep, vacant;         /* pool->sleep, pool->vacant */
byte next[WORKERS];         /* filch_seat.next */
mtype bed[WORKERS] = EMPTY; /* filch_seat.bed */
bool in_futex[WORKERS];     /* the kernel's list of sleepers on the bed */
bool has_thread[WORKERS];   /* filch_worker.has_thread */
bool is_started[WORKERS];   /* pthread_create was called, with success */
bool on_stack[WORKERS];     /* for assertions: on one stack at most, and taken by one process */

#define SEARCHING 1 /* enum filch_sleep_role */
#define RUNNING 0

/* The registers of a process in the functions below. */
#ifdef FINE
#define SLEEP_LOCALS                                                                               \
    byte seat, seen_searchers, seen_sleepers, seen_top, below;                                     \
    bool was_last, was_started
#define coarse /* a step that -DFINE takes apart */
#else
#define SLEEP_LOCALS                                                                               \
    byte seat;                                                                                     \
    bool was_last, was_started
#define coarse atomic
#endif

#ifdef BUG_NO_EPOCH
#define raise_epoch(word)
#else
#define raise_epoch(word) word.fresh = 0
#endif

/* With up to three workers the limit is 1. The answer goes to `is_counted`. */
inline filch_sleep_search(word, limit, is_counted)
{
    d_step {
        POOL_IS_THERE;
        is_counted = (word.searchers < limit);
        word.searchers = word.searchers + is_counted
    }
}

inline filch_sleep_found(word, was_last)
{
    d_step {
        POOL_IS_THERE;
        assert(word.searchers > 0);
        was_last = (word.searchers == 1);
        word.searchers--
    }
}

inline filch_sleep_push(word, index, from)
{
    d_step {
        POOL_IS_THERE;
        assert(!on_stack[index]);
        on_stack[index] = true;
        next[index] = word.top;
        word.top = index + 1;
        word.sleepers++;
#ifndef BUG_SEARCHER_STAYS
        assert(word.searchers >= from);
        word.searchers = word.searchers - from;
#endif
        raise_epoch(word)
    }
}

inline take_top(word, to, top_seen, next_seen)
{
    POOL_IS_THERE;
    seat = top_seen;
    assert(on_stack[seat - 1]);
    on_stack[seat - 1] = false;
    word.top = next_seen;
    word.sleepers--;
#ifndef BUG_WOKEN_NOT_COUNTED
    word.searchers = word.searchers + to;
#endif
    raise_epoch(word)
}

#ifdef FINE

#define view_is_current(word)                                                                      \
    ((word.fresh >> _pid) & 1 && seen_searchers == word.searchers &&                               \
     seen_sleepers == word.sleepers && seen_top == word.top)

inline load_word(word)
{
    POOL_IS_THERE;
    seen_searchers = word.searchers;
    seen_sleepers = word.sleepers;
    seen_top = word.top;
    word.fresh = word.fresh | (1 << _pid)
}

inline forget_word(word)
{
    word.fresh = word.fresh & ~(1 << _pid);
    seen_searchers = 0;
    seen_sleepers = 0;
    seen_top = 0;
    below = 0
}

/* The seat, plus 1, goes to `seat`. */
inline filch_sleep_pop(word, to, only_if_needed)
{
    d_step { load_word(word) };
    do
    :: d_step { /* no thread sleeps, or one searches already */
           seen_top == NONE || (only_if_needed && seen_searchers > 0) -> forget_word(word);
           seat = NONE
       };
       break
    :: d_step {
           seen_top != NONE && !(only_if_needed && seen_searchers > 0) -> below = next[seen_top - 1]
       };
       if
       :: d_step { /* the swap succeeds */
              view_is_current(word) -> take_top(word, to, seen_top, below);
              forget_word(word)
          };
          break
       :: d_step { /* it fails, and has read the word again */
              !view_is_current(word) -> load_word(word)
          }
       fi
    od
}

#else

inline filch_sleep_pop(word, to, only_if_needed)
{
    d_step {
        POOL_IS_THERE;
        if
        :: word.top == NONE || (only_if_needed && word.searchers > 0) -> seat = NONE
        :: else -> take_top(word, to, word.top, next[word.top - 1]);
           next[seat - 1] = NONE /* no process reads it: states that differ only in that are one */
        fi
    }
}

#endif

/* Sleep until called; `is_ended` says whether to end. */
inline filch_seat_sleep(is_ended)
{
    d_step {
        if
#ifdef BUG_BED_IS_STORED
        :: true -> bed[_pid] = ASLEEP
#else
        :: bed[_pid] == EMPTY -> bed[_pid] = ASLEEP
        :: else
#endif
        fi
    };
end_asleep:
    do
    :: d_step { !in_futex[_pid] && bed[_pid] == ASLEEP -> in_futex[_pid] = true } /* compares and
                                                                                   * sleeps in one
                                                                                   * step */
    :: d_step {
           !in_futex[_pid] && bed[_pid] != ASLEEP -> is_ended = (bed[_pid] == ENDED);
           bed[_pid] = EMPTY
       };
       break
    od
}

/* Wake the thread of `seat`, which was taken off the stack. Blocks if there is no such seat. */
inline filch_seat_call(how)
{
    if
    :: d_step {
           seat != NONE && bed[seat - 1] == ASLEEP -> POOL_IS_THERE;
           bed[seat - 1] = how
       };
       d_step { /* filch_futex_wake; it may come late and end the next sleep */
#ifndef BUG_NO_FUTEX_WAKE
           in_futex[seat - 1] = false;
#endif
           seat = NONE
       }
    :: d_step {
           seat != NONE && bed[seat - 1] != ASLEEP -> POOL_IS_THERE;
           assert(bed[seat - 1] == EMPTY); /* a seat is called at most once */
           bed[seat - 1] = how;
           seat = NONE
       }
    fi
}

/* ---- src/worker/wake.c ----------------------------------------------------------------------- */

/* worker->next of `seat`: only waits.pml hands strands over. */
#ifndef set_next
#define set_next(strand) skip
#endif

#ifdef THREADS_FAIL
#ifndef FAILURES
#define FAILURES 2
#endif
byte failures_left = FAILURES;
bool is_put_off; /* pool->put_off */
#define startable_count (is_put_off -> 0 : vacant.sleepers)
#else
#define startable_count vacant.sleepers
#endif

#ifdef BUG_VACANT_NOT_COUNTED
#define filch_pool_sleeper_count sleep.sleepers
#else
#define filch_pool_sleeper_count (sleep.sleepers + startable_count)
#endif
#define filch_pool_idle_count (sleep.searchers + sleep.sleepers + startable_count)

/* The answer goes to `was_started`. */
inline start_vacant(strand)
{
    coarse {
        filch_sleep_pop(vacant, RUNNING, false);
        if
        :: seat != NONE -> set_next(strand)
        :: else
        fi
    };
    if
    :: seat == NONE
#ifdef BUG_THREAD_NOTED_LATE
    :: d_step { seat != NONE -> is_started[seat - 1] = true };
       d_step {
           has_thread[seat - 1] = true;
#else
    :: d_step { /* start; only the holder of the seat reads has_thread */
           seat != NONE -> POOL_IS_THERE;
           has_thread[seat - 1] = true;
           is_started[seat - 1] = true;
#endif
           was_started = true;
           seat = NONE
       }
#ifdef THREADS_FAIL
    :: atomic {
           seat != NONE && failures_left > 0 -> POOL_IS_THERE;
           failures_left--
       };
#ifndef BUG_FAILED_START_KEEPS_SEAT
       filch_sleep_push(vacant, seat - 1, RUNNING);
#endif
       d_step { /* put_off */
           POOL_IS_THERE;
           is_put_off = true
       };
       filch_pool_gave_seat();
       seat = NONE
#endif
    fi
}

inline filch_pool_notify()
{
    do
    :: filch_sleep_pop(sleep, SEARCHING, true);
       if
       :: filch_seat_call(CALLED);
          break
       :: atomic { seat == NONE && startable_count == 0 -> POOL_IS_THERE };
          break
       :: coarse {
              seat == NONE && startable_count > 0;
              filch_sleep_search(sleep, 1, was_started) /* for now: was it counted? */
          };
          if
          :: !was_started -> break
          :: else -> was_started = false
          fi
       fi;
#ifdef BUG_STARTED_NOT_COUNTED
       filch_sleep_found(sleep, was_last);
       was_last = false;
#endif
       start_vacant(NONE);
       if
       :: was_started -> was_started = false;
          break
       :: else -> filch_sleep_found(sleep, was_last);
          was_last = false;
#ifdef BUG_NO_LOOK_AFTER_FAILED_START
          break
#endif
       fi
    od
}

/* The start succeeds: otherwise there is no pool. */
inline filch_pool_start_first()
{
    has_thread[0] = true;
    is_started[0] = true;
    on_stack[0] = true;
    sleep.top = 1;
    sleep.sleepers = 1
}

/* ---- src/worker/pool.c ----------------------------------------------------------------------- */

/* All seats but the first are vacant. */
inline reset_seats()
{
    seat = WORKERS;
    do
    :: seat > 1 -> seat--;
       next[seat] = vacant.top;
       vacant.top = seat + 1;
       on_stack[seat] = true;
       vacant.sleepers++
    :: else -> break
    od;
    seat = NONE
}

/* For models that begin later: all threads were started, and sleep. */
inline start_others()
{
    next[0] = vacant.top;
    sleep.sleepers = WORKERS;
    vacant.top = NONE;
    vacant.sleepers = 0;
    seat = WORKERS;
    do
    :: seat > 0 -> seat--;
       has_thread[seat] = true;
       is_started[seat] = true
    :: else -> break
    od
}
