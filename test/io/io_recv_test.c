/* SPDX-License-Identifier: MIT */
/*
 * Receiving: MSG_WAITALL, messages, urgent bytes. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>
#include <filch/trace.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>

static int send_rest(filch_frame *f, void *arg)
{
    const int *fd = arg;
    CHECK(filch_send_all(f, *fd, "efgh", 4, 0) == 4);
    return 0;
}

static void receive_all(filch_frame *f, void *arg)
{
    int pair[2];
    char bytes[8];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
    for (int i = 0; i < 2; i++) {
        CHECK(send(pair[1], "abcd", 4, 0) == 4);
        CHECK(filch_op_start(f, &op) == 0 && !filch_op_is_done(&op));
        CHECK(filch_scope_spawn(f, &scope, send_rest, &pair[1]) == 0);
        CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 8 && memcmp(bytes, "abcdefgh", 8) == 0);
    }
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

/* Bytes that came before the deadline or the cancellation are not lost. */
static void receive_some(filch_frame *f, void *arg)
{
    int pair[2];
    char bytes[8];
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(send(pair[1], "abc", 3, 0) == 3);
    ssize_t got;
    /* On a loaded machine the deadline may pass before the operation starts. */
    while ((got = filch_op_run(f, &op, filch_after_ms(2))) == -ETIMEDOUT)
        ;
    CHECK(got == 3 && memcmp(bytes, "abc", 3) == 0);
    if (f) {
        CHECK(send(pair[1], "de", 2, 0) == 2);
        CHECK(filch_op_start(f, &op) == 0);
        filch_op_cancel(f, &op);
        CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 2 && memcmp(bytes, "de", 2) == 0);
    }
    /* The end comes with the last bytes. */
    CHECK(send(pair[1], "fgh", 3, 0) == 3 && shutdown(pair[1], SHUT_WR) == 0);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 3 && memcmp(bytes, "fgh", 3) == 0);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_recv_waits_for_all_bytes_if_told_to)
{
    on_pools(receive_all, NULL);
    on_pools(receive_some, NULL);
    receive_some(NULL, NULL);
}

/* More parts than are received at once, some of them empty. */
static void receive_parts(filch_frame *f, void *arg)
{
    enum { PARTS = 40 };
    int pair[2];
    char bytes[PARTS * 3], expected[PARTS * 3];
    struct iovec parts[PARTS];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = PARTS};
    size_t all = 0;
    (void)arg;

    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct iovec){bytes + all, (size_t)(i % 4)};
        all += parts[i].iov_len;
    }
    for (size_t i = 0; i < all; i++)
        expected[i] = (char)i;
    open_pair(pair);
    filch_op op = filch_op_recvmsg(pair[0], &message, MSG_WAITALL);
    if (f)
        CHECK(filch_op_start(f, &op) == 0);
    CHECK(send(pair[1], expected, 1, 0) == 1);
    for (size_t i = 1; i < all; i++) {
        if (f)
            filch_yield(f);
        CHECK(send(pair[1], expected + i, 1, 0) == 1);
    }
    ssize_t got = f ? filch_op_wait(f, &op, FILCH_NO_DEADLINE)
                    : filch_op_run(f, &op, filch_after_ms(3600000));
    CHECK(got == (ssize_t)all && memcmp(bytes, expected, all) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_message_in_parts_is_received_as_a_whole)
{
    on_pools(receive_parts, NULL);
    receive_parts(NULL, NULL);
}

/* MSG_WAITALL does not wait for a second message. */
static void receive_datagram(filch_frame *f, void *arg)
{
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    int pair[2];
    char bytes[8];
    (void)arg;

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CHECK(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK(send(pair[1], "abc", 3, 0) == 3 && send(pair[1], "de", 2, 0) == 2);
        filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
        CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 3);
        CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 2);
        CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
    }
}

TEST(a_datagram_is_all_there_is)
{
    on_pools(receive_datagram, NULL);
    receive_datagram(NULL, NULL);
}

