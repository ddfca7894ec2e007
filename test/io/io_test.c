/* SPDX-License-Identifier: MIT */
/*
 * Streams, connections and operations of tasks. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct end {
    int fd;
    size_t bytes;
} end;

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static int send_bytes(filch_frame *f, void *arg)
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

static int receive_bytes(filch_frame *f, void *arg)
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

static void send_and_receive(filch_frame *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    /* More than the kernel takes at once, so that both tasks have to wait. */
    end to = {pair[0], (size_t)3 << 20}, from = {pair[1], (size_t)3 << 20};
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_bytes, &from) == 0);
    CHECK(filch_scope_spawn(f, &scope, send_bytes, &to) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(all_bytes_of_a_stream_arrive_in_order)
{
    on_pools(send_and_receive, NULL);
}

static int write_pipe(filch_frame *f, void *arg)
{
    const end *to = arg;
    unsigned char *buffer = malloc(to->bytes);

    for (size_t i = 0; i < to->bytes; i++)
        buffer[i] = byte_at(i);
    CHECK(filch_write_all(f, to->fd, buffer, to->bytes) == (ssize_t)to->bytes);
    free(buffer);
    return filch_close(f, to->fd);
}

static void pass_through_pipe(filch_frame *f, void *arg)
{
    int ends[2];
    filch_scope scope;
    unsigned char *buffer = malloc((size_t)1 << 20);
    (void)arg;

    CHECK(pipe(ends) == 0 && buffer);
    end to = {ends[1], ((size_t)1 << 20) - 5};
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, write_pipe, &to) == 0);
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

/* ---- connections ----------------------------------------------------------------------------- */

#define CLIENTS 50
#define ROUNDS 20

static struct sockaddr_in address;

static int serve(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[64];
    ssize_t got;

    while ((got = filch_recv(f, fd, buffer, sizeof buffer, 0)) > 0)
        CHECK(filch_send_all(f, fd, buffer, (size_t)got, 0) == got);
    CHECK(got == 0);
    return filch_close(f, fd);
}

static int accept_all(filch_frame *f, void *arg)
{
    int listener = (int)(intptr_t)arg;
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = filch_accept(f, listener, (struct sockaddr *)&peer, &length, 0);
        CHECK(fd >= 0 && peer.sin_family == AF_INET);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK(filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd) == 0);
    }
    return filch_scope_close(f, &scope);
}

static int ask(filch_frame *f, void *arg)
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

    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, CLIENTS) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    return listener;
}

static void connect_all(filch_frame *f, void *arg)
{
    int listener = listen_here();
    filch_scope scope;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, accept_all, (void *)(intptr_t)listener) == 0);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(filch_scope_spawn(f, &scope, ask, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, listener) == 0);
}

TEST(a_server_and_its_clients_in_one_pool)
{
    on_pools(connect_all, NULL);
}

static void connect_to_nobody(filch_frame *f, void *arg)
{
    int listener = listen_here();
    (void)arg;
    close(listener);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(filch_connect(f, fd, (struct sockaddr *)&address, sizeof address) == -ECONNREFUSED);
    CHECK(filch_close(f, fd) == 0);
}

/* The queue has room for one connection, and is full: the next one is neither made nor refused. */
static void connect_too_late(filch_frame *f, void *arg)
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
    connect_too_late(NULL, NULL);
}

TEST(a_connect_to_nobody_is_refused)
{
    on_pools(connect_to_nobody, NULL);
    connect_to_nobody(NULL, NULL);
}

/* ---- several at once, deadlines, cancellation ------------------------------------------------ */

static void start_several(filch_frame *f, void *arg)
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

TEST(several_operations_are_in_flight_at_once)
{
    on_pools(start_several, NULL);
}

static void miss_deadline(filch_frame *f, void *arg)
{
    int pair[2];
    char c = 'x';
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &c, 1, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_op_run(f, &op, filch_now_ns()) == -ETIMEDOUT);
    CHECK(send(pair[1], "a", 1, 0) == 1);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 1 && c == 'a');
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

static int receive_for_ever(filch_frame *f, void *arg)
{
    char c;
    return (int)filch_recv(f, (int)(intptr_t)arg, &c, 1, 0);
}

static void cancel_receivers(filch_frame *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(filch_scope_spawn(f, &scope, receive_for_ever, (void *)(intptr_t)pair[0]) == 0);
    filch_sleep_ns(f, 1000000);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_cancelled_scope_cancels_its_operations)
{
    on_pools(cancel_receivers, NULL);
}

static void close_under_receivers(filch_frame *f, void *arg)
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

TEST(a_close_cancels_what_is_in_flight)
{
    on_pools(close_under_receivers, NULL);
}

static void cancel_one(filch_frame *f, void *arg)
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

TEST(one_operation_is_cancelled)
{
    on_pools(cancel_one, NULL);
}

/* ---- descriptors of all kinds ---------------------------------------------------------------- */

static int send_later(filch_frame *f, void *arg)
{
    filch_sleep_ns(f, 1000000);
    return filch_send(f, (int)(intptr_t)arg, "z", 1, 0) == 1 ? 0 : -EIO;
}

static void use_nonblocking(filch_frame *f, void *arg)
{
    int pair[2];
    char c;
    filch_scope scope;
    (void)arg;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(filch_recv(f, pair[0], &c, 1, MSG_DONTWAIT) == -EAGAIN);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, send_later, (void *)(intptr_t)pair[1]) == 0);
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

static void use_bad(filch_frame *f, void *arg)
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

TEST(a_wrong_argument_is_an_error)
{
    on_pools(use_bad, NULL);
    use_bad(NULL, NULL);
}

static void resolve(filch_frame *f, void *arg)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_of_a_stream_arrive_in_order),
        cmocka_unit_test(a_pipe_is_written_and_read),
        cmocka_unit_test(a_server_and_its_clients_in_one_pool),
        cmocka_unit_test(a_connect_has_a_deadline_and_leaves_the_socket_as_it_was),
        cmocka_unit_test(a_connect_to_nobody_is_refused),
        cmocka_unit_test(several_operations_are_in_flight_at_once),
        cmocka_unit_test(a_deadline_ends_an_operation_and_nothing_is_lost),
        cmocka_unit_test(a_cancelled_scope_cancels_its_operations),
        cmocka_unit_test(a_close_cancels_what_is_in_flight),
        cmocka_unit_test(one_operation_is_cancelled),
        cmocka_unit_test(a_descriptor_that_is_non_blocking_is_waited_for),
        cmocka_unit_test(a_wrong_argument_is_an_error),
        cmocka_unit_test(names_are_resolved),
        cmocka_unit_test(a_pool_says_how_it_does_it),
    };
    return cmocka_run_group_tests_name("io", tests, watchdog_start, watchdog_stop);
}
