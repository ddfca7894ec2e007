/* SPDX-License-Identifier: MIT */
/*
 * The wait word: one wait of a strand or of a thread, and who ends it.
 *
 *      63                     16 15       4  3      2            1 0
 *     +-------------------------+----------+------+------------+------+
 *     |          turn           | outcome  |parked|cancellable | phase|
 *     +-------------------------+----------+------+------------+------+
 *
 *            park                       end
 *     OPEN ---------> OPEN, parked ---------------> ENDED    whoever ends it resumes the waiter
 *      | |                |
 *      | '-- claim --.    '-- claim --.
 *      |             v                v
 *      |          CLAIMED ------> CLAIMED, parked --> ENDED    the same in two steps, to hand something over in between
 *      |             |      park
 *      '-- end ------'--- end ----> ENDED    the waiter has not left yet, and goes on by itself
 *
 *                      nudge                    try
 *     OPEN, parked or not ----> NUDGED --------------------> ENDED, TO_TRY    the waiter looks for itself, unless somebody claims or ends the wait first
 *
 * The first to claim or end a wait has it; others are late, and do nothing. Each wait has a turn of its own, so one who is late for this
 * wait cannot end the next. The word of a strand lies in its header, which stays mapped as long as the pool: whoever knows a
 * strand and a turn may try to end that wait at any time.
 *
 * Edges
 *   strand-waits    filch_wait_park -> filch_wait_end, filch_wait_claim, filch_wait_finish, filch_wait_nudge
 *                   carries the strand, its stack and its registers, from its worker to who resumes it.
 *   wait-ended      filch_wait_end, filch_wait_finish -> filch_wait_park, filch_wait_try
 *                   carries what was handed over.
 *   cancel-or-wait  filch_wait_open x filch_wait_cancel
 *                   with the mark of the scope: who cancels finds the wait open, or the waiter finds the mark.
 */
#ifndef FILCH_STRAND_WAIT_WORD_H
#define FILCH_STRAND_WAIT_WORD_H

#include <filch/atomic.h>

typedef struct filch_wait {
    filch_atomic_u64 word;
} filch_wait;

enum filch_wait_phase {
    FILCH_WAIT_ENDED, /* zero: nobody waits */
    FILCH_WAIT_OPEN,
    FILCH_WAIT_CLAIMED,
    FILCH_WAIT_NUDGED, /* open, a bit of it says; but the waiter goes on, or will, and may end it itself */
};

#define FILCH_WAIT_PHASE ((uint64_t)3)
#define FILCH_WAIT_CANCELLABLE ((uint64_t)4)
#define FILCH_WAIT_PARKED ((uint64_t)8)
#define FILCH_WAIT_OUTCOME_SHIFT 4
#define FILCH_WAIT_TURN_SHIFT 16
#define FILCH_WAIT_TURN (~(uint64_t)0 << FILCH_WAIT_TURN_SHIFT)

/* Outcomes: the number of what came, or one of these. */
#define FILCH_WAIT_COUNT_MAX 4000u
#define FILCH_WAIT_NO_MEMORY 4092u
#define FILCH_WAIT_TO_TRY 4093u
#define FILCH_WAIT_TIMED_OUT 4094u
#define FILCH_WAIT_CANCELLED 4095u

/* What one who ends a wait has to do. */
typedef enum filch_wait_result {
    FILCH_WAIT_LATE,   /* nothing: somebody else has ended it */
    FILCH_WAIT_GOES,   /* nothing more: the waiter has not left yet */
    FILCH_WAIT_RESUME, /* resume the waiter: it belongs to the caller now */
} filch_wait_result;

/* Begin a wait. Only the waiter. Returns its turn, to be given to those who may end it. */
static inline uint64_t filch_wait_open(filch_wait *wait, bool is_cancellable)
{
    /* relaxed: nobody changes it while no wait is open. */
    uint64_t word = filch_load_relaxed(&wait->word);
    uint64_t turn = (word & FILCH_WAIT_TURN) + ((uint64_t)1 << FILCH_WAIT_TURN_SHIFT);

    if (is_cancellable)
        /* seq_cst [cancel-or-wait] */
        filch_store_seq_cst(&wait->word, turn | FILCH_WAIT_CANCELLABLE | FILCH_WAIT_OPEN);
    else
        /* relaxed: those who may end it learn of it later, from what the waiter is put into. */
        filch_store_relaxed(&wait->word, turn | FILCH_WAIT_OPEN);
    return turn;
}

/* The waiter has left its stack, or is a thread that will sleep. False: the wait has ended, or was nudged, so go on. After true it belongs to
 * whoever ends the wait. */
static inline bool filch_wait_park(filch_wait *wait)
{
    /* acquire [wait-ended] */
    uint64_t word = filch_load_acquire(&wait->word);
    do {
        if ((word & FILCH_WAIT_PHASE) == FILCH_WAIT_ENDED ||
            (word & FILCH_WAIT_PHASE) == FILCH_WAIT_NUDGED)
            return false;
        /* release [strand-waits], acquire [wait-ended] */
    } while (!filch_cas_acq_rel(&wait->word, &word, word | FILCH_WAIT_PARKED));
    return true;
}