/* A descriptor that comes with some bytes ends the message there. */
static void receive_descriptor(filch_frame *f, void *arg)
{
    int pair[2], passed = 0;
    char bytes[8] = "xabc";
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof passed)];
    } beside = {.head = {CMSG_LEN(sizeof passed), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {bytes, 4};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
    (void)arg;

    open_pair(pair);
    memcpy(CMSG_DATA(&beside.head), &passed, sizeof passed);
    CHECK(send(pair[1], "01", 2, 0) == 2);
    CHECK(sendmsg(pair[1], &message, 0) == 4);
    CHECK(send(pair[1], "23", 2, 0) == 2);
    part.iov_len = sizeof bytes;
    filch_op op = filch_op_recvmsg(pair[0], &message, MSG_WAITALL);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 6 && memcmp(bytes, "01xabc", 6) == 0);
    memcpy(&passed, CMSG_DATA(&beside.head), sizeof passed);
    CHECK(message.msg_controllen > 0 && beside.head.cmsg_type == SCM_RIGHTS && close(passed) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

/* A descriptor comes with the bytes before a duplicate of the socket is closed. */
static void receive_descriptor_beside_close(filch_frame *f, void *arg)
{
    int pair[2], passed = 0, left = 4;
    char bytes[8] = "abcd";
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof passed)];
    } beside = {.head = {CMSG_LEN(sizeof passed), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {bytes, 4};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
    (void)arg;

    open_pair(pair);
    memcpy(CMSG_DATA(&beside.head), &passed, sizeof passed);
    /* Buffers of its own: it may write to them while the other side sends. */
    char received[8];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof passed)];
    } with = {.head = {.cmsg_len = 0}};
    struct iovec room = {received, sizeof received};
    struct msghdr receiving = {
        .msg_iov = &room, .msg_iovlen = 1, .msg_control = &with, .msg_controllen = sizeof with};
    filch_op op = filch_op_recvmsg(pair[0], &receiving, MSG_WAITALL);
    int second = dup(pair[0]);
    filch_op polling = filch_op_poll(second, POLLPRI);
    CHECK(second >= 0 && filch_op_start(f, &op) == 0 && filch_op_start(f, &polling) == 0);
    CHECK(sendmsg(pair[1], &message, 0) == 4);
    while (left > 0)
        CHECK(filch_sleep_ns(f, 100000) == 0 && ioctl(pair[0], FIONREAD, &left) == 0);
    CHECK(filch_close(f, second) == 0);
    CHECK(filch_op_wait(f, &polling, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 4 && receiving.msg_controllen > 0);
    memcpy(&passed, CMSG_DATA(&with.head), sizeof passed);
    CHECK(with.head.cmsg_type == SCM_RIGHTS && passed > 0 && close(passed) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_descriptor_is_not_lost_though_a_duplicate_is_closed)
{
    on_pools(receive_descriptor_beside_close, NULL);
}

TEST(a_descriptor_ends_a_message)
{
    receive_descriptor(NULL, NULL);
    on_pools(receive_descriptor, NULL);
}

/* The operation has half of its bytes. Then a duplicate of its descriptor is closed, with a poll in
 * flight. That must not end the operation. */
static void receive_beside_close(filch_frame *f, filch_op *op, const int pair[2])
{
    int second = dup(pair[0]), left = 4;
    filch_op polling = filch_op_poll(second, POLLPRI);

    CHECK(second >= 0 && filch_op_start(f, op) == 0 && filch_op_start(f, &polling) == 0);
    CHECK(send(pair[1], "abcd", 4, 0) == 4);
    while (left > 0)
        CHECK(filch_sleep_ns(f, 100000) == 0 && ioctl(pair[0], FIONREAD, &left) == 0);
    CHECK(filch_close(f, second) == 0);
    CHECK(filch_op_wait(f, &polling, FILCH_NO_DEADLINE) == -ECANCELED);
}

static void receive_all_beside_close(filch_frame *f, void *arg)
{
    int pair[2];
    char bytes[8];
    struct iovec parts[] = {{bytes, 3}, {bytes + 3, 3}, {NULL, 0}, {bytes + 6, 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = COUNT_OF(parts)};
    filch_op ops[2];
    (void)arg;

    open_pair(pair);
    ops[0] = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
    ops[1] = filch_op_recvmsg(pair[0], &message, MSG_WAITALL);
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        receive_beside_close(f, &ops[i], pair);
        CHECK(send(pair[1], "efgh", 4, 0) == 4);
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == 8 &&
              memcmp(bytes, "abcdefgh", 8) == 0);
        /* When the operation is cancelled, and at the end of the stream, its result is the bytes so
         * far. */
        receive_beside_close(f, &ops[i], pair);
        CHECK(filch_op_wait(f, &ops[i], filch_after_ms(1)) == 4);
    }
    receive_beside_close(f, &ops[0], pair);
    CHECK(shutdown(pair[1], SHUT_WR) == 0);
    CHECK(filch_op_wait(f, &ops[0], FILCH_NO_DEADLINE) == 4);
    CHECK(filch_op_run(f, &ops[1], FILCH_NO_DEADLINE) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_recv_waits_for_all_bytes_though_a_duplicate_is_closed)
{
    on_pools(receive_all_beside_close, NULL);
}

/* Urgent bytes are there or not: the kernel does not wait for them. recv(2) tells the expected
 * result. */
static void receive_urgent(filch_frame *f, void *arg)
{
    int pair[2];
    char byte;
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &byte, 1, MSG_OOB);
    ssize_t expected = recv(pair[0], &byte, 1, MSG_OOB | MSG_DONTWAIT) < 0 ? -errno : 0;
    for (int i = 0; i < 2; i++) {
        CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == expected);
        filch_op first = filch_op_recv(pair[0], &byte, 1, 0);
        CHECK(filch_op_start(f, &first) == 0 && send(pair[1], "x", 1, 0) == 1);
        CHECK(filch_op_wait(f, &first, FILCH_NO_DEADLINE) == 1);
    }
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(urgent_bytes_are_not_waited_for)
{
    on_pools(receive_urgent, NULL);
}

