/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors, and system calls with rare results: this file replaces some of them. Run
 * once for each way of I/O: FILCH_IO.
 *
 * The edges [held] and [tried] are in held.h.
 */
#include "held.h"

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

/* ---- system calls, and a close during a try -------------------------------------------------- */

/* The library calls this one. */
ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    hold_up(fd);
    return syscall(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL);
}

/* Writes to this descriptor return 0. */
static filch_atomic_u32 idle_fd; /* 0: no descriptor */

static bool is_idle(int fd)
{
    /* relaxed: the thread that sets it makes the call. */
    return fd > 0 && (uint32_t)fd == filch_load_relaxed(&idle_fd);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    if (is_idle(fd))
        return 0;
    return really_pwritev2(fd, parts, count, offset, flags);
}

ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
    return is_idle(fd) ? 0 : syscall(SYS_sendto, fd, buffer, bytes, (long)flags, NULL, 0L);
}

/* How often epoll got this descriptor, and lost it. */
static filch_atomic_u32 watched_fd; /* 0: no descriptor */
static counter added, removed;

/* epoll refuses this descriptor, for want of memory. */
static filch_atomic_u32 refused_fd; /* 0: no descriptor */

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    /* relaxed: the thread that sets it makes the calls. */
    if (fd > 0 && (uint32_t)fd == filch_load_relaxed(&refused_fd)) {
        errno = ENOMEM;
        return -1;
    }
    int err = (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
    /* relaxed: as above. */
    if (err == 0 && fd > 0 && (uint32_t)fd == filch_load_relaxed(&watched_fd)) {
        counter_add(&added, operation == EPOLL_CTL_ADD);
        counter_add(&removed, operation == EPOLL_CTL_DEL);
    }
    return err;
}

/* A close of this descriptor closes it and then fails, as for a file that cannot be written
 * back. */
static filch_atomic_u32 failing_fd; /* 0: no descriptor */
static int failing_errno, failing_count;

int close(int fd)
{
    CHECK(!is_held(fd));
    int result = (int)syscall(SYS_close, fd);
    /* relaxed: the thread that sets it makes the call. */
    if (fd <= 0 || (uint32_t)fd != filch_load_relaxed(&failing_fd))
        return result;
    failing_count++;
    errno = failing_errno;
    return -1;
}

/* One worker, or the thread of epoll, tries the operation, and is held up. The task that lets it go
 * on runs on the other worker: the task that closes the descriptor has to leave that worker
 * first. */
static void close_what_is_tried(filch_frame *f, void *arg)
{
    int pair[2];
    char bytes[8];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, 0);
    CHECK(filch_op_start(f, &op) == 0);
    /* release [held] */
    filch_store_release(&held.fd, (uint32_t)pair[0]);
    CHECK(send(pair[1], "abc", 3, 0) == 3);
    /* acquire [tried] */
    while (!filch_load_acquire(&held.is_tried))
        filch_yield(f);
    CHECK(filch_scope_spawn(f, &scope, let_go_on, NULL) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 3);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[1]) == 0);
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

/* ---- final, with any result ------------------------------------------------------------------ */

static void shut_down_in_vain(filch_frame *f, void *arg)
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

static void close_and_fail(filch_frame *f, void *arg)
{
    static const int errors[] = {EAGAIN, EOPNOTSUPP, EIO};
    (void)arg;

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        int fd = dup(0);
        failing_errno = errors[i];
        failing_count = 0;
        /* relaxed: for this thread, here and below. */
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

TEST(write_all_fails_if_nothing_gets_written)
{
    int pair[2];

    open_pair(pair);
    /* relaxed: for this thread. */
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

/* ---- misleading events ----------------------------------------------------------------------- */

static char directory[] = "/tmp/filch_close_XXXXXX";

static void make_file(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
}

/* Two reads wait for one event. The second must not wait in the kernel, on the only worker. */
static void read_events(filch_frame *f, void *arg)
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

TEST(a_read_whose_event_was_used_up_waits_for_the_next)
{
    filch_pool *pool = watched_pool_of(1);

    assert_non_null(mkdtemp(directory));
    assert_int_equal(filch_run(pool, read_events, NULL), 0);
    rmdir(directory);
    watched_pool_destroy(pool);
}

/* A listener whose queue is full: connections are neither made nor refused. Returns the number of
 * `fds`. */
static int listen_in_vain(struct sockaddr_in *address, int fds[5])
{
    socklen_t length = sizeof *address;

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fds[0], (struct sockaddr *)address, sizeof *address) == 0 && listen(fds[0], 0) == 0);
    CHECK(getsockname(fds[0], (struct sockaddr *)address, &length) == 0);
    for (int i = 1; i < 5; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int err = connect(fds[i], (struct sockaddr *)address, sizeof *address);
        CHECK(err == 0 || errno == EINPROGRESS);
    }
    return 5;
}

/* A duplicate keeps a file open, and the number of its first descriptor is now a socket that
 * connects. Events of the file must not be taken for events of the socket. */
