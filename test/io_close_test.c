/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors, and calls that return what seldom comes: some system calls are ours here. Run once for each way of doing it: FILCH_IO.
 *
 * Edges
 *   held     the task and who tries, by turns: the descriptor whose call does not return yet.
 *   tried    hold_up -> the task   it is in there.
 *   goes-on  let_go_on -> hold_up  it may return.
 */
#include "pools.h"

#include <filch/blocking.h>
#include <filch/io.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool has_rings(void)
{
    const char *way = getenv("FILCH_IO");
    return !way || strncmp(way, "uring", 5) == 0;
}

/* ---- while something is being tried ------------------------------------------------------------ */

static struct {
    filch_atomic_u32 fd; /* of which a recv, or a write that may block, is held up; 0: of none */
    filch_atomic_u32 is_tried, may_go_on;
} held;

static void hold_up(int fd)
{
    /* acquire [held] */
    if (fd > 0 && (uint32_t)fd == filch_load_acquire(&held.fd)) {
        /* release [tried] */
        filch_store_release(&held.is_tried, 1);
        /* acquire [goes-on] */
        while (!filch_load_acquire(&held.may_go_on))
            sched_yield();
        /* release [held] */
        filch_store_release(&held.fd, 0);
    }
}

/* The library's calls come here. */
ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    hold_up(fd);
    return syscall(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL);
}

/* What is written to this descriptor goes nowhere. */
static filch_atomic_u32 idle_fd; /* 0: none is so */

static bool is_idle(int fd)
{
    /* relaxed: who sets it calls. */
    return fd > 0 && (uint32_t)fd == filch_load_relaxed(&idle_fd);
}

/* To this descriptor nothing is written without waiting: so it is on a thread for calls that block. */
static filch_atomic_u32 slow_fd;    /* 0: to none */
static filch_atomic_u32 slow_tries; /* so often it was tried */

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    if (is_idle(fd))
        return 0;
    /* relaxed: who sets it calls. */
    if (fd > 0 && (uint32_t)fd == filch_load_relaxed(&slow_fd) && flags & RWF_NOWAIT) {
        /* relaxed: a count. */
        filch_fetch_add_relaxed(&slow_tries, 1);
        errno = EOPNOTSUPP;
        return -1;
    }
    hold_up(fd);
    return syscall(SYS_pwritev2, fd, parts, (long)count, (unsigned long)offset, 0L, (long)flags);
}

ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
    return is_idle(fd) ? 0 : syscall(SYS_sendto, fd, buffer, bytes, (long)flags, NULL, 0L);
}

/* epoll does not take this descriptor, for want of memory. */
static filch_atomic_u32 refused_fd; /* 0: it takes all */

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    /* relaxed: who sets it goes on with calls. */
    if (fd > 0 && (uint32_t)fd == filch_load_relaxed(&refused_fd)) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

/* A close of this descriptor fails, after it has closed it, as one of a file does that cannot be written back. */
static filch_atomic_u32 failing_fd; /* 0: of none */
static int failing_errno, failing_count;

int close(int fd)
{
    /* acquire [held] */
    CHECK(fd <= 0 || (uint32_t)fd != filch_load_acquire(&held.fd));
    int result = (int)syscall(SYS_close, fd);
    /* relaxed: who sets it calls. */
    if (fd <= 0 || (uint32_t)fd != filch_load_relaxed(&failing_fd))
        return result;
    failing_count++;
    errno = failing_errno;
    return -1;
}

static int let_go_on(filch_slot *f, void *arg)
{
    (void)f;
    (void)arg;
    /* release [goes-on] */
    filch_store_release(&held.may_go_on, 1);
    return 0;
}

/* One worker, or the thread of epoll, tries the operation. What lets it go on is run by the other worker: the task that closes the descriptor has to leave that first. */
static void close_what_is_tried(filch_slot *f, void *arg)
{
    int pair[2];
    char bytes[8];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, 0);
    CHECK(filch_op_start(f, &op) == 0);
    /* release [held] */
    filch_store_release(&held.fd, (uint32_t)pair[0]);
    CHECK(send(pair[1], "abc", 3, 0) == 3);
    /* acquire [tried] */
    while (!filch_load_acquire(&held.is_tried))
        filch_yield(f);
    CHECK(filch_spawn(f, &scope, let_go_on, NULL) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 3);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[1]) == 0);
}

