/* SPDX-License-Identifier: MIT */
/*
 * Input and output of tasks. Run once for each way of doing it: FILCH_IO.
 */
#include "watchdog.h"

#include <filch/filch.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_pools(filch_fn *fn, void *arg)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, fn, arg), 0);
        watched_pool_destroy(pool);
    }
}

static void open_pair(int pair[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
}

/* ---- streams ----------------------------------------------------------------------------------- */

typedef struct end {
    int fd;
    size_t bytes;
} end;

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static int send_bytes(filch_slot *f, void *arg)
{
    const end *to = arg;
    unsigned char *buffer = malloc(to->bytes);

    CHECK(buffer);
    for (size_t i = 0; i < to->bytes; i++)
        buffer[i] = byte_at(i);
    CHECK(filch_send_all(f, to->fd, buffer, to->bytes, 0) == (ssize_t)to->bytes);
    free(buffer);
    return filch_shutdown(f, to->fd, SHUT_WR);
}

static int receive_bytes(filch_slot *f, void *arg)
{
    const end *from = arg;
    unsigned char buffer[1000];
    size_t done = 0;
    ssize_t got;

    while ((got = filch_recv(f, from->fd, buffer, sizeof buffer, 0)) > 0)
        for (ssize_t i = 0; i < got; i++, done++)
            CHECK(buffer[i] == byte_at(done));
    CHECK(got == 0 && done == from->bytes);
    return 0;
}

static void send_and_receive(filch_slot *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    /* More than the kernel takes at once, so that both have to wait. */
    end to = {pair[0], (size_t)3 << 20}, from = {pair[1], (size_t)3 << 20};
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, receive_bytes, &from) == 0);
    CHECK(filch_spawn(f, &scope, send_bytes, &to) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(all_bytes_of_a_stream_arrive_in_order)
{
    on_pools(send_and_receive, NULL);
}

static int write_pipe(filch_slot *f, void *arg)
{
    const end *to = arg;
    unsigned char *buffer = malloc(to->bytes);

    for (size_t i = 0; i < to->bytes; i++)
        buffer[i] = byte_at(i);
    CHECK(filch_write_all(f, to->fd, buffer, to->bytes) == (ssize_t)to->bytes);
    free(buffer);
    return filch_close(f, to->fd);
}

static void pass_through_pipe(filch_slot *f, void *arg)
{
    int ends[2];
    filch_scope scope;
    unsigned char *buffer = malloc((size_t)1 << 20);
    (void)arg;

    CHECK(pipe(ends) == 0 && buffer);
    end to = {ends[1], ((size_t)1 << 20) - 5};
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, write_pipe, &to) == 0);
    CHECK(filch_read_all(f, ends[0], buffer, (size_t)1 << 20) == (ssize_t)to.bytes);
    for (size_t i = 0; i < to.bytes; i++)
        CHECK(buffer[i] == byte_at(i));
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, ends[0]) == 0);
    free(buffer);
}

TEST(a_pipe_is_written_and_read)
{
    on_pools(pass_through_pipe, NULL);
}

/* ---- connections ------------------------------------------------------------------------------- */

#define CLIENTS 50
#define ROUNDS 20

static struct sockaddr_in address;

static int serve(filch_slot *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[64];
    ssize_t got;

    while ((got = filch_recv(f, fd, buffer, sizeof buffer, 0)) > 0)
        CHECK(filch_send_all(f, fd, buffer, (size_t)got, 0) == got);
    CHECK(got == 0);
    return filch_close(f, fd);
}

static int accept_all(filch_slot *f, void *arg)
{
    int listener = (int)(intptr_t)arg;
    filch_scope scope;

    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = filch_accept(f, listener, (struct sockaddr *)&peer, &length, 0);
        CHECK(fd >= 0 && peer.sin_family == AF_INET);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK(filch_spawn(f, &scope, serve, (void *)(intptr_t)fd) == 0);
    }
    return filch_scope_close(f, &scope);
}

static int ask(filch_slot *f, void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)arg;

    CHECK(filch_connect(f, fd, (struct sockaddr *)&address, sizeof address) == 0);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t question = i * 1000003 + (uint64_t)fd, answer = 0;
        CHECK(filch_send_all(f, fd, &question, sizeof question, 0) == sizeof question);
        CHECK(filch_recv(f, fd, &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
        CHECK(answer == question);
    }
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    return filch_close(f, fd);
}

