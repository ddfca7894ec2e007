/* SPDX-License-Identifier: MIT */
/*
 * All pools of the process, and the signal that dumps them.
 *
 *     the signal -> handler: sem_post -> the dump thread: filch_pool_dump of each pool, on stderr
 *
 * The handler may interrupt a thread that holds any lock, so it only posts a semaphore. The thread
 * that dumps belongs to no pool. So it also dumps a pool whose workers all block in system calls.
 * If all other threads block the signal, the dump thread accepts it.
 *
 * A pool may be destroyed at any time. The dump thread notes in `dumped` which pool it reads, and
 * releases the lock before it prints. The destroyer waits until its pool is not the one dumped.
 */
#include "worker/listed.h"

#include "worker/worker.h"

#include <ctype.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The pools. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* `dumped` has changed */
static filch_pool *first;
static filch_pool *dumped;
static unsigned passes; /* a pool whose listed_pass is smaller is still to be dumped */

/* The signal. Acquired before the lock of the pools. */
static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;
static int signal_number; /* 0: none */
static struct sigaction previous;
static bool has_thread;
static pthread_t thread;
static FILE *out;
static sem_t asked;
static filch_atomic_u32 wanted, stopping; /* why `asked` was posted */
static filch_atomic_u32 accepted;         /* the signal that the thread does not block */

/* ---- the dump thread ------------------------------------------------------------------------- */

/* Write to the descriptor. A hanging thread may have locked stderr's own FILE. */
static ssize_t write_stderr(void *cookie, const char *bytes, size_t count)
{
    size_t done = 0;
    (void)cookie;

    while (done < count) {
        ssize_t written = write(STDERR_FILENO, bytes + done, count - done);
        if (written < 0 && errno != EINTR)
            break; /* no reader is left */
        done += written > 0 ? (size_t)written : 0;
    }
    return (ssize_t)count;
}

/* The next pool of this pass; NULL: there is none. From here until let_go it is not destroyed. */
static filch_pool *take_next(void)
{
    pthread_mutex_lock(&lock);
    filch_pool *pool = first;
    while (pool && pool->listed_pass == passes)
        pool = pool->listed_next;
    if (pool)
        pool->listed_pass = passes;
    dumped = pool;
    pthread_mutex_unlock(&lock);
    return pool;
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    dumped = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void dump_all(void)
{
    filch_pool *pool;

    pthread_mutex_lock(&lock);
    passes++;
    pthread_mutex_unlock(&lock);
    fprintf(out, "filch: process %d\n", (int)getpid());
    while ((pool = take_next())) {
        if (filch_pool_is_alive(pool))
            filch_pool_dump(pool, out);
        else
            fprintf(out, "pool '%s': not used since fork()\n", pool->options.name);
        let_go();
    }
    fprintf(out, "filch: end of the dump\n");
    fflush(out);
}

static void accept_only(uint32_t number)
{
    sigset_t all;

    sigfillset(&all);
    sigdelset(&all, (int)number);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void *serve(void *argument)
{
    (void)argument;
    pthread_setname_np(pthread_self(), "filch/dump");
    for (;;) {
        /* relaxed: pthread_create and the semaphore carry it. */
        accept_only(filch_load_relaxed(&accepted));
        while (sem_wait(&asked))
            ; /* EINTR: the signal came to this thread */
        /* relaxed: the semaphore carries it. */
        if (filch_load_relaxed(&wanted)) {
            /* relaxed: the dump that follows also serves a signal that comes before the store. */
            filch_store_relaxed(&wanted, 0);
            dump_all();
        }
        /* relaxed: the semaphore carries it. */
        if (filch_load_relaxed(&stopping))
            return NULL;
    }
}

static void on_signal(int number)
{
    int error = errno;
    (void)number;
    /* relaxed: the semaphore carries it. */
    filch_store_relaxed(&wanted, 1);
    sem_post(&asked);
    errno = error;
}

/* ---- start and stop; with `switching` locked ------------------------------------------------- */

/* The dump thread accepts only the signal `number`. */
static void tell_to_accept(int number)
{
    /* relaxed: pthread_create or the semaphore carries it. */
    filch_store_relaxed(&accepted, (uint32_t)number);
    if (has_thread)
        sem_post(&asked);
}

/* Start the dump thread. */
static int start(void)
{
    sigset_t all, caller;

    if (!out) {
        out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stderr});
        if (!out)
            return -ENOMEM;
    }
    sem_init(&asked, 0, 0);
    /* relaxed: pthread_create carries it. */
    filch_store_relaxed(&stopping, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &caller);
    int err = pthread_create(&thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &caller, NULL);
    has_thread = err == 0;
    return -err;
}

