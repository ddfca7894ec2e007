/* SPDX-License-Identifier: MIT */
/*
 * Operations on threads for calls that block, before and after the thread has begun: deadlines,
 * closes, locks of files. This file replaces some system calls. Run once for each way of I/O:
 * FILCH_IO.
 *
 * The edges [held] and [tried] are in held.h.
 */
#include "held.h"

#include <filch/blocking.h>
#include <filch/io.h>

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- replaced system calls ------------------------------------------------------------------- */

/* Writes to this descriptor always wait, so they are made on a thread for calls that block. */
static filch_atomic_u32 slow_fd;    /* 0: no descriptor */
static filch_atomic_u32 slow_tries; /* how often a write was tried */

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    /* relaxed: the thread that sets it makes the call. */
    if (fd > 0 && (uint32_t)fd == filch_load_relaxed(&slow_fd) && flags & RWF_NOWAIT) {
        /* relaxed: a count. */
        filch_fetch_add_relaxed(&slow_tries, 1);
        errno = EOPNOTSUPP;
        return -1;
    }
    hold_up(fd);
    return really_pwritev2(fd, parts, count, offset, flags);
}

int close(int fd)
{
    CHECK(!is_held(fd));
    return (int)syscall(SYS_close, fd);
}

/* ---- while all threads for files are busy ---------------------------------------------------- */

#define LANE 16

static latch lane_is_full, lane_is_free;

static int hold_lane(void *arg)
{
    latch_open(&lane_is_full);
    latch_wait(&lane_is_free);
    (void)arg;
    return 0;
}

static int hold_lane_in_task(filch_frame *f, void *arg)
{
    return filch_blocking(f, FILCH_LANE_FILES, hold_lane, arg);
}

static void fill_lane(filch_frame *f, filch_scope *scope)
{
    latch_init(&lane_is_full, LANE);
    latch_init(&lane_is_free, 1);
    CHECK(filch_scope_open(f, scope, NULL, NULL) == 0);
    for (int i = 0; i < LANE; i++)
        CHECK(filch_scope_spawn(f, scope, hold_lane_in_task, NULL) == 0);
    while (!latch_is_open(&lane_is_full))
        filch_yield(f);
}

static void empty_lane(filch_frame *f, filch_scope *scope)
{
    latch_open(&lane_is_free);
    CHECK(filch_scope_close(f, scope) == 0);
}

static int open_file(void)
{
    char path[] = "/tmp/filch_close_XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    CHECK(fd > 0 && unlink(path) == 0);
    return fd;
}

static void be_slow(int fd)
{
    /* relaxed: for this thread, and for its own calls. */
    filch_store_relaxed(&slow_tries, 0);
    filch_store_relaxed(&slow_fd, (uint32_t)fd);
}

static void write_late(filch_frame *f, void *arg)
{
    int fd = open_file();
    filch_op op = filch_op_write(fd, "abc", 3);
    filch_scope scope;
    struct stat info;
    (void)arg;

    fill_lane(f, &scope);
    be_slow(fd);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    empty_lane(f, &scope);
    CHECK(fstat(fd, &info) == 0 && info.st_size == 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 3);
    be_slow(0);
    CHECK(filch_close(f, fd) == 0);
}

TEST(a_deadline_cancels_a_call_that_waits_for_a_thread)
{
    on_pools(write_late, NULL);
}

typedef struct late_write {
    int fd;
    ssize_t result;
} late_write;

static int write_in_task(filch_frame *f, void *arg)
{
    late_write *w = arg;
    w->result = filch_write(f, w->fd, "abc", 3);
    return 0;
}

/* While a write waits for a thread, its descriptor is closed, and another file gets the number.
 * There is one worker: when the writing task has tried the write, and another task runs, the write
 * waits. */