static void reset_held(void)
{
    /* relaxed: nothing is held up. */
    filch_store_relaxed(&held.is_tried, 0);
    filch_store_relaxed(&held.may_go_on, 0);
}

TEST(a_close_waits_for_what_is_being_tried)
{
    if (has_rings())
        skip();
    filch_pool *pool = watched_pool_of(2);

    reset_held();
    assert_int_equal(filch_run(pool, close_what_is_tried, NULL), 0);
    watched_pool_destroy(pool);
}

/* ---- over, whatever they say ------------------------------------------------------------------ */

static void shut_down_in_vain(filch_slot *f, void *arg)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    (void)arg;

    CHECK(fd >= 0 && filch_shutdown(f, fd, SHUT_RDWR) == -EOPNOTSUPP);
    CHECK(filch_close(f, fd) == 0);
}

TEST(a_shutdown_that_is_not_possible_is_an_error)
{
    on_pools(shut_down_in_vain, NULL);
    shut_down_in_vain(NULL, NULL);
}

static void close_and_fail(filch_slot *f, void *arg)
{
    static const int errors[] = {EAGAIN, EOPNOTSUPP, EIO};
    (void)arg;

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        int fd = dup(0);
        failing_errno = errors[i];
        failing_count = 0;
        /* relaxed: for ourselves, and so below. */
        filch_store_relaxed(&failing_fd, (uint32_t)fd);
        int result = filch_close(f, fd);
        filch_store_relaxed(&failing_fd, 0);
        CHECK(result == -errors[i] && failing_count == 1);
    }
}

TEST(a_close_that_fails_has_closed_once)
{
    on_pools(close_and_fail, NULL);
    close_and_fail(NULL, NULL);
}

TEST(who_writes_all_and_gets_nowhere_gives_up)
{
    int pair[2];

    open_pair(pair);
    /* relaxed: for ourselves. */
    filch_store_relaxed(&idle_fd, (uint32_t)pair[0]);
    assert_int_equal(filch_write_all(NULL, pair[0], "abc", 3), -EIO);
    assert_int_equal(filch_send_all(NULL, pair[0], "abc", 3, 0), -EIO);
    assert_int_equal(filch_write_all(NULL, pair[0], "", 0), 0);
    /* relaxed: as above. */
    filch_store_relaxed(&idle_fd, 0);
    assert_int_equal(filch_write_all(NULL, pair[0], "abc", 3), 3);
    close(pair[0]);
    close(pair[1]);
}

/* ---- events that say too much ------------------------------------------------------------------ */

static char directory[] = "/tmp/filch_close_XXXXXX";

static void make_file(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
}

/* Two wait for one event; who comes too late must not wait in the kernel, on the only worker. */
static void read_events(filch_slot *f, void *arg)
{
    char buffers[2][4096];
    filch_op ops[2];
    int fd = inotify_init1(IN_CLOEXEC);
    (void)arg;

    CHECK(fd >= 0 && inotify_add_watch(fd, directory, IN_CREATE) >= 0);
    for (int i = 0; i < 2; i++) {
        ops[i] = filch_op_read(fd, buffers[i], sizeof buffers[i]);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
    make_file("one");
    while (!filch_op_is_done(&ops[0]) && !filch_op_is_done(&ops[1]))
        CHECK(filch_sleep_ns(f, 100000) == 0);
    int other = filch_op_is_done(&ops[0]);
    CHECK(filch_op_wait(f, &ops[!other], FILCH_NO_DEADLINE) > 0);
    CHECK(!filch_op_is_done(&ops[other]));
    make_file("two");
    CHECK(filch_op_wait(f, &ops[other], FILCH_NO_DEADLINE) > 0);
    CHECK(filch_close(f, fd) == 0);
}

TEST(an_event_that_another_has_taken_is_waited_for)
{
    filch_pool *pool = watched_pool_of(1);

    assert_non_null(mkdtemp(directory));
    assert_int_equal(filch_run(pool, read_events, NULL), 0);
    rmdir(directory);
    watched_pool_destroy(pool);
}

/* A listener whose queue is full: connections are neither made nor refused. Returns how many descriptors of clients there are. */
static int listen_in_vain(struct sockaddr_in *address, int fds[5])
{
    socklen_t length = sizeof *address;

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fds[0], (struct sockaddr *)address, sizeof *address) == 0 && listen(fds[0], 0) == 0);
    CHECK(getsockname(fds[0], (struct sockaddr *)address, &length) == 0);
    for (int i = 1; i < 5; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int err = connect(fds[i], (struct sockaddr *)address, sizeof *address);
        CHECK(err == 0 || errno == EINPROGRESS);
    }
    return 5;
}

