/* SPDX-License-Identifier: MIT */
/*
 * Children of fork(), from tasks and from plain threads. A child uses the inherited pools, destroys
 * them, and ends by _exit(). A task's child must not return from the task.
 *
 * The child may not use objects that other threads of the parent use: their locks may be held by
 * threads that it does not have.
 */
#include "attack.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RAN 17 /* the exit code of a child in which all went well */

static void act_in_child(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

/* A task cannot use its own pool: there it is in the middle of a call. */
static void use_pool(filch_frame *f, filch_pool *pool, actor *a)
{
    uint64_t kept = get(&the_world.kept);
    actor inner = part_of(a, 2);
    int err = filch_run(pool, act_in_child, &inner);

    if (err == -EOWNERDEAD && f) {
        CHECK_EQUAL(filch_submit(pool, act_in_child, &inner), -EOWNERDEAD);
        CHECK_EQUAL(get(&the_world.kept), kept);
        return;
    }
    if (err == -EAGAIN && fault_is_on(PART_threads)) {
        CHECK_EQUAL(get(&the_world.kept), kept);
        CHECK_EQUAL(filch_pool_destroy(pool), 0);
        return;
    }
    CHECK_EQUAL(err, 0);
    inner = part_of(a, 1);
    if (ok(NULL, a, filch_submit(pool, act_in_child, &inner), 0) && one_in(a, 2)) {
        CHECK_EQUAL(filch_pool_wait(pool), 0);
        CHECK(get(&the_world.kept) >= kept + 2);
    }
    CHECK_EQUAL(filch_pool_destroy(pool), 0);
}

static void be_child(filch_frame *f, actor *a)
{
    /* The thread that forked waits for this process, or lives as long as the pool. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    a->is_inside = a->is_forked = true;
    a->is_cancellable = a->is_shielded = false;
    for (unsigned i = 0; i < the_world.pool_count; i++) {
        actor inner = part_of(a, the_world.pool_count - i);
        name_actor(&inner, "in pool", i + 1);
        if (!one_in(a, 4))
            use_pool(f, the_world.pools[i], &inner);
    }
    _exit(RAN);
}

static int wait_for(void *arg)
{
    pid_t *child = arg;
    int status;

    while (waitpid(*child, &status, 0) < 0)
        if (errno != EINTR)
            FAIL("waitpid: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != RAN)
        FAIL("the child of a fork() ended with status %#x", (unsigned)status);
    return 0;
}

void op_child(filch_frame *f, actor *a)
{
    actor inner = part_of(a, 1);
    sigset_t alarms, old;

    /* A fork() starts again after each signal, so frequent signals would keep it from ending. */
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, &old);
    pid_t child = fork();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (child < 0)
        FAIL("fork: %s", strerror(errno));
    if (child == 0)
        be_child(f, &inner);
    if (!ok(f, a, filch_blocking(f, FILCH_LANE_ANY, wait_for, &child), 0))
        wait_for(&child);
}
