/* SPDX-License-Identifier: MIT */
/*
 * The stacks of seats alone: filch_sleep_pop and filch_sleep_push of src/sleep/sleep.c, step by
 * step, with the epoch.
 *
 * PROCESSES threads take seats off a stack and push them back, ROUNDS times, and sometimes hold
 * two. All seats are on one stack, and stay there. With -DTWO_STACKS all but the first begin on
 * another, and each seat may go from stack to stack: both use the same filch_seat.next. The model
 * checks:
 *
 *   one process takes each seat         take_top and filch_sleep_push: only seats on a stack come
 *                                       off, and only others go on
 *   none is lost, the count is right    at the end, all seats are on the stacks
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

#ifdef TWO_STACKS
#define on_either_stack(on_sleep, on_vacant)                                                       \
    if                                                                                             \
    :: on_sleep                                                                                    \
    :: on_vacant                                                                                   \
    fi
#else
#define on_either_stack(on_sleep, on_vacant) on_sleep
#endif

inline pop()
{
    on_either_stack(filch_sleep_pop(sleep, RUNNING, false), filch_sleep_pop(vacant, RUNNING, false))
}

inline push(index)
{
    on_either_stack(filch_sleep_push(sleep, index, RUNNING),
                    filch_sleep_push(vacant, index, RUNNING))
}

active [PROCESSES] proctype thread()
{
    byte first, second, rounds = ROUNDS;
    SLEEP_LOCALS;

    is_created;
    do
    :: rounds > 0 -> rounds--;
       pop();
       first = seat;
       if
       :: pop();
          second = seat
       :: skip
       fi;
       seat = NONE;
       if
       :: first != NONE -> push(first - 1);
          first = NONE
       :: else
       fi;
       if
       :: second != NONE -> push(second - 1);
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
        filch_pool_start_first();
#ifndef TWO_STACKS
        start_others();
#endif
        is_created = true
    };
    ready_count == PROCESSES;
    do
    :: filch_sleep_pop(sleep, RUNNING, false);
       if
       :: seat == NONE -> filch_sleep_pop(vacant, RUNNING, false)
       :: else
       fi;
       if
       :: seat == NONE -> break
       :: else -> ready_count++
       fi
    od;
    assert(ready_count == PROCESSES + WORKERS && sleep.sleepers + vacant.sleepers == 0)
}
