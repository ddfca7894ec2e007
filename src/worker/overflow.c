/* SPDX-License-Identifier: MIT */
#include "worker/overflow.h"

#include "base/lock.h"
#include "base/memory.h"
#include "worker/keeper.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIGNAL_STACK_BYTES ((size_t)32 << 10)

/* A process has one handler for SIGSEGV, so all pools share these variables. */
static filch_lock lock;
static unsigned user_count;
static bool is_installed; /* perhaps below a handler that was installed later and calls ours */
static struct sigaction previous;

static void report(const filch_pool *pool, const filch_strand *strand)
{
    char text[200];
    int length = snprintf(text, sizeof text,
                          "filch: strand %u of pool '%s' overflowed its stack of %zu KiB; "
                          "filch_options.stack_bytes makes it larger\n",
                          strand->id, pool->options.name, strand->stack_bytes >> 10);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

static void on_segv(int number, siginfo_t *info, void *ucontext)
{
    for (const filch_visit *visit = filch_visit_self(); visit; visit = visit->outer) {
        filch_pool *pool = visit->worker->pool;
        filch_strand *strand = filch_strand_find_guard(&pool->strands, info->si_addr);
        if (strand) {
            report(pool, strand);
            break;
        }
    }
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, ucontext);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        /* On return the instruction runs again, and the signal ends the program. */
        signal(SIGSEGV, SIG_DFL);
    }
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_segv;
}

static void note_previous(const struct sigaction *action)
{
    if (!is_ours(action))
        previous = *action;
}

/* A fork() may come between any two steps. So `previous` is valid before our handler is there. If
 * the child finds our handler although `is_installed` is false, it installs it once more. */
static int install(void)
{
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction current;

    if (sigaction(SIGSEGV, NULL, &current))
        return -errno;
    note_previous(&current);
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, &current))
        return -errno;
    note_previous(&current);
    is_installed = true;
    return 0;
}

/* If another handler was installed since, it may call ours: then ours stays. */
static void restore(void)
{
    struct sigaction current;

    if (sigaction(SIGSEGV, NULL, &current) || !is_ours(&current))
        return;
    is_installed = false; /* first: see install */
    is_installed = sigaction(SIGSEGV, &previous, NULL) != 0;
}

int filch_overflow_install(void)
{
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    int err = is_installed ? 0 : install();
    user_count += err == 0;
    filch_lock_release(&lock);
    return err;
}

void filch_overflow_remove(void)
{
    filch_lock_acquire(&lock);
    if (--user_count == 0)
        restore();
    filch_lock_release(&lock);
}

void filch_overflow_forked(void)
{
    filch_lock_init(&lock);
}

void filch_overflow_enter(filch_overflow *overflow)
{
    stack_t stack = {.ss_size = SIGNAL_STACK_BYTES};

    overflow->memory = NULL;
    if (sigaltstack(NULL, &overflow->previous) || !(overflow->previous.ss_flags & SS_DISABLE))
        return;
    stack.ss_sp = filch_calloc(1, SIGNAL_STACK_BYTES);
    if (stack.ss_sp && sigaltstack(&stack, NULL) == 0)
        overflow->memory = stack.ss_sp;
    else
        free(stack.ss_sp);
}

void filch_overflow_leave(filch_overflow *overflow)
{
    if (!overflow->memory)
        return;
    sigaltstack(&overflow->previous, NULL);
    free(overflow->memory);
}