static void open_tcp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *at = (struct sockaddr *)&address;
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(listener >= 0 && bind(listener, at, length) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, at, &length) == 0);
    pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(pair[1] >= 0 && connect(pair[1], at, length) == 0);
    pair[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(pair[0] >= 0 && close(listener) == 0);
}

/* While the error queue of a socket has an entry, each poll returns at once. */
static void receive_beside_an_error(filch_frame *f, void *arg)
{
    const int on = 1;
    int pair[2];
    char bytes[8];
    (void)arg;

    open_tcp_pair(pair);
    if (setsockopt(pair[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0 &&
        send(pair[0], "x", 1, MSG_ZEROCOPY) == 1) {
        struct pollfd polled = {.fd = pair[0]};
        CHECK(poll(&polled, 1, -1) == 1 && polled.revents == POLLERR);
    }
    CHECK(send(pair[1], "abcd", 4, 0) == 4);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_sleep_until(f, filch_after_ms(100)) == 0);
    CHECK(send(pair[1], "efgh", 4, 0) == 4);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 8 && memcmp(bytes, "abcdefgh", 8) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

/* Without pauses the operation would wait some thousand times. */
TEST(a_recv_does_not_spin_while_the_error_queue_has_an_entry)
{
    filch_pool *pool = watched_pool_of(2);
    filch_counters counters = {.size = sizeof counters};

    assert_int_equal(filch_run(pool, receive_beside_an_error, NULL), 0);
    assert_int_equal(filch_pool_counters(pool, &counters), 0);
    assert_true(counters.suspensions < 1000);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recv_waits_for_all_bytes_if_told_to),
        cmocka_unit_test(a_message_in_parts_is_received_as_a_whole),
        cmocka_unit_test(a_datagram_is_all_there_is),
        cmocka_unit_test(a_descriptor_is_not_lost_though_a_duplicate_is_closed),
        cmocka_unit_test(a_descriptor_ends_a_message),
        cmocka_unit_test(a_recv_waits_for_all_bytes_though_a_duplicate_is_closed),
        cmocka_unit_test(urgent_bytes_are_not_waited_for),
        cmocka_unit_test(a_recv_does_not_spin_while_the_error_queue_has_an_entry),
    };
    return cmocka_run_group_tests_name("io_recv", tests, watchdog_start, watchdog_stop);
}
