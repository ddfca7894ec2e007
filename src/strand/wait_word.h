/* SPDX-License-Identifier: MIT */
/*
 * The wait word: one wait of a strand or of a thread, and how it ends.
 *
 *      63                     16 15       4  3      2            1 0
 *     +-------------------------+----------+------+------------+------+
 *     |          turn           | outcome  |parked|cancellable | phase|
 *     +-------------------------+----------+------+------------+------+
 *
 *            park                       end
 *     OPEN ---------> OPEN, parked ---------------> ENDED    the ending thread resumes the waiter
 *      | |                |
 *      | '-- claim --.    '-- claim --.
 *      |             v                v
 *      |          CLAIMED ------> CLAIMED, parked --> ENDED    in two steps, with a hand-over between
 *      |             |      park
 *      '-- end ------'--- end ----> ENDED    the waiter has not left yet, and continues by itself
 *
 *                      nudge            try
 *     OPEN, parked or not ----> NUDGED -----> ENDED, TO_TRY    the waiter retries by itself, unless
 *                                                              the wait is claimed or ended first
 *
 * The first thread that claims or ends a wait owns it. Other threads are late and do nothing. Each
 * wait has its own turn, so a thread that is late for this wait cannot end the next one. The word
 * of a strand is in its header, which stays mapped until the pool is destroyed. So a thread that
 * knows a strand and a turn may try to end that wait at any time.
 *
 * Edges
 *   strand-waits    filch_wait_park -> filch_wait_end, filch_wait_claim, filch_wait_finish,
 *                   filch_wait_nudge
 *                   carries the strand, its stack and its registers, from its worker to the thread
 *                   that resumes it.
 *   wait-ended      filch_wait_end, filch_wait_finish -> filch_wait_park, filch_wait_try
 *                   carries the data that was handed over.
 *   cancel-or-wait  filch_wait_open x filch_wait_cancel
 *                   with the mark of the scope: the canceller finds the wait open, or the waiter
 *                   finds the mark.
 */
#ifndef FILCH_STRAND_WAIT_WORD_H
#define FILCH_STRAND_WAIT_WORD_H

#include <filch/atomic.h>

typedef struct filch_wait {
    filch_atomic_u64 word;
} filch_wait;

enum filch_wait_phase {
    FILCH_WAIT_ENDED, /* zero: there is no wait */
    FILCH_WAIT_OPEN,
    FILCH_WAIT_CLAIMED,
    /* Contains the bit of OPEN. The waiter runs, or will run, and may end the wait itself. */
    FILCH_WAIT_NUDGED,
};

#define FILCH_WAIT_PHASE ((uint64_t)3)
#define FILCH_WAIT_CANCELLABLE ((uint64_t)4)
#define FILCH_WAIT_PARKED ((uint64_t)8)
#define FILCH_WAIT_OUTCOME_SHIFT 4
#define FILCH_WAIT_TURN_SHIFT 16
#define FILCH_WAIT_TURN (~(uint64_t)0 << FILCH_WAIT_TURN_SHIFT)

/* Outcomes: the index of the event that ended the wait, or one of these. */
#define FILCH_WAIT_COUNT_MAX 4000u
#define FILCH_WAIT_NO_MEMORY 4092u
#define FILCH_WAIT_TO_TRY 4093u
#define FILCH_WAIT_TIMED_OUT 4094u
#define FILCH_WAIT_CANCELLED 4095u

/* Instructions for the thread that ends a wait. */
typedef enum filch_wait_result {
    FILCH_WAIT_LATE,   /* do nothing: another thread has ended it */
    FILCH_WAIT_GOES,   /* do nothing: the waiter has not left yet */
    FILCH_WAIT_RESUME, /* resume the waiter, which belongs to the caller now */
} filch_wait_result;

/* Begin a wait. Only the waiter calls it. Returns the turn, which the waiter passes to the threads
 * that may end the wait. */