static void reuse_number(filch_frame *f, void *arg)
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
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0 &&
          filch_close(f, second) == 0);
    for (int i = 0; i < count; i++)
        CHECK(filch_close(f, fds[i]) == 0);
}

TEST(an_event_of_the_file_that_had_the_number_before_is_ignored)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_run(pool, reuse_number, NULL), 0);
    watched_pool_destroy(pool);
}

/* A thread in epoll_wait may hold a file that epoll watches, and so postpone the close. */
static void close_after_wait(filch_frame *f, void *arg TEST_UNUSED)
{
    int pair[2];
    char byte;

    open_pair(pair);
    /* relaxed: for this thread. */
    filch_store_relaxed(&watched_fd, (uint32_t)pair[0]);
    counter_set(&added, 0);
    counter_set(&removed, 0);
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_send(f, pair[1], "a", 1, 0) == 1);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
    CHECK(counter_get(&removed) == counter_get(&added));
    CHECK(has_rings() || counter_get(&added) == 1);
    /* relaxed: as above. */
    filch_store_relaxed(&watched_fd, 0);
}

TEST(a_close_removes_a_descriptor_from_epoll_on_which_no_operation_waits)
{
    on_pools(close_after_wait, NULL);
}

static void receive_byte(filch_frame *f, int fd, int peer)
{
    char byte;
    filch_op op = filch_op_recv(fd, &byte, 1, 0);

    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_send(f, peer, "a", 1, 0) == 1);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1);
}

/* The number of a descriptor goes to another file, by dup2, and back to the first file, which a
 * duplicate keeps open. So epoll has the first file under this number all the time. */
static void close_after_detour(filch_frame *f, void *arg TEST_UNUSED)
{
    int pair[2];

    open_pair(pair);
    /* relaxed: for this thread. */
    filch_store_relaxed(&watched_fd, (uint32_t)pair[0]);
    counter_set(&added, 0);
    counter_set(&removed, 0);
    receive_byte(f, pair[0], pair[1]);
    int second = dup(pair[0]);
    CHECK(second >= 0 && dup2(pair[1], pair[0]) == pair[0]);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(dup2(second, pair[0]) == pair[0]);
    receive_byte(f, pair[0], pair[1]);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, second) == 0);
    CHECK(counter_get(&removed) == counter_get(&added));
    CHECK(has_rings() || counter_get(&added) == 1);
    CHECK(filch_close(f, pair[1]) == 0);
    /* relaxed: as above. */
    filch_store_relaxed(&watched_fd, 0);
}

TEST(a_close_removes_a_descriptor_that_epoll_kept_under_its_number)
{
    on_pools(close_after_detour, NULL);
}

/* ---- descriptors that epoll refuses ---------------------------------------------------------- */

static int receive_one(filch_frame *f, void *arg)
{
    char byte;
    ssize_t got = filch_recv(f, (int)(intptr_t)arg, &byte, 1, 0);
    return got < 0 ? (int)got : 0;
}

/* Deadlines and cancellations end the operation, and so do the bytes that it waits for. */
static void wait_without_epoll(filch_frame *f, void *arg)
{
    int pair[2];
    char byte;
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    /* relaxed: for this thread. */
    filch_store_relaxed(&refused_fd, (uint32_t)pair[0]);
    filch_op receiving = filch_op_recv(pair[0], &byte, 1, 0),
             reading = filch_op_read(pair[0], &byte, 1);
    CHECK(filch_op_run(f, &receiving, filch_after_ms(2)) == -ETIMEDOUT);
    CHECK(filch_op_run(f, &reading, filch_after_ms(2)) == -ETIMEDOUT);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_one, (void *)(intptr_t)pair[0]) == 0);
    filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_one, (void *)(intptr_t)pair[0]) == 0);
    filch_yield(f);
    CHECK(filch_send(f, pair[1], "abc", 3, 0) == 3);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_op_run(f, &receiving, filch_after_ms(3600000)) == 1 && byte == 'b');
    CHECK(filch_op_run(f, &reading, filch_after_ms(3600000)) == 1 && byte == 'c');
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
    /* relaxed: as above. */
    filch_store_relaxed(&refused_fd, 0);
}

TEST(a_descriptor_that_epoll_refuses_is_retried)
{
    on_pools(wait_without_epoll, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_close_waits_for_what_is_being_tried),
        cmocka_unit_test(a_shutdown_that_is_not_possible_is_an_error),
        cmocka_unit_test(a_close_that_fails_has_closed_once),
        cmocka_unit_test(write_all_fails_if_nothing_gets_written),
        cmocka_unit_test(a_read_whose_event_was_used_up_waits_for_the_next),
        cmocka_unit_test(an_event_of_the_file_that_had_the_number_before_is_ignored),
        cmocka_unit_test(a_close_removes_a_descriptor_from_epoll_on_which_no_operation_waits),
        cmocka_unit_test(a_close_removes_a_descriptor_that_epoll_kept_under_its_number),
        cmocka_unit_test(a_descriptor_that_epoll_refuses_is_retried),
    };
    return cmocka_run_group_tests_name("io_close", tests, watchdog_start, watchdog_stop);
}