/* The file of a descriptor lives on in another, and the number is a socket that is connecting: what happens to the file is nothing to the socket. */
static void reuse_number(filch_slot *f, void *arg)
{
    struct sockaddr_in address;
    int pair[2], fds[5];
    char byte;
    (void)arg;

    int count = listen_in_vain(&address, fds);
    open_pair(pair);
    int second = dup(pair[0]);
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    CHECK(second >= 0 && filch_op_start(f, &op) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) == pair[0]);
    op = filch_op_connect(pair[0], (struct sockaddr *)&address, sizeof address);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(shutdown(pair[1], SHUT_RDWR) == 0);
    CHECK(filch_sleep_ns(f, 1000000) == 0 && !filch_op_is_done(&op));
    filch_op_cancel(f, &op);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0 && filch_close(f, second) == 0);
    for (int i = 0; i < count; i++)
        CHECK(filch_close(f, fds[i]) == 0);
}

TEST(an_event_of_a_file_that_had_the_number_is_no_event)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_run(pool, reuse_number, NULL), 0);
    watched_pool_destroy(pool);
}

/* ---- what epoll does not take -------------------------------------------------------------------- */

static int receive_one(filch_slot *f, void *arg)
{
    char byte;
    ssize_t got = filch_recv(f, (int)(intptr_t)arg, &byte, 1, 0);
    return got < 0 ? (int)got : 0;
}

/* Deadlines, cancellations and closes end it, and so does what it waits for. */
static void wait_without_epoll(filch_slot *f, void *arg)
{
    int pair[2];
    char byte;
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    /* relaxed: for ourselves. */
    filch_store_relaxed(&refused_fd, (uint32_t)pair[0]);
    filch_op receiving = filch_op_recv(pair[0], &byte, 1, 0), reading = filch_op_read(pair[0], &byte, 1);
    CHECK(filch_op_run(f, &receiving, filch_after_ms(2)) == -ETIMEDOUT);
    CHECK(filch_op_run(f, &reading, filch_after_ms(2)) == -ETIMEDOUT);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, receive_one, (void *)(intptr_t)pair[0]) == 0);
    filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, receive_one, (void *)(intptr_t)pair[0]) == 0);
    filch_yield(f);
    CHECK(filch_send(f, pair[1], "abc", 3, 0) == 3);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_op_run(f, &receiving, filch_after_ms(60000)) == 1 && byte == 'b');
    CHECK(filch_op_run(f, &reading, filch_after_ms(60000)) == 1 && byte == 'c');
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
    /* relaxed: as above. */
    filch_store_relaxed(&refused_fd, 0);
}

TEST(what_epoll_does_not_take_is_waited_for_all_the_same)
{
    on_pools(wait_without_epoll, NULL);
}

/* ---- where all threads for files are busy -------------------------------------------------------- */

#define LANE 16

static latch lane_is_full, lane_is_free;

static int hold_lane(void *arg)
{
    latch_open(&lane_is_full);
    latch_wait(&lane_is_free);
    (void)arg;
    return 0;
}

static int hold_lane_in_task(filch_slot *f, void *arg)
{
    return filch_blocking(f, FILCH_LANE_FILES, hold_lane, arg);
}

