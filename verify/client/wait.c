/* SPDX-License-Identifier: MIT */
/*
 * The wait word: the first thread to end a wait wins, and all others do nothing, now or when they
 * come late.
 *
 * T1 waits once or twice, each time in memory that it frees as soon as it goes on. T2 ends every
 * wait (e), or claims it, hands something over and finishes it (c). T3 follows a script, with the
 * turn that it read last; that turn may be over by then:
 *
 *     e   ends the wait
 *     c   claims it, hands over, finishes
 *     x   sets the mark and cancels, as src/wait/scope.c does
 *     n   nudges the waiter, which may then end its wait itself
 *
 * The waiter is a strand, or a thread. A thread is not nudged: it acts at once on the result of
 * park.
 *
 * The client generates all scripts up to a length, also without T2 where T3 cancels. The memory
 * that is handed over, and that the waiter leaves when it parks, is plain. If the waiter and the
 * thread that ends its wait disagree about the owner, the checker finds a race.
 */
#include "strand/wait_word.h"

#include "mc/mc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_MAX 2
#define LENGTH_MAX 3

/* The part of the waiter's stack that other threads use. */
typedef struct frame {
    int left;   /* written when the waiter leaves, and by the thread that resumes it */
    int handed; /* written by the thread that has claimed the wait */
} frame;

static filch_wait wait_word;
static filch_atomic_u64 shown; /* the turn of the wait that can be ended */
static filch_atomic_u32 mark, resumed;
static frame *current;
/* Written by T2 and T3 before they end a wait: which wait. */
static uint64_t brought[2][WAITS_MAX + LENGTH_MAX];

static unsigned wait_count;
static bool is_thread;
static char steady; /* the role of T2; 0: there is no T2 */
static const char *script;

/* ---- the waiter ------------------------------------------------------------------------------ */

static void check_outcome(unsigned outcome, uint64_t turn, const frame *own)
{
    if (outcome == FILCH_WAIT_CANCELLED) {
        mc_check(filch_load_relaxed(&mark), "only a wait whose mark is set is cancelled");
        return;
    }
    if (outcome == FILCH_WAIT_TO_TRY) {
        mc_check(own->handed == 0, "who ends its wait itself is handed nothing");
        return;
    }
    unsigned who = outcome / 10, which = outcome % 10;
    mc_check(brought[who][which] == turn,
             "the waiter sees what was there when its wait was ended, and that it was this one");
    mc_check(own->handed == 0 || own->handed == (int)outcome + 1,
             "what is handed over is of who ended the wait");
}

static void wait_often(void)
{
    unsigned parked_count = 0;

    for (unsigned i = 0; i < wait_count; i++) {
        frame *own = current = calloc(1, sizeof *own);
        uint64_t turn = filch_wait_open(&wait_word, true);
        /* This stands for a list under a lock. */
        filch_store_release(&shown, turn);
        if (filch_load_seq_cst(&mark))
            filch_wait_end(&wait_word, turn, FILCH_WAIT_CANCELLED);
        do {
            own->left = 1;
            if (filch_wait_park(&wait_word)) {
                parked_count++;
                while (filch_load_acquire(&resumed) < parked_count)
                    filch_pause();
                mc_check(own->left == 2, "the waiter was resumed by one");
            }
        } while (!is_thread && !filch_wait_try(&wait_word, turn));
        check_outcome(filch_wait_outcome(&wait_word), turn, own);
        free(own);
    }
    mc_check(filch_load_relaxed(&resumed) == parked_count, "as often as it parked, and no more");
}

/* ---- ending the wait ------------------------------------------------------------------------- */

static void resume(filch_wait_result result)
{
    if (result != FILCH_WAIT_RESUME)
        return;
    current->left++;
    filch_fetch_add_acq_rel(&resumed, 1);
}

static void end(char how, uint64_t turn, unsigned who, unsigned which)
{
    const unsigned outcome = who * 10 + which;

    brought[who][which] = turn;
    if (how == 'n') {
        resume(filch_wait_nudge(&wait_word, turn));
    } else if (how == 'e') {
        resume(filch_wait_end(&wait_word, turn, outcome));
    } else if (filch_wait_claim(&wait_word, turn)) {
        current->handed = (int)outcome + 1;
        resume(filch_wait_finish(&wait_word, turn, outcome));
    }
}

/* The turn of the wait after this one. */
static uint64_t next_turn(uint64_t turn)
{
    uint64_t seen;
    while ((seen = filch_load_acquire(&shown)) == turn)
        filch_pause();
    return seen;
}

/* T2 knows the turn of each wait, so it can end it. */
static void end_each(void)
{
    uint64_t turn = 0;

    for (unsigned i = 0; i < wait_count; i++) {
        /* A thread that comes late for a wait that another has ended may find the next wait. That
         * wait is then not shown again. */
        while ((turn & FILCH_WAIT_TURN) >> FILCH_WAIT_TURN_SHIFT < i + 1)
            turn = next_turn(turn);
        if (turn >> FILCH_WAIT_TURN_SHIFT == i + 1)
            end(steady, turn, 0, i);
    }
}

static void follow_script(void)
{
    uint64_t turn = 0;

    for (const char *c = script; *c; c++) {
        if (*c == 'x') {
            filch_store_seq_cst(&mark, 1);
            resume(filch_wait_cancel(&wait_word));
            continue;
        }
        if (turn == 0)
            turn = next_turn(0);
        end(*c, turn, 1, (unsigned)(c - script));
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

static int run_all(const char *name, mc_options options, unsigned waits, const char *steadies,
                   unsigned longest)
{
    mc_result total = {.name = name};
    char text[LENGTH_MAX + 1], program_name[40];
    const unsigned letters = is_thread ? 3 : 4;

    wait_count = waits;
    script = text;
    for (; *steadies; steadies++)
        for (unsigned length = 0, count = 1; length <= longest; length++, count *= letters)
            for (unsigned k = 0; k < count; k++) {
                unsigned rest = k;
                for (unsigned i = 0; i < length; i++, rest /= letters)
                    text[i] = "ecxn"[rest % letters];
                text[length] = '\0';
                steady = *steadies;
                /* A mark is set once. */
                const char *first = strchr(text, 'x');
                if (first ? strchr(first + 1, 'x') != NULL : steady == '-')
                    continue;
                mc_program program = {.name = program_name, .threads = {wait_often, follow_script}};
                if (steady != '-')
                    program.threads[2] = end_each;
                snprintf(program_name, sizeof program_name, "%s %u %c %s",
                         is_thread ? "thread" : "wait", waits, steady, text);
                mc_run_and_add(&total, &program, &options);
            }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    const unsigned more = options.is_long;

    options.check_leaks = true;
    is_thread = true;
    int code = run_all("wait, thread", options, 1, "ec-", 2 + more);
    is_thread = false;
    return code | run_all("wait, once", options, 1, "ec-", 2 + more) |
           run_all("wait, twice", more ? options : mc_bounded(options, 1, 1), 2, "e-", 1 + more) |
           run_all("wait, twice", mc_bounded(options, 1, 1), 2, "c", 1 + more);
}
