/* SPDX-License-Identifier: MIT */
/*
 * Seats and beds by themselves: each pushed seat is taken once, its taker has the worker alone, and
 * a thread that is called wakes up.
 *
 * Each thread has a role:
 *
 *     0, 1  the thread of that seat: pushes the seat and goes to bed; once called, does it again
 *     c     takes a seat and calls its thread
 *     g     takes a seat, as a guest, and pushes it back
 *
 * Programs have two to four roles. A seat that has no thread is on the stack from the beginning, or
 * not. The memory of the seat's holder is plain. A sleep may end for no reason. The search is
 * exhaustive.
 */
#include "mc/mc.h"
#include "sleep/sleep.h"

#include <stdio.h>
#include <string.h>

#define SEATS 2
#define TURNS 2

static filch_sleep stack;
static filch_seat room[SEATS], *seats[SEATS] = {&room[0], &room[1]};
static int turns[SEATS];         /* plain: the seat holder's */
static int pushes, pops, called; /* counted outside of the model */
static bool is_called[SEATS];

static const char *roles;
static bool is_other_there;

static MC_OUTSIDE void count(int *what, int seat, bool now_called)
{
    ++*what;
    is_called[seat] = now_called;
}

static void push(unsigned seat)
{
    count(&pushes, (int)seat, false);
    filch_sleep_push(&stack, seat, FILCH_ROLE_RUNNING);
}

static void setup(void)
{
    stack.seats = seats;
    for (unsigned i = 0; i < SEATS; i++)
        if (is_other_there && !strchr(roles, '0' + (int)i))
            push(i);
}

static void sleeper(unsigned seat)
{
    for (int i = 0; i < TURNS; i++) {
        turns[seat]++;
        push(seat);
        mc_check(filch_seat_nap(&room[seat], NULL) == FILCH_BED_CALLED, "nobody was told to end");
        count(&called, (int)seat, false);
    }
    turns[seat]++;
}

static void taker(bool is_guest)
{
    int seat = filch_sleep_pop(&stack, FILCH_ROLE_RUNNING, false);

    if (seat < 0)
        return;
    turns[seat]++;
    if (is_guest) {
        count(&pops, seat, false);
        push((unsigned)seat);
    } else {
        count(&pops, seat, strchr(roles, '0' + seat) != NULL);
        filch_seat_call(&room[seat], FILCH_BED_CALLED);
    }
}

static void play(void)
{
    char role = roles[mc_self() - 1];

    if (role == '0' || role == '1')
        sleeper((unsigned)role - '0');
    else
        taker(role == 'g');
}

/* The seats of all sleepers are on the stack, and no others. */
static MC_OUTSIDE bool may_rest(void)
{
    uint64_t word = stack.word.filch_value;
    unsigned top = word & 0xfff, sleepers = word >> 12 & 0x3ff, found = 0;

    for (; top != 0 && found <= SEATS; found++) {
        if (is_called[top - 1])
            return false;
        top = room[top - 1].next.filch_value;
    }
    return found == sleepers && found == (unsigned)(pushes - pops) && !is_called[0] &&
           !is_called[1];
}

int main(int argc, char **argv)
{
    static const char *const texts[] = {"0c",  "0g",  "01c", "01g",  "0cc", "0cg",
                                        "0gg", "ccg", "cgg", "01cg", "01cc"};
    mc_options options = mc_arguments(argc, argv);
    mc_result total = {.name = "seats"};
    unsigned number = sizeof texts / sizeof texts[0] - (options.is_long ? 0 : 2);
    char name[40];
    mc_program program = {.name = name, .setup = setup};

    options.may_rest = may_rest;
    options.spurious = 1;
    for (unsigned i = 0; i < number; i++)
        for (int there = 0; there < 2; there++) {
            roles = texts[i];
            is_other_there = there;
            memset(program.threads, 0, sizeof program.threads);
            for (unsigned t = 0; roles[t]; t++)
                program.threads[t] = play;
            snprintf(name, sizeof name, "seats %s%s", roles, there ? "+" : "");
            mc_run_and_add(&total, &program, &options);
        }
    return mc_report(total);
}