static int listen_here(void)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof address;

    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, CLIENTS) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    return listener;
}

static void connect_all(filch_slot *f, void *arg)
{
    int listener = listen_here();
    filch_scope scope;
    (void)arg;

    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, accept_all, (void *)(intptr_t)listener) == 0);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(filch_spawn(f, &scope, ask, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, listener) == 0);
}

TEST(a_server_and_its_clients_in_one_pool)
{
    on_pools(connect_all, NULL);
}

static void connect_to_nobody(filch_slot *f, void *arg)
{
    int listener = listen_here();
    (void)arg;
    close(listener);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(filch_connect(f, fd, (struct sockaddr *)&address, sizeof address) == -ECONNREFUSED);
    CHECK(filch_close(f, fd) == 0);
}

/* A queue of one that is full: the next connection is neither made nor refused. */
static void connect_too_late(filch_slot *f, void *arg)
{
    int listener = listen_here(), fds[4];
    (void)arg;

    CHECK(listen(listener, 0) == 0);
    int outcome = 0;
    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        filch_op op = filch_op_connect(fds[i], (struct sockaddr *)&address, sizeof address);
        outcome = (int)filch_op_run(f, &op, filch_after_ms(50));
        CHECK(outcome == 0 || outcome == -ETIMEDOUT);
        CHECK(!(fcntl(fds[i], F_GETFL) & O_NONBLOCK));
    }
    CHECK(outcome == -ETIMEDOUT);
    for (int i = 0; i < 4; i++)
        CHECK(filch_close(f, fds[i]) == 0);
    CHECK(filch_close(f, listener) == 0);
}

TEST(a_connect_has_a_deadline_and_leaves_the_socket_as_it_was)
{
    on_pools(connect_too_late, NULL);
}

TEST(nobody_listens)
{
    on_pools(connect_to_nobody, NULL);
    connect_to_nobody(NULL, NULL);
}

/* ---- files ------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/filch_io_XXXXXX";

static void use_files(filch_slot *f, void *arg)
{
    char path[64], other[64], buffer[100] = "";
    struct statx info;
    (void)arg;

    snprintf(path, sizeof path, "%s/one", directory);
    snprintf(other, sizeof other, "%s/two", directory);
    int fd = filch_open(f, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK(filch_open(f, path, O_RDWR | O_CREAT | O_EXCL, 0600) == -EEXIST);
    CHECK(filch_pwrite(f, fd, "hello, file", 11, 0) == 11);
    CHECK(filch_write(f, fd, "HELLO", 5) == 5);
    CHECK(filch_pread(f, fd, buffer, sizeof buffer, 7) == 4);
    CHECK(memcmp(buffer, "file", 4) == 0);
    CHECK(filch_read(f, fd, buffer, 2) == 2 && memcmp(buffer, ", ", 2) == 0);
    struct iovec parts[2] = {{buffer, 1}, {buffer + 10, 3}};
    CHECK(filch_readv(f, fd, parts, 2) == 4 && buffer[0] == 'f' && memcmp(buffer + 10, "ile", 3) == 0);
    struct iovec more[2] = {{(void *)"ab", 2}, {(void *)"c", 1}};
    CHECK(filch_writev(f, fd, more, 2) == 3);
    CHECK(filch_pread(f, fd, buffer, sizeof buffer, 0) == 14 && memcmp(buffer, "HELLO, fileabc", 14) == 0);
    CHECK(filch_fsync(f, fd, false) == 0 && filch_fsync(f, fd, true) == 0);
    CHECK(filch_statx(f, fd, "", AT_EMPTY_PATH, STATX_SIZE, &info) == 0 && info.stx_size == 14);
    CHECK(filch_close(f, fd) == 0);
    CHECK(filch_pread(f, fd, buffer, 1, 0) == -EBADF);
    CHECK(filch_statx(f, AT_FDCWD, path, 0, STATX_SIZE, &info) == 0 && info.stx_size == 14);
    CHECK(filch_rename(f, path, other) == 0);
    CHECK(filch_statx(f, AT_FDCWD, path, 0, STATX_SIZE, &info) == -ENOENT);
    CHECK(filch_open(f, path, O_RDONLY, 0) == -ENOENT);
    fd = filch_open(f, other, O_RDONLY, 0);
    CHECK(fd >= 0 && filch_read_all(f, fd, buffer, sizeof buffer) == 14);
    CHECK(filch_close(f, fd) == 0);
    CHECK(filch_unlink(f, other) == 0 && filch_unlink(f, other) == -ENOENT);
}

TEST(files_are_made_written_read_renamed_and_removed)
{
    on_pools(use_files, NULL);
    use_files(NULL, NULL);
}

static void send_files(filch_slot *f, void *arg)
{
    char path[64], buffer[100];
    int pair[2], ends[2];
    (void)arg;

    snprintf(path, sizeof path, "%s/file", directory);
    int fd = filch_open(f, path, O_RDWR | O_CREAT, 0600);
    CHECK(filch_pwrite(f, fd, "0123456789", 10, 0) == 10);
    CHECK(pipe(ends) == 0);
    open_pair(pair);
    CHECK(filch_sendfile(f, ends[1], fd, 2, 5) == 5 && filch_read(f, ends[0], buffer, sizeof buffer) == 5);
    CHECK(memcmp(buffer, "23456", 5) == 0);
    CHECK(filch_sendfile(f, pair[0], fd, 8, 5) == 2 && filch_recv(f, pair[1], buffer, sizeof buffer, 0) == 2);
    CHECK(memcmp(buffer, "89", 2) == 0);
    CHECK(filch_close(f, pair[1]) == 0);
    CHECK(filch_sendfile(f, pair[0], fd, 0, 10) == -EPIPE); /* and no SIGPIPE */
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, ends[0]) == 0 && filch_close(f, ends[1]) == 0);
    CHECK(filch_close(f, fd) == 0 && filch_unlink(f, path) == 0);
}