static inline uint64_t filch_wait_open(filch_wait *wait, bool is_cancellable)
{
    /* relaxed: no other thread changes the word while no wait is open. */
    uint64_t word = filch_load_relaxed(&wait->word);
    uint64_t turn = (word & FILCH_WAIT_TURN) + ((uint64_t)1 << FILCH_WAIT_TURN_SHIFT);

    if (is_cancellable)
        /* seq_cst [cancel-or-wait] */
        filch_store_seq_cst(&wait->word, turn | FILCH_WAIT_CANCELLABLE | FILCH_WAIT_OPEN);
    else
        /* relaxed: the threads that may end the wait learn of it later, from the list that the
         * waiter joins. */
        filch_store_relaxed(&wait->word, turn | FILCH_WAIT_OPEN);
    return turn;
}

/* Called when the waiter has left its stack, or is a thread about to sleep. False: the wait has
 * ended, or was nudged, so continue. True: the waiter now belongs to the thread that ends the
 * wait. */
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

/* Can the wait be ended? */
static inline bool filch_wait_is_open(uint64_t word)
{
    return word & FILCH_WAIT_OPEN; /* NUDGED contains this bit */
}

/* End the wait of this turn, unless another thread has. */
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

/* The first of two steps: after this, no other thread can end the wait. False: another thread
 * has. */
static inline bool filch_wait_claim(filch_wait *wait, uint64_t turn)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&wait->word);
    uint64_t claimed;
    do {
        if ((word & FILCH_WAIT_TURN) != turn || !filch_wait_is_open(word))
            return false;
        claimed = (word & ~FILCH_WAIT_PHASE) | FILCH_WAIT_CLAIMED;
        /* acquire [strand-waits]: if the waiter is parked, the caller may write to its memory. */
    } while (!filch_cas_acq_rel(&wait->word, &word, claimed));
    return true;
}

/* The second step, by the thread that has claimed the wait. */
static inline filch_wait_result filch_wait_finish(filch_wait *wait, uint64_t turn, unsigned outcome)
{
    /* release [wait-ended], acquire [strand-waits] */
    uint64_t word =
        filch_exchange_acq_rel(&wait->word, turn | (uint64_t)outcome << FILCH_WAIT_OUTCOME_SHIFT);
    return word & FILCH_WAIT_PARKED ? FILCH_WAIT_RESUME : FILCH_WAIT_GOES;
}

/*
 * Resume the waiter without handing anything over; it must try again by itself. Until it does, its
 * wait can be claimed and ended like any other. Only for strands: a nudged thread might end its
 * wait by a timeout, and be gone before it is woken.
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

/* Called by a resumed waiter. True: the wait has ended, as filch_wait_outcome says. A nudged wait
 * is ended by this call. False: another thread has claimed the wait and will finish it, so leave
 * again. */
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

/* End the wait of a strand that is being cancelled, if the wait is cancellable. Before this call,
 * the caller has set a mark, seq_cst. The strand checks the mark after it has opened a wait. */
static inline filch_wait_result filch_wait_cancel(filch_wait *wait)
{
    /* seq_cst [cancel-or-wait] */
    uint64_t word = filch_load_seq_cst(&wait->word);
    return word & FILCH_WAIT_CANCELLABLE
               ? filch_wait_end(wait, word & FILCH_WAIT_TURN, FILCH_WAIT_CANCELLED)
               : FILCH_WAIT_LATE;
}

/* End the wait of a strand whose tasks no worker can run, if a wait is open. The caller knows that
 * this is not already the strand's next wait. */
static inline filch_wait_result filch_wait_refuse(filch_wait *wait)
{
    /* relaxed: the cas decides. */
    uint64_t turn = filch_load_relaxed(&wait->word) & FILCH_WAIT_TURN;
    return filch_wait_end(wait, turn, FILCH_WAIT_NO_MEMORY);
}

/* How the wait has ended. Only the waiter calls it, afterwards. */
static inline unsigned filch_wait_outcome(filch_wait *wait)
{
    /* relaxed: filch_wait_park has found the wait ended, or the resuming thread has ordered it
     * before us. */
    return (unsigned)(filch_load_relaxed(&wait->word) >> FILCH_WAIT_OUTCOME_SHIFT) & 0xfff;
}

#endif