/* Can it be ended? */
static inline bool filch_wait_is_open(uint64_t word)
{
    return word & FILCH_WAIT_OPEN; /* or NUDGED */
}

/* End the wait of this turn, unless somebody else has. */
static inline filch_wait_result filch_wait_end(filch_wait *wait, uint64_t turn, unsigned outcome)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&wait->word);
    do {
        if ((word & FILCH_WAIT_TURN) != turn || !filch_wait_is_open(word))
            return FILCH_WAIT_LATE;
        /* release [wait-ended], acquire [strand-waits] */
    } while (!filch_cas_acq_rel(&wait->word, &word,
                                turn | (uint64_t)outcome << FILCH_WAIT_OUTCOME_SHIFT));
    return word & FILCH_WAIT_PARKED ? FILCH_WAIT_RESUME : FILCH_WAIT_GOES;
}

/* The first of two steps: nobody else ends this wait any more. False: somebody has. */
static inline bool filch_wait_claim(filch_wait *wait, uint64_t turn)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&wait->word);
    uint64_t claimed;
    do {
        if ((word & FILCH_WAIT_TURN) != turn || !filch_wait_is_open(word))
            return false;
        claimed = (word & ~FILCH_WAIT_PHASE) | FILCH_WAIT_CLAIMED;
        /* acquire [strand-waits]: if it is parked, its memory may be written to. */
    } while (!filch_cas_acq_rel(&wait->word, &word, claimed));
    return true;
}

/* The second step, of who has claimed it. */
static inline filch_wait_result filch_wait_finish(filch_wait *wait, uint64_t turn, unsigned outcome)
{
    /* release [wait-ended], acquire [strand-waits] */
    uint64_t word =
        filch_exchange_acq_rel(&wait->word, turn | (uint64_t)outcome << FILCH_WAIT_OUTCOME_SHIFT);
    return word & FILCH_WAIT_PARKED ? FILCH_WAIT_RESUME : FILCH_WAIT_GOES;
}

/*
 * Let the waiter look for itself what it can have, without a promise. Until it does, its wait can be claimed and ended like any other. Only for strands: a thread that is nudged might end its wait
 * by time, and be gone before it is rung for.
 */
static inline filch_wait_result filch_wait_nudge(filch_wait *wait, uint64_t turn)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&wait->word), next;
    do {
        if ((word & FILCH_WAIT_TURN) != turn || !filch_wait_is_open(word))
            return FILCH_WAIT_LATE;
        next = (word & ~(FILCH_WAIT_PHASE | FILCH_WAIT_PARKED)) | FILCH_WAIT_NUDGED;
        /* acquire [strand-waits] */
    } while (!filch_cas_acq_rel(&wait->word, &word, next));
    return word & FILCH_WAIT_PARKED ? FILCH_WAIT_RESUME : FILCH_WAIT_GOES;
}

/* The waiter goes on. True: its wait has ended, as filch_wait_outcome says; if it was nudged, by this call. False: somebody has claimed it and will
 * finish it, so leave again. */
static inline bool filch_wait_try(filch_wait *wait, uint64_t turn)
{
    /* acquire [wait-ended] */
    uint64_t word = filch_load_acquire(&wait->word);
    while ((word & FILCH_WAIT_PHASE) == FILCH_WAIT_NUDGED)
        /* acquire [wait-ended] */
        if (filch_cas_acq_rel(&wait->word, &word,
                              turn | (uint64_t)FILCH_WAIT_TO_TRY << FILCH_WAIT_OUTCOME_SHIFT))
            return true;
    return (word & FILCH_WAIT_PHASE) == FILCH_WAIT_ENDED;
}

/* Of a strand that is being cancelled: end the wait it is in, if it is in one that can be. The caller has set a mark before, seq_cst, at which the
 * strand looks after it has opened a wait. */
static inline filch_wait_result filch_wait_cancel(filch_wait *wait)
{
    /* seq_cst [cancel-or-wait] */
    uint64_t word = filch_load_seq_cst(&wait->word);
    return word & FILCH_WAIT_CANCELLABLE
               ? filch_wait_end(wait, word & FILCH_WAIT_TURN, FILCH_WAIT_CANCELLED)
               : FILCH_WAIT_LATE;
}

/* Of a strand whose tasks nobody can run: end the wait it is in, if it is in one. The caller knows that it is not the next. */
static inline filch_wait_result filch_wait_refuse(filch_wait *wait)
{
    /* relaxed: the cas decides. */
    uint64_t turn = filch_load_relaxed(&wait->word) & FILCH_WAIT_TURN;
    return filch_wait_end(wait, turn, FILCH_WAIT_NO_MEMORY);
}

/* How the wait has ended. Only the waiter, afterwards. */
static inline unsigned filch_wait_outcome(filch_wait *wait)
{
    /* relaxed: filch_wait_park has found it ended, or whoever resumed us has brought it here. */
    return (unsigned)(filch_load_relaxed(&wait->word) >> FILCH_WAIT_OUTCOME_SHIFT) & 0xfff;
}

#endif