TEST(a_file_is_sent_to_a_socket_or_a_pipe)
{
    on_pools(send_files, NULL);
    send_files(NULL, NULL);
}

static void open_pipes(filch_slot *f, void *arg)
{
    char path[64];
    (void)arg;

    snprintf(path, sizeof path, "%s/pipe", directory);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(filch_open(f, path, O_WRONLY | O_NONBLOCK, 0) == -ENXIO);
    CHECK(filch_open(f, path, O_RDONLY | O_DIRECTORY, 0) == -ENOTDIR);
    CHECK(filch_close(f, filch_open(f, path, O_PATH, 0)) == 0);
    CHECK(filch_close(f, filch_open(f, path, O_RDONLY | O_NONBLOCK, 0)) == 0);
    CHECK(filch_unlink(f, path) == 0);
}

TEST(an_open_that_says_so_does_not_wait)
{
    on_pools(open_pipes, NULL);
    open_pipes(NULL, NULL);
}

static void use_directories(filch_slot *f, void *arg)
{
    char path[64];
    filch_dir dir;
    filch_dirent entry;
    unsigned count = 0, seen = 0;
    (void)arg;

    snprintf(path, sizeof path, "%s/dir", directory);
    CHECK(filch_mkdir(f, path, 0700) == 0 && filch_mkdir(f, path, 0700) == -EEXIST);
    int at = filch_open(f, path, O_RDONLY | O_DIRECTORY, 0);
    CHECK(at >= 0);
    for (int i = 0; i < 1000; i++) {
        char name[20];
        snprintf(name, sizeof name, "file%d", i);
        CHECK(filch_close(f, filch_openat(f, at, name, O_WRONLY | O_CREAT, 0600)) == 0);
    }
    CHECK(filch_dir_open(f, &dir, FILCH_CWD, path) == 0);
    int more;
    while ((more = filch_dir_next(f, &dir, &entry)) == 1) {
        int number = atoi(entry.name + 4);
        CHECK(strncmp(entry.name, "file", 4) == 0 && (entry.type == DT_REG || entry.type == DT_UNKNOWN));
        count++;
        seen += (unsigned)number;
        CHECK(filch_unlinkat(f, at, entry.name, 0) == 0);
    }
    CHECK(more == 0 && count == 1000 && seen == 499500);
    filch_dir_close(f, &dir);
    CHECK(filch_close(f, at) == 0);
    CHECK(filch_unlinkat(f, FILCH_CWD, path, AT_REMOVEDIR) == 0);
    CHECK(filch_dir_open(f, &dir, FILCH_CWD, path) == -ENOENT);
}