static void stop(void)
{
    if (!has_thread)
        return;
    /* relaxed: the semaphore carries it. */
    filch_store_relaxed(&stopping, 1);
    sem_post(&asked);
    pthread_join(thread, NULL);
    has_thread = false;
}

/* If another handler was installed since, that one stays. */
static void restore_handler(void)
{
    struct sigaction current;

    if (sigaction(signal_number, NULL, &current) == 0 && current.sa_handler == on_signal)
        sigaction(signal_number, &previous, NULL);
    signal_number = 0;
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&switching);
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&switching);
}

/* The dump thread was left behind, perhaps in the middle of a dump. */
static void in_child(void)
{
    dumped = NULL;
    has_thread = false;
    out = NULL; /* its lock may be held for ever */
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    in_parent();
}

/* A program may call filch_dump_on_signal and fork() before it creates a pool. */
static void register_handlers(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void handle_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
}

void filch_listed_forked(void)
{
    pthread_mutex_lock(&switching);
    if (signal_number && !has_thread) {
        tell_to_accept(signal_number);
        start();
    }
    pthread_mutex_unlock(&switching);
}

/* ---- the choice of the signal ---------------------------------------------------------------- */

static void switch_off(void)
{
    if (signal_number)
        restore_handler();
    stop();
}

/* After an error, the signal before is still in use. */
static int switch_to(int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigaction before;

    if (!has_thread) {
        tell_to_accept(number);
        int err = start();
        if (err)
            return err;
    }
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &before)) {
        int err = -errno;
        if (signal_number)
            tell_to_accept(signal_number);
        else
            stop();
        return err;
    }
    if (signal_number && signal_number != number)
        restore_handler();
    if (before.sa_handler != on_signal)
        previous = before;
    signal_number = number;
    tell_to_accept(number);
    return 0;
}

int filch_dump_on_signal(int number)
{
    /* After a fault of the program, the instruction would run again. SIGURG: filch/io.h. */
    if (number < 0 || number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
        number == SIGILL || number == SIGURG)
        return -EINVAL;
    handle_forks();
    pthread_mutex_lock(&switching);
    int err = 0;
    if (number == 0)
        switch_off();
    else
        err = switch_to(number);
    pthread_mutex_unlock(&switching);
    return err;
}

/* ---- the environment ------------------------------------------------------------------------- */

/* "10", "USR1" or "SIGUSR1"; 0: none of these. */
static int parse_signal(const char *wish)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"HUP", SIGHUP},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
                   {"USR2", SIGUSR2}, {"PWR", SIGPWR},   {"WINCH", SIGWINCH}};
    const char *name = strncasecmp(wish, "SIG", 3) == 0 ? wish + 3 : wish;

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcasecmp(signals[i].name, name) == 0)
            return signals[i].number;
    return isdigit((unsigned char)*wish) ? atoi(wish) : 0;
}

static void read_environment(void)
{
    const char *wish = getenv("FILCH_DUMP_SIGNAL");

    if (!wish || !*wish || signal_number)
        return;
    int number = parse_signal(wish);
    int err = number > 0 ? filch_dump_on_signal(number) : -EINVAL;
    if (filch_is_verbose())
        fprintf(stderr,
                err ? "filch: '%.32s' in FILCH_DUMP_SIGNAL ignored: %s\n"
                    : "filch: pools are dumped on signal %.32s\n",
                wish, strerror(-err));
}

/* ---- the list -------------------------------------------------------------------------------- */

void filch_listed_add(filch_pool *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    handle_forks();
    pthread_once(&once, read_environment);
    filch_listed_forked();
    pthread_mutex_lock(&lock);
    pool->listed_pass = passes;
    pool->listed_to = &first;
    pool->listed_next = first;
    if (first)
        first->listed_to = &pool->listed_next;
    first = pool;
    pthread_mutex_unlock(&lock);
}

void filch_listed_remove(filch_pool *pool)
{
    pthread_mutex_lock(&lock);
    while (dumped == pool)
        pthread_cond_wait(&changed, &lock);
    *pool->listed_to = pool->listed_next;
    if (pool->listed_next)
        pool->listed_next->listed_to = pool->listed_to;
    pthread_mutex_unlock(&lock);
}