static void fill_lane(filch_slot *f, filch_scope *scope)
{
    latch_init(&lane_is_full, LANE);
    latch_init(&lane_is_free, 1);
    CHECK(filch_scope_open(scope, f, NULL, NULL) == 0);
    for (int i = 0; i < LANE; i++)
        CHECK(filch_spawn(f, scope, hold_lane_in_task, NULL) == 0);
    while (!latch_is_open(&lane_is_full))
        filch_yield(f);
}

static void empty_lane(filch_slot *f, filch_scope *scope)
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
    /* relaxed: for ourselves, and who calls. */
    filch_store_relaxed(&slow_tries, 0);
    filch_store_relaxed(&slow_fd, (uint32_t)fd);
}

static void write_late(filch_slot *f, void *arg)
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
    CHECK(filch_op_run(f, &op, filch_after_ms(60000)) == 3);
    be_slow(0);
    CHECK(filch_close(f, fd) == 0);
}

TEST(a_deadline_ends_what_waits_for_a_thread)
{
    on_pools(write_late, NULL);
}

typedef struct late_write {
    int fd;
    ssize_t result;
} late_write;

static int write_in_task(filch_slot *f, void *arg)
{
    late_write *w = arg;
    w->result = filch_write(f, w->fd, "abc", 3);
    return 0;
}

/* A file gets the number of another that was closed, while a write to that waits for a thread. There is one worker: when the task that starts the write has tried it, and another goes on, it waits. */
static void close_before_write(filch_slot *f, int fd)
{
    late_write w = {fd, 0};
    filch_scope scope, writers;
    struct stat info;

    fill_lane(f, &scope);
    be_slow(fd);
    CHECK(filch_scope_open(&writers, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &writers, write_in_task, &w) == 0);
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

static void close_before_writes(filch_slot *f, void *arg)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    (void)arg;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    close_before_write(f, open_file());
    close_before_write(f, open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC));
    CHECK(filch_close(f, master) == 0);
}

TEST(a_close_takes_back_what_waits_for_a_thread)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_submit(pool, close_before_writes, NULL), 0);
    assert_int_equal(filch_pool_wait(pool), 0);
    watched_pool_destroy(pool);
}

/* A thread has begun with the write, and not made it yet. */
static void close_what_is_written(filch_slot *f, void *arg)
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
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, write_in_task, &w) == 0);
    /* acquire [tried] */
    while (!filch_load_acquire(&held.is_tried))
        filch_yield(f);
    CHECK(filch_spawn(f, &scope, let_go_on, NULL) == 0);
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

/* A terminal takes no more until somebody reads. */
static int write_much(filch_slot *f, void *arg)
{
    late_write *w = arg;
    size_t bytes = 1 << 20;
    char *text = malloc(bytes);

    memset(text, 'x', bytes);
    w->result = filch_write(f, w->fd, text, bytes);
    free(text);
    return 0;
}

static void close_stopped_terminal(filch_slot *f, void *arg)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char bytes[4096];
    filch_scope scope;
    (void)arg;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    late_write w = {open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), 0};
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, write_much, &w) == 0);
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

/* Locks of fcntl(2) end when a descriptor of the file is closed, be it another. */
static void write_locked_file(filch_slot *f, void *arg)
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
        cmocka_unit_test(a_close_waits_for_what_is_being_tried),
        cmocka_unit_test(a_shutdown_that_is_not_possible_is_an_error),
        cmocka_unit_test(a_close_that_fails_has_closed_once),
        cmocka_unit_test(who_writes_all_and_gets_nowhere_gives_up),
        cmocka_unit_test(an_event_that_another_has_taken_is_waited_for),
        cmocka_unit_test(an_event_of_a_file_that_had_the_number_is_no_event),
        cmocka_unit_test(what_epoll_does_not_take_is_waited_for_all_the_same),
        cmocka_unit_test(a_deadline_ends_what_waits_for_a_thread),
        cmocka_unit_test(a_close_takes_back_what_waits_for_a_thread),
        cmocka_unit_test(a_close_waits_for_a_call_on_a_file_that_has_begun),
        cmocka_unit_test(a_close_does_not_wait_for_a_terminal),
        cmocka_unit_test(a_write_leaves_the_locks_of_a_file_alone),
    };
    return cmocka_run_group_tests_name("io_close", tests, watchdog_start, watchdog_stop);
}