TEST(a_directory_has_the_entries_that_were_made)
{
    on_pools(use_directories, NULL);
}

/* ---- several at once, deadlines, cancellation ------------------------------------------------------- */

static void start_several(filch_slot *f, void *arg)
{
    enum { PAIRS = 100 };
    int pairs[PAIRS][2];
    char bytes[PAIRS];
    filch_op ops[PAIRS];
    (void)arg;

    for (int i = 0; i < PAIRS; i++) {
        open_pair(pairs[i]);
        ops[i] = filch_op_recv(pairs[i][0], &bytes[i], 1, 0);
        CHECK(filch_op_start(f, &ops[i]) == 0);
        CHECK(filch_op_start(f, &ops[i]) == -EINVAL);
    }
    for (int i = PAIRS; i-- > 0;) {
        char c = (char)i;
        CHECK(filch_send(f, pairs[i][1], &c, 1, 0) == 1);
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == 1 && bytes[i] == (char)i);
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == -EINVAL);
        CHECK(filch_close(f, pairs[i][0]) == 0 && filch_close(f, pairs[i][1]) == 0);
    }
}

TEST(several_operations_fly_at_once)
{
    on_pools(start_several, NULL);
}

static void miss_deadline(filch_slot *f, void *arg)
{
    int pair[2];
    char c = 'x';
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &c, 1, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_op_run(f, &op, filch_now_ns()) == -ETIMEDOUT);
    CHECK(send(pair[1], "a", 1, 0) == 1);
    CHECK(filch_op_run(f, &op, filch_after_ms(60000)) == 1 && c == 'a');
    op = filch_op_poll(pair[0], POLLIN);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(send(pair[1], "b", 1, 0) == 1);
    CHECK(filch_poll(f, pair[0], POLLIN) == POLLIN);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_deadline_ends_an_operation_and_nothing_is_lost)
{
    on_pools(miss_deadline, NULL);
    miss_deadline(NULL, NULL);
}

static int receive_for_ever(filch_slot *f, void *arg)
{
    char c;
    return (int)filch_recv(f, (int)(intptr_t)arg, &c, 1, 0);
}

static void cancel_receivers(filch_slot *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(filch_spawn(f, &scope, receive_for_ever, (void *)(intptr_t)pair[0]) == 0);
    filch_sleep_ns(f, 1000000);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_scope_that_is_cancelled_takes_its_operations_back)
{
    on_pools(cancel_receivers, NULL);
}