static void close_before_write(filch_frame *f, int fd)
{
    late_write w = {fd, 0};
    filch_scope scope, writers;
    struct stat info;

    fill_lane(f, &scope);
    be_slow(fd);
    CHECK(filch_scope_open(f, &writers, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &writers, write_in_task, &w) == 0);
    /* relaxed: a count. */
    while (filch_load_relaxed(&slow_tries) == 0)
        filch_yield(f);
    CHECK(filch_close(f, fd) == 0);
    int other = open_file();
    CHECK(other == fd);
    empty_lane(f, &scope);
    CHECK(filch_scope_close(f, &writers) == 0);
    be_slow(0);
    CHECK(w.result == -ECANCELED);
    CHECK(fstat(other, &info) == 0 && info.st_size == 0);
    CHECK(filch_close(f, other) == 0);
}

static void close_before_writes(filch_frame *f, void *arg)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    (void)arg;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    close_before_write(f, open_file());
    close_before_write(f, open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC));
    CHECK(filch_close(f, master) == 0);
}

TEST(a_close_cancels_a_call_that_waits_for_a_thread)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_submit(pool, close_before_writes, NULL), 0);
    assert_int_equal(filch_pool_wait(pool), 0);
    watched_pool_destroy(pool);
}

/* A thread has begun with the write, but has not made the system call yet. */
static void close_what_is_written(filch_frame *f, void *arg)
{
    late_write w = {open_file(), 0};
    int second = dup(w.fd);
    filch_scope scope;
    char bytes[8];
    (void)arg;

    CHECK(second >= 0);
    be_slow(w.fd);
    reset_held();
    /* release [held] */
    filch_store_release(&held.fd, (uint32_t)w.fd);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, write_in_task, &w) == 0);
    /* acquire [tried] */
    while (!filch_load_acquire(&held.is_tried))
        filch_yield(f);
    CHECK(filch_scope_spawn(f, &scope, let_go_on, NULL) == 0);
    CHECK(filch_close(f, w.fd) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    be_slow(0);
    CHECK(w.result == 3 && filch_pread(f, second, bytes, sizeof bytes, 0) == 3);
    CHECK(filch_close(f, second) == 0);
}

TEST(a_close_waits_for_a_call_on_a_file_that_has_begun)
{
    on_pools(close_what_is_written, NULL);
}

/* More than a terminal takes before its other side is read. */
static int write_much(filch_frame *f, void *arg)
{
    late_write *w = arg;
    size_t bytes = 1 << 20;
    char *text = malloc(bytes);

    memset(text, 'x', bytes);
    w->result = filch_write(f, w->fd, text, bytes);
    free(text);
    return 0;
}

static void close_stopped_terminal(filch_frame *f, void *arg)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char bytes[4096];
    filch_scope scope;
    (void)arg;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    late_write w = {open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), 0};
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, write_much, &w) == 0);
    /* The write has begun. */
    CHECK(filch_poll(f, master, POLLIN) == POLLIN);
    CHECK(filch_close(f, w.fd) == 0);
    ssize_t got, all = 0;
    while ((got = filch_read(f, master, bytes, sizeof bytes)) > 0)
        all += got;
    CHECK(got == -EIO && all == 1 << 20);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(w.result == 1 << 20);
    CHECK(filch_close(f, master) == 0);
}

TEST(a_close_does_not_wait_for_a_terminal)
{
    on_pools(close_stopped_terminal, NULL);
}

/* Locks of fcntl(2) end when any descriptor of the file is closed. */
static void write_locked_file(filch_frame *f, void *arg)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open_file();
    (void)arg;

    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    be_slow(fd);
    CHECK(filch_write(f, fd, "abc", 3) == 3);
    be_slow(0);
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(filch_close(f, fd) == 0);
}

TEST(a_write_leaves_the_locks_of_a_file_alone)
{
    on_pools(write_locked_file, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadline_cancels_a_call_that_waits_for_a_thread),
        cmocka_unit_test(a_close_cancels_a_call_that_waits_for_a_thread),
        cmocka_unit_test(a_close_waits_for_a_call_on_a_file_that_has_begun),
        cmocka_unit_test(a_close_does_not_wait_for_a_terminal),
        cmocka_unit_test(a_write_leaves_the_locks_of_a_file_alone),
    };
    return cmocka_run_group_tests_name("io_lane", tests, watchdog_start, watchdog_stop);
}
