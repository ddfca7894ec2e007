/* SPDX-License-Identifier: MIT */
#include "worker/dump_signal.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/lock.h"
#include "worker/keeper.h"
#include "worker/listed.h"
#include "worker/worker.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <filch/error.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* While the reader of stderr takes nothing, look again after this time, then after twice that, up
 * to the longest. */
#define LOOK_NS 10000000
#define LONGEST_LOOK_NS 1000000000
/* A keeper that ends waits no longer for the reader. */
#define LAST_LOOK_NS 1000000000

/* The choice. Under the lock. */
static filch_lock lock;
static int signal_number; /* 0: none */
static struct sigaction previous;

/* Flags for the keeper. */
static filch_atomic_u32 wanted;   /* the signal has come */
static filch_atomic_u32 accepted; /* the signal that the keeper does not block */

/* The keeper only: what it has still to write. */
static char *text;
static size_t text_bytes, written_bytes;
static uint64_t look_ns;

/* ---- the keeper ------------------------------------------------------------------------------ */

static void accept_only(uint32_t number)
{
    sigset_t all;

    sigfillset(&all);
    if (number)
        sigdelset(&all, (int)number);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void dump_all(void)
{
    FILE *out = open_memstream(&text, &text_bytes);
    filch_pool *pool;

    if (!out) {
        text = strdup("filch: no memory for the dump\n");
        text_bytes = text ? strlen(text) : 0;
        return;
    }
    fprintf(out, "filch: process %d\n", (int)getpid());
    while ((pool = filch_listed_next())) {
        if (filch_pool_is_alive(pool))
            filch_pool_dump(pool, out);
        else
            fprintf(out, "pool '%s': not used since fork()\n", pool->options.name);
    }
    fprintf(out, "filch: end of the dump\n");
    fclose(out);
}

static void drop_text(void)
{
    free(text);
    text = NULL;
    text_bytes = written_bytes = 0;
}

/* Pipes and terminals may block a writer after poll(2) has promised room, if another writer takes
 * the room. So write to a file description of our own, which does not block. */
static ssize_t write_unblocked(const char *bytes, size_t count)
{
    int fd = open("/proc/thread-self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct pollfd poller = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (fd < 0) /* no rights, or no /proc: one byte seldom blocks */
        return poll(&poller, 1, 0) > 0 ? write(STDERR_FILENO, bytes, 1) : 0;
    ssize_t written = write(fd, bytes, count);
    int err = errno;
    close(fd);
    errno = err;
    return written;
}

static ssize_t write_to_stderr(const char *bytes, size_t count)
{
    struct stat info;

    if (fstat(STDERR_FILENO, &info))
        return -1;
    if (S_ISSOCK(info.st_mode))
        return send(STDERR_FILENO, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))
        return write_unblocked(bytes, count);
    return write(STDERR_FILENO, bytes, count);
}

/* Write what stderr takes without blocking. */
static void write_text(void)
{
    ssize_t written = 1;

    look_ns = look_ns < LONGEST_LOOK_NS ? 2 * look_ns : LONGEST_LOOK_NS;
    while (written > 0 && written_bytes < text_bytes) {
        written = write_to_stderr(text + written_bytes, text_bytes - written_bytes);
        if (written > 0)
            look_ns = LOOK_NS;
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            written_bytes = text_bytes; /* no reader is left */
        written_bytes += written > 0 ? (size_t)written : 0;
    }
    if (written_bytes == text_bytes)
        drop_text();
}

static void write_rest(void)
{
    uint64_t end_ns = filch_clock_ns() + LAST_LOOK_NS;

    for (write_text(); text && filch_clock_ns() < end_ns; write_text())
        poll(NULL, 0, LOOK_NS / 1000000);
    drop_text();
}

uint64_t filch_dump_serve(bool is_ending)
{
    /* relaxed: the bell carries it. */
    accept_only(filch_load_relaxed(&accepted));
    if (!text && filch_load_relaxed(&wanted)) {
        /* relaxed: the dump that follows also serves a signal that comes before the store. */
        filch_store_relaxed(&wanted, 0);
        look_ns = LOOK_NS;
        dump_all();
    }
    if (text)
        is_ending ? write_rest() : write_text();
    if (text)
        return filch_clock_ns() + look_ns;
    /* relaxed: a signal that comes after this load rings. One may have come during the dump. */
    return filch_load_relaxed(&wanted) ? filch_clock_ns() : FILCH_NEVER_NS;
}

static void on_signal(int number)
{
    int error = errno;
    (void)number;
    /* relaxed: the bell carries it. */
    filch_store_relaxed(&wanted, 1);
    filch_keeper_ring();
    errno = error;
}

bool filch_dump_forked(void)
{
    filch_lock_init(&lock);
    /* The parent prints its dump. */
    text = NULL;
    text_bytes = written_bytes = 0;
    /* relaxed: no other thread of this process uses it yet. */
    filch_store_relaxed(&wanted, 0);
    return signal_number != 0;
}

/* ---- the choice of the signal ---------------------------------------------------------------- */

static void accept_signal(int number)
{
    /* relaxed: the bell carries it. */
    filch_store_relaxed(&accepted, (uint32_t)number);
    filch_keeper_ring();
}

/* If another handler was installed since, that one stays. */
static void restore_handler(void)
{
    struct sigaction current;

    if (sigaction(signal_number, NULL, &current) == 0 && current.sa_handler == on_signal)
        sigaction(signal_number, &previous, NULL);
    signal_number = 0;
}

static void switch_off(void)
{
    if (!signal_number)
        return;
    restore_handler();
    accept_signal(0);
    filch_keeper_release();
    /* A keeper that ended while it wrote a dump has left the next request. relaxed: pthread_create
     * carries it to the next keeper. For a keeper that goes on, it does not matter when it sees
     * this. */
    filch_store_relaxed(&wanted, 0);
}

/* After an error, the signal that was chosen before stays in use. */
static int switch_to(int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigaction before;

    int err = filch_keeper_hold();
    if (err)
        return err;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &before)) {
        err = -errno;
        if (!signal_number)
            filch_keeper_release();
        return err;
    }
    if (signal_number && signal_number != number)
        restore_handler();
    if (before.sa_handler != on_signal)
        previous = before;
    signal_number = number;
    accept_signal(number);
    return 0;
}

/* With `is_wish`, a signal that was chosen before stays, and this returns 1. */
static int choose(int number, bool is_wish)
{
    int err = 0;

    /* After a fault of the program, the instruction would run again. SIGURG: filch/io.h. */
    if (number < 0 || number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
        number == SIGILL || number == SIGURG)
        return -EINVAL;
    int cancelling = filch_cancel_disable();
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    if (number == 0)
        switch_off();
    else
        err = is_wish && signal_number ? 1 : switch_to(number);
    filch_lock_release(&lock);
    filch_cancel_restore(cancelling);
    return err;
}

int filch_dump_on_signal(int number)
{
    return choose(number, false);
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

    if (!wish || !*wish)
        return;
    int number = parse_signal(wish);
    int err = number > 0 ? choose(number, true) : -EINVAL;
    /* Always: otherwise the signal that the user sends would end the program. */
    if (err < 0)
        fprintf(stderr, "filch: '%.32s' in FILCH_DUMP_SIGNAL is ignored: %s\n", wish,
                err == -EINVAL ? "choose a number, or HUP, QUIT, USR1, USR2, PWR or WINCH"
                               : filch_strerror(err));
    else if (err == 0 && filch_is_verbose())
        fprintf(stderr, "filch: pools are dumped on signal %.32s\n", wish);
}

void filch_dump_read_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}