static void close_under_receivers(filch_slot *f, void *arg)
{
    enum { COUNT = 20 };
    int pair[2];
    char bytes[COUNT];
    filch_op ops[COUNT];
    (void)arg;

    open_pair(pair);
    for (int i = 0; i < COUNT; i++) {
        ops[i] = filch_op_recv(pair[0], &bytes[i], 1, 0);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
    CHECK(filch_close(f, pair[0]) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_close(f, pair[1]) == 0);
}

TEST(a_close_takes_back_what_is_in_flight)
{
    on_pools(close_under_receivers, NULL);
}

static void cancel_one(filch_slot *f, void *arg)
{
    int pair[2];
    char c;
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &c, 1, 0);
    CHECK(filch_op_start(f, &op) == 0 && !filch_op_is_done(&op));
    filch_op_cancel(f, &op);
    CHECK(filch_op_is_done(&op));
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(one_operation_is_taken_back)
{
    on_pools(cancel_one, NULL);
}

/* ---- descriptors of all sorts --------------------------------------------------------------------- */

static int send_later(filch_slot *f, void *arg)
{
    filch_sleep_ns(f, 1000000);
    return filch_send(f, (int)(intptr_t)arg, "z", 1, 0) == 1 ? 0 : -EIO;
}

static void use_nonblocking(filch_slot *f, void *arg)
{
    int pair[2];
    char c;
    filch_scope scope;
    (void)arg;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(filch_recv(f, pair[0], &c, 1, MSG_DONTWAIT) == -EAGAIN);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    CHECK(filch_spawn(f, &scope, send_later, (void *)(intptr_t)pair[1]) == 0);
    CHECK(filch_read(f, pair[0], &c, 1) == 1 && c == 'z');
    CHECK(filch_scope_close(f, &scope) == 0);
    filch_op op = filch_op_recv(pair[0], &c, 1, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_descriptor_that_is_non_blocking_is_waited_for)
{
    on_pools(use_nonblocking, NULL);
}

static void use_bad(filch_slot *f, void *arg)
{
    int ends[2];
    char c;
    (void)arg;

    CHECK(filch_read(f, -1, &c, 1) == -EBADF && filch_recv(f, 999999, &c, 1, 0) == -EBADF);
    CHECK(filch_close(f, -1) == -EBADF && filch_accept(f, -1, NULL, NULL, 0) == -EBADF);
    CHECK(pipe(ends) == 0);
    CHECK(filch_recv(f, ends[0], &c, 1, 0) == -ENOTSOCK);
    CHECK(filch_close(f, ends[0]) == 0);
    signal(SIGPIPE, SIG_IGN);
    CHECK(filch_write(f, ends[1], "x", 1) == -EPIPE);
    CHECK(filch_close(f, ends[1]) == 0);
    open_pair(ends);
    CHECK(filch_close(f, ends[0]) == 0);
    CHECK(filch_send(f, ends[1], "x", 1, 0) == -EPIPE);
    CHECK(filch_close(f, ends[1]) == 0);
    filch_op none = {0};
    CHECK(filch_op_run(f, &none, FILCH_NO_DEADLINE) == -EINVAL);
    CHECK(filch_op_start(f, NULL) == -EINVAL && filch_op_wait(f, NULL, 0) == -EINVAL);
}

TEST(what_is_wrong_is_an_error)
{
    on_pools(use_bad, NULL);
    use_bad(NULL, NULL);
}

static void resolve(filch_slot *f, void *arg)
{
    struct addrinfo *list = NULL, hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST};
    (void)arg;

    CHECK(filch_getaddrinfo(f, "127.0.0.1", NULL, &hints, &list) == 0);
    CHECK(((struct sockaddr_in *)list->ai_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    freeaddrinfo(list);
    CHECK(filch_getaddrinfo(f, "no address", NULL, &hints, &list) == EAI_NONAME);
}

TEST(names_are_resolved)
{
    on_pools(resolve, NULL);
    resolve(NULL, NULL);
}

TEST(a_pool_says_how_it_does_it)
{
    filch_pool *pool = watched_pool_of(1);
    const char *wish = getenv("FILCH_IO"), *way = filch_pool_io(pool);

    assert_non_null(way);
    if (wish && strncmp(wish, "uring", 5) != 0)
        assert_string_equal(way, wish);
    assert_null(filch_pool_io(NULL));
    watched_pool_destroy(pool);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_of_a_stream_arrive_in_order),
        cmocka_unit_test(a_pipe_is_written_and_read),
        cmocka_unit_test(a_server_and_its_clients_in_one_pool),
        cmocka_unit_test(a_connect_has_a_deadline_and_leaves_the_socket_as_it_was),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(files_are_made_written_read_renamed_and_removed),
        cmocka_unit_test(a_file_is_sent_to_a_socket_or_a_pipe),
        cmocka_unit_test(an_open_that_says_so_does_not_wait),
        cmocka_unit_test(a_directory_has_the_entries_that_were_made),
        cmocka_unit_test(several_operations_fly_at_once),
        cmocka_unit_test(a_deadline_ends_an_operation_and_nothing_is_lost),
        cmocka_unit_test(a_scope_that_is_cancelled_takes_its_operations_back),
        cmocka_unit_test(a_close_takes_back_what_is_in_flight),
        cmocka_unit_test(one_operation_is_taken_back),
        cmocka_unit_test(a_descriptor_that_is_non_blocking_is_waited_for),
        cmocka_unit_test(what_is_wrong_is_an_error),
        cmocka_unit_test(names_are_resolved),
        cmocka_unit_test(a_pool_says_how_it_does_it),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
