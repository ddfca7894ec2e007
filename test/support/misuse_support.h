/* SPDX-License-Identifier: MIT */
/*
 * Programs that are wrong: a child process runs one, and must end with a message that names a line.
 */
#ifndef FILCH_TEST_MISUSE_SUPPORT_H
#define FILCH_TEST_MISUSE_SUPPORT_H

#include "child.h"

/* The line that the message must name. */
static int wrong_line;
#define HERE_IT_IS_WRONG (wrong_line = __LINE__)

typedef struct misuse {
    filch_fn *run;
    unsigned workers; /* 0: on a plain thread */
    filch_deque_kind deque;
} misuse;

/* Before it ends, the child prints the line that the message must name. */
static void say_line(int number TEST_UNUSED)
{
    fprintf(stderr, "line %d\n", wrong_line);
}

/* For a place that the program must not reach. */
static TEST_UNUSED void abort_without_message(void)
{
    fprintf(stderr, "reached a place after the misuse\n");
    _exit(1);
}

static void do_wrong(void *arg)
{
    misuse *m = arg;
    filch_options options = {
        .size = sizeof options, .workers = m->workers ? m->workers : 2, .deque = m->deque};
    filch_pool *pool;

    signal(SIGABRT, say_line);
    CHECK(filch_pool_create(&pool, &options) == 0);
    if (m->workers)
        filch_run(pool, m->run, pool);
    else
        m->run(NULL, pool);
    fprintf(stderr, "it has returned\n");
}

static void assert_found_with(misuse m, const char *file, const char *what)
{
    char expected[400];

    ended c = run_in_child(do_wrong, &m);

    if (!has_ended_by(&c, SIGABRT))
        fail_msg("not found with %u workers: %s; it wrote: %s", m.workers, what, c.text);
    const char *line = strstr(c.text, "line ");
    assert_non_null(line);
    snprintf(expected, sizeof expected, "%s:%d: ", file, atoi(line + 5));
    if (!strstr(c.text, expected) || !strstr(c.text, what))
        fail_msg("expected: %s ... %s; it wrote: %s", expected, what, c.text);
}

static TEST_UNUSED void assert_found_in_task_of(filch_fn *run, const char *file, const char *what)
{
    for (unsigned workers = 1; workers <= 3; workers++)
        assert_found_with((misuse){.run = run, .workers = workers}, file, what);
}

#define assert_found_in_task(run, what) assert_found_in_task_of(run, __FILE__, what)

/* In tasks, and on a plain thread. */
#define assert_found_anywhere(program, what)                                                       \
    do {                                                                                           \
        assert_found_in_task(program, what);                                                       \
        assert_found_with((misuse){.run = program}, __FILE__, what);                               \
    } while (0)

#endif
