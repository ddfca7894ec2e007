/* SPDX-License-Identifier: MIT */
/*
 * A queue for all threads: each job that is pushed is taken once, and jobs of one thread are taken
 * in their order.
 *
 * Each thread has a script: p pushes a job, t tries to take one. The client runs all scripts of two
 * threads with up to two operations each, and all of three threads with one each. The queue's lock
 * is checked with it.
 */
#include "deque/queue.h"
#include "mc/mc.h"

#include <stdio.h>

#define THREADS 3
#define LENGTH 2

typedef struct job {
    filch_link link;
    int pusher, number;
    int taken; /* under no lock: the thread that takes a job has it alone */
} job;

static filch_queue queue;
static job jobs[THREADS][LENGTH];
static char script[THREADS][LENGTH + 1];

static void setup(void)
{
    filch_queue_init(&queue);
}

static void take(int last_number[THREADS])
{
    job *j = (job *)filch_queue_take(&queue);

    if (!j)
        return;
    mc_check(j->taken++ == 0, "a job is taken once");
    mc_check(j->number > last_number[j->pusher], "the jobs of one thread are taken in their order");
    last_number[j->pusher] = j->number;
}

static void run_script(void)
{
    int t = mc_self() - 1, count = 0, last_number[THREADS] = {0};

    for (const char *c = script[t]; *c; c++) {
        if (*c == 't') {
            take(last_number);
            continue;
        }
        job *j = &jobs[t][count++];
        *j = (job){.pusher = t, .number = count};
        filch_queue_push(&queue, &j->link);
    }
}

static void finish(void)
{
    int last_number[THREADS] = {0};

    while (!filch_queue_is_empty(&queue))
        take(last_number);
    mc_check(!filch_queue_take(&queue), "the count says that the queue is empty");
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < LENGTH; i++)
            mc_check(jobs[t][i].taken == (jobs[t][i].number > 0), "every job is taken");
}

/* The k-th string of p and t, by length; "" for k = 0. */
static void make_script(char *text, unsigned k)
{
    unsigned length = k < 1 ? 0 : k < 3 ? 1 : 2, bits = k - ((1u << length) - 1);

    for (unsigned i = 0; i < length; i++)
        text[i] = bits >> i & 1 ? 't' : 'p';
    text[length] = '\0';
}

static void run(mc_result *total, const mc_options *options, unsigned a, unsigned b, unsigned c)
{
    char name[40];

    make_script(script[0], a);
    make_script(script[1], b);
    make_script(script[2], c);
    snprintf(name, sizeof name, "queue %s %s %s", script[0], script[1], script[2]);
    mc_program program = {
        .name = name, .setup = setup, .threads = {run_script, run_script}, .finish = finish};
    if (c)
        program.threads[2] = run_script;
    mc_add(total, mc_run(&program, options));
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    mc_result total = {.name = "queue"};

    options.spins = MC_ALWAYS;
    for (unsigned a = 1; a <= 6; a++)
        for (unsigned b = a; b <= 6; b++)
            run(&total, &options, a, b, 0);
    for (unsigned a = 1; a <= 2; a++)
        for (unsigned b = a; b <= 2; b++)
            for (unsigned c = b; c <= 2; c++)
                run(&total, &options, a, b, c);
    return mc_report(total);
}
