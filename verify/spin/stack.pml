/* SPDX-License-Identifier: MIT */
/*
 * The stack of seats alone: filch_sleep_pop and filch_sleep_push of src/sleep/sleep.c, step by
 * step, with the epoch.
 *
 * PROCESSES threads take seats off the stack and push them back, ROUNDS times, and sometimes hold
 * two. The model checks:
 *
 *   one process takes each seat         take_top and filch_sleep_push: only seats on the stack come
 *                                       off, and only others go on
 *   none is lost, the count is right    at the end, all seats are on the stack
 *
 * So filch_sleep_pop is as good as one step, and the other models use it as one.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define FINE
#define POOL_IS_THERE skip

#include "sleep.pml"

byte ready_count;
bool is_created;

active [PROCESSES] proctype thread()
{
    byte first, second, rounds = ROUNDS;
    SLEEP_LOCALS;

    is_created;
    do
    :: rounds > 0 -> rounds--;
       filch_sleep_pop(sleep, RUNNING, false);
       first = seat;
       if
       :: filch_sleep_pop(sleep, RUNNING, false);
          second = seat
       :: skip
       fi;
       seat = NONE;
       if
       :: first != NONE -> filch_sleep_push(sleep, first - 1, RUNNING);
          first = NONE
       :: else
       fi;
       if
       :: second != NONE -> filch_sleep_push(sleep, second - 1, RUNNING);
          second = NONE
       :: else
       fi
    :: else -> break
    od;
    ready_count++
}

active proctype main()
{
    SLEEP_LOCALS;

    d_step {
        reset_seats();
        is_created = true
    };
    ready_count == PROCESSES;
    do
    :: filch_sleep_pop(sleep, RUNNING, false);
       if
       :: seat == NONE -> break
       :: else -> ready_count++
       fi
    od;
    assert(ready_count == PROCESSES + WORKERS && sleep.sleepers == 0)
}
