/* SPDX-License-Identifier: MIT */
/*
 * The sleep word, the seats and their beds, function by function as in src/sleep/sleep.c.
 *
 * All other models include it. They define WORKERS, and POOL_IS_THERE, which must hold at every
 * access to the pool. Processes 0 .. WORKERS-1 are the threads of the seats; the others come from
 * outside.
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

Word sleep;                 /* pool->sleep */
byte next[WORKERS];         /* filch_seat.next */
mtype bed[WORKERS] = EMPTY; /* filch_seat.bed */
bool in_futex[WORKERS];     /* the kernel's list of sleepers on the bed */
bool has_thread[WORKERS];   /* filch_worker.has_thread */
bool on_stack[WORKERS];     /* for assertions: on one stack at most, and taken by one process */

#define SEARCHING 1 /* enum filch_sleep_role */
#define RUNNING 0

/* The registers of a process in filch_sleep_pop and its callers. */
#ifdef FINE
#define SLEEP_LOCALS byte seat, seen_searchers, seen_sleepers, seen_top, below
#define coarse /* a step that -DFINE takes apart */
#else
#define SLEEP_LOCALS byte seat
#define coarse atomic
#endif

#ifdef BUG_NO_EPOCH
#define raise_epoch(word)
#else
#define raise_epoch(word) word.fresh = 0
#endif

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

/* Wake the thread of `seat`, which was taken off the stack, if the seat has one. */
inline filch_seat_call(how)
{
    if
    :: d_step {
           has_thread[seat - 1] && bed[seat - 1] == ASLEEP -> POOL_IS_THERE;
           bed[seat - 1] = how
       };
       d_step { /* filch_futex_wake; it may come late and end the next sleep */
#ifndef BUG_NO_FUTEX_WAKE
           in_futex[seat - 1] = false;
#endif
           seat = NONE
       }
    :: d_step {
           has_thread[seat - 1] && bed[seat - 1] != ASLEEP -> POOL_IS_THERE;
           assert(bed[seat - 1] == EMPTY); /* a seat is called at most once */
           bed[seat - 1] = how;
           seat = NONE
       }
    fi
}

/* In pool.c. All workers sleep, and none has a thread. */
inline reset_seats()
{
    seat = WORKERS;
    do
    :: seat > 0 -> seat--;
       next[seat] = sleep.top;
       sleep.top = seat + 1;
       on_stack[seat] = true
    :: else -> break
    od;
    sleep.sleepers = WORKERS
}
