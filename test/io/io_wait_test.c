/* SPDX-License-Identifier: MIT */
/*
 * How operations wait, and what ends that. Run once for each way of doing it: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <termios.h>

static bool has_rings(void)
{
    const char *way = getenv("FILCH_IO");
    return !way || strncmp(way, "uring", 5) == 0;
}

/* ---- hang-ups ---------------------------------------------------------------------------------- */

static int poll_for_ever(filch_frame *f, void *arg)
{
    return filch_poll(f, (int)(intptr_t)arg, 0);
}

static void await_hang_up(filch_frame *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_poll(pair[0], 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    if (f) {
        /* More than there are threads for calls that block. */
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        for (int i = 0; i < 50; i++)
            CHECK(filch_scope_spawn(f, &scope, poll_for_ever, (void *)(intptr_t)pair[0]) == 0);
        filch_yield(f);
        filch_scope_cancel(&scope);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED);
        CHECK(filch_op_start(f, &op) == 0 && !filch_op_is_done(&op));
        close(pair[1]);
        CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) & POLLHUP);
    } else {
        close(pair[1]);
        CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) & POLLHUP);
    }
    CHECK(filch_close(f, pair[0]) == 0);
}

TEST(a_poll_for_no_event_waits_for_a_hang_up)
{
    on_pools(await_hang_up, NULL);
    await_hang_up(NULL, NULL);
}

/* ---- connections on this machine ------------------------------------------------------------------- */

typedef struct meeting {
    struct sockaddr_un address;
    socklen_t length;
    int listener, first; /* and the one connection that its queue has room for */
} meeting;

static int socket_here(int flags)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    CHECK(fd >= 0);
    return fd;
}

static void meet(meeting *m)
{
    m->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    m->listener = socket_here(0);
    m->first = socket_here(0);
    /* The kernel finds a name for it. */
    CHECK(bind(m->listener, (struct sockaddr *)&m->address, sizeof m->address.sun_family) == 0);
    CHECK(listen(m->listener, 0) == 0);
    m->length = sizeof m->address;
    CHECK(getsockname(m->listener, (struct sockaddr *)&m->address, &m->length) == 0);
    CHECK(connect(m->first, (struct sockaddr *)&m->address, m->length) == 0);
}

static filch_op connect_to(const meeting *m, int fd)
{
    return filch_op_connect(fd, (const struct sockaddr *)&m->address, m->length);
}

static int connect_patiently(filch_frame *f, void *arg)
{
    meeting *m = arg;
    int fd = socket_here(0);
    filch_op op = connect_to(m, fd);
    int result = (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);

    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK(filch_close(f, fd) == 0);
    return result;
}

static void connect_to_full_queue(filch_frame *f, void *arg)
{
    meeting m;
    filch_scope scope;
    int patient = socket_here(0), impatient = socket_here(SOCK_NONBLOCK);
    (void)arg;

    meet(&m);
    filch_op op = connect_to(&m, patient);
    CHECK(filch_op_run(f, &op, filch_after_ms(5)) == -ETIMEDOUT);
    CHECK(!(fcntl(patient, F_GETFL) & O_NONBLOCK));
    op = connect_to(&m, impatient);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == -EAGAIN);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == -EAGAIN);
    if (f) {
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        for (int i = 0; i < 50; i++)
            CHECK(filch_scope_spawn(f, &scope, connect_patiently, &m) == 0);
        filch_yield(f);
        filch_scope_cancel(&scope);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED);

        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        CHECK(filch_scope_spawn(f, &scope, connect_patiently, &m) == 0);
        filch_yield(f);
        for (int i = 0; i < 2; i++)
            CHECK(filch_close(f, filch_accept(f, m.listener, NULL, NULL, 0)) == 0);
        CHECK(filch_scope_close(f, &scope) == 0);
    }
    CHECK(filch_close(f, patient) == 0 && filch_close(f, impatient) == 0);
    CHECK(filch_close(f, m.first) == 0 && filch_close(f, m.listener) == 0);
}

/* The task that has started to connect is the one that accepts. */
static void connect_to_oneself(filch_frame *f, void *arg)
{
    meeting m;
    int fd = socket_here(0);
    (void)arg;

    meet(&m);
    filch_op op = connect_to(&m, fd);
    CHECK(filch_op_start(f, &op) == 0 && !filch_op_is_done(&op));
    filch_op_cancel(f, &op);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_op_start(f, &op) == 0 && !filch_op_is_done(&op));
    for (int i = 0; i < 2; i++)
        CHECK(filch_close(f, filch_accept(f, m.listener, NULL, NULL, 0)) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 0);
    CHECK(filch_close(f, fd) == 0 && filch_close(f, m.first) == 0 &&
          filch_close(f, m.listener) == 0);
}

TEST(who_starts_to_connect_to_a_full_queue_goes_on)
{
    on_pools(connect_to_oneself, NULL);
}

TEST(a_connect_to_a_full_queue_waits_as_long_as_it_may)
{
    on_pools(connect_to_full_queue, NULL);
    connect_to_full_queue(NULL, NULL);
}

/* ---- those that are not to wait --------------------------------------------------------------------- */

static void splice_impatiently(filch_frame *f, void *arg)
{
    static const char bytes[4096];
    int from[2], pair[2], full[2];
    (void)arg;

    CHECK(pipe(from) == 0);
    open_pair(pair);
    open_pair(full);
    filch_op op = filch_op_splice(from[0], FILCH_FILE_POSITION, pair[0], FILCH_FILE_POSITION, 100,
                                  SPLICE_F_NONBLOCK);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == -EAGAIN);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == -EAGAIN);
    CHECK(write(from[1], "abc", 3) == 3);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 3);
    /* Where there is no room, either. */
    CHECK(write(from[1], "abc", 3) == 3);
    while (send(full[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    op = filch_op_splice(from[0], FILCH_FILE_POSITION, full[0], FILCH_FILE_POSITION, 100,
                         SPLICE_F_NONBLOCK);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == -EAGAIN);
    CHECK(filch_close(f, full[0]) == 0 && filch_close(f, full[1]) == 0);
    CHECK(filch_close(f, from[0]) == 0 && filch_close(f, from[1]) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_splice_that_says_so_does_not_wait)
{
    on_pools(splice_impatiently, NULL);
    splice_impatiently(NULL, NULL);
}

/* ---- until all has come ------------------------------------------------------------------------ */

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

/* What has come until then is not lost. */
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
    /* Rings do not tell of an end that comes with the last bytes: README.md of src/io. */
    if (!f || !has_rings()) {
        CHECK(send(pair[1], "fgh", 3, 0) == 3 && shutdown(pair[1], SHUT_WR) == 0);
        CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 3 && memcmp(bytes, "fgh", 3) == 0);
        CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 0);
    }
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_recv_waits_for_all_bytes_if_told_to)
{
    on_pools(receive_all, NULL);
    on_pools(receive_some, NULL);
    receive_some(NULL, NULL);
}

/* In parts, some of them empty, and more than are received at once. */
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

/* Of datagrams one is all there is. */
static void receive_datagram(filch_frame *f, void *arg)
{
    int pair[2];
    char bytes[8];
    (void)arg;

    CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(send(pair[1], "abc", 3, 0) == 3);
    filch_op op = filch_op_recv(pair[0], bytes, sizeof bytes, MSG_WAITALL);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 3);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_datagram_is_all_there_is)
{
    on_pools(receive_datagram, NULL);
    receive_datagram(NULL, NULL);
}

/* A descriptor that comes beside some bytes ends a message there. */
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

TEST(a_descriptor_ends_a_message)
{
    receive_descriptor(NULL, NULL);
    /* A ring goes on, and says nothing of the descriptor. */
    if (has_rings())
        skip();
    on_pools(receive_descriptor, NULL);
}

/* It waits with the first half of its bytes. A duplicate of the descriptor is closed with something in flight, which is nothing to it. */
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
        /* What it has counts, when it is given up, and when there is no more. */
        receive_beside_close(f, &ops[i], pair);
        CHECK(filch_op_wait(f, &ops[i], filch_after_ms(1)) == 4);
    }
    receive_beside_close(f, &ops[0], pair);
    CHECK(shutdown(pair[1], SHUT_WR) == 0);
    CHECK(filch_op_wait(f, &ops[0], FILCH_NO_DEADLINE) == 4);
    CHECK(filch_op_run(f, &ops[1], FILCH_NO_DEADLINE) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(who_waits_for_all_bytes_does_so_though_a_duplicate_is_closed)
{
    on_pools(receive_all_beside_close, NULL);
}

/* Bytes that are not part of the stream are there, or they are not: nobody waits for them. A first recv tells what is usual there. */
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

/* ---- what cannot be asked not to wait -------------------------------------------------------------- */

/* The two sides of a terminal that changes no byte. */
static void open_terminal(int sides[2])
{
    struct termios settings;
    char name[64];

    sides[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(sides[0] >= 0 && grantpt(sides[0]) == 0 && unlockpt(sides[0]) == 0);
    CHECK(ptsname_r(sides[0], name, sizeof name) == 0);
    sides[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(sides[1] >= 0 && tcgetattr(sides[1], &settings) == 0);
    cfmakeraw(&settings);
    CHECK(tcsetattr(sides[1], TCSANOW, &settings) == 0);
}

enum { LONG_WRITE = 200000 };

static int write_long(filch_frame *f, void *arg)
{
    const int *sides = arg;
    char *bytes = calloc(1, LONG_WRITE);
    struct iovec parts[2] = {{bytes, 0}, {bytes, LONG_WRITE}};

    CHECK(bytes && filch_writev(f, sides[1], parts, 2) == LONG_WRITE);
    free(bytes);
    return 0;
}

/* More than it has room for, in one call, and nobody reads before the writer waits: the only worker must not be the one that does. */
static void use_terminal(filch_frame *f, void *arg)
{
    int sides[2];
    char *bytes = malloc(LONG_WRITE);
    filch_scope scope;
    (void)arg;

    open_terminal(sides);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, write_long, sides) == 0);
    CHECK(bytes && filch_read_all(f, sides[0], bytes, LONG_WRITE) == LONG_WRITE);
    CHECK(filch_scope_close(f, &scope) == 0);
    filch_op op = filch_op_read(sides[0], bytes, 1);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_close(f, sides[1]) == 0 && filch_close(f, sides[0]) == 0);
    free(bytes);
}

TEST(a_write_to_a_terminal_is_not_cut)
{
    on_pools(use_terminal, NULL);
}

/* A pipe with a name has no call that does not wait; parts that are empty are none. */
static void use_named_pipe(filch_frame *f, void *arg)
{
    char directory[] = "/tmp/filch_wait_XXXXXX", path[64], bytes[8] = "";
    struct iovec parts[3] = {{NULL, 0}, {bytes, 0}, {(void *)"abc", 3}};
    (void)arg;

    CHECK(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/pipe", directory);
    CHECK(mkfifo(path, 0600) == 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && unlink(path) == 0 && rmdir(directory) == 0);
    CHECK(filch_writev(f, fd, parts, 3) == 3);
    CHECK(filch_writev(f, fd, parts, 2) == 0 && filch_writev(f, fd, NULL, 0) == 0);
    CHECK(filch_read(f, fd, bytes, sizeof bytes) == 3 && memcmp(bytes, "abc", 3) == 0);
    filch_op op = filch_op_read(fd, bytes, sizeof bytes);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    op = filch_op_pwritev(fd, parts, 3, FILCH_FILE_POSITION);
    CHECK(filch_op_run(f, &op, filch_after_ms(60000)) == 3);
    CHECK(filch_close(f, fd) == 0);
}

TEST(empty_parts_are_nothing_to_a_pipe)
{
    on_pools(use_named_pipe, NULL);
    use_named_pipe(NULL, NULL);
}

/* ---- where there is always something to read ------------------------------------------------------ */

typedef struct turns {
    filch_scope readers;
    int pair[2], file;
} turns;

static int read_on(filch_frame *f, void *arg)
{
    const turns *t = arg;
    ssize_t got;
    char byte;

    while ((got = filch_pread(f, t->file, &byte, 1, 0)) == 1)
        ;
    CHECK(got == -ECANCELED);
    return (int)got;
}

static int cancel_when_told(filch_frame *f, void *arg)
{
    turns *t = arg;
    char byte;

    CHECK(filch_recv(f, t->pair[0], &byte, 1, 0) == 1);
    filch_scope_cancel(&t->readers);
    return 0;
}

/* What a task reads is always there. Others have their turn all the same, and one of them ends it. */
static void read_for_ever(filch_frame *f, void *arg)
{
    turns t;
    filch_scope scope;
    (void)arg;

    open_pair(t.pair);
    t.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(t.file >= 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_open(f, &t.readers, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, cancel_when_told, &t) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(filch_scope_spawn(f, &t.readers, read_on, &t) == 0);
    CHECK(filch_yield(f) == 0);
    CHECK(filch_send(f, t.pair[1], "a", 1, 0) == 1);
    CHECK(filch_scope_close(f, &t.readers) == -ECANCELED);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, t.file) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(filch_close(f, t.pair[i]) == 0);
}

TEST(who_always_finds_something_to_read_lets_others_run_and_is_cancelled)
{
    on_pools(read_for_ever, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poll_for_no_event_waits_for_a_hang_up),
        cmocka_unit_test(a_connect_to_a_full_queue_waits_as_long_as_it_may),
        cmocka_unit_test(who_starts_to_connect_to_a_full_queue_goes_on),
        cmocka_unit_test(a_splice_that_says_so_does_not_wait),
        cmocka_unit_test(a_recv_waits_for_all_bytes_if_told_to),
        cmocka_unit_test(a_message_in_parts_is_received_as_a_whole),
        cmocka_unit_test(a_datagram_is_all_there_is),
        cmocka_unit_test(a_descriptor_ends_a_message),
        cmocka_unit_test(who_waits_for_all_bytes_does_so_though_a_duplicate_is_closed),
        cmocka_unit_test(urgent_bytes_are_not_waited_for),
        cmocka_unit_test(a_write_to_a_terminal_is_not_cut),
        cmocka_unit_test(empty_parts_are_nothing_to_a_pipe),
        cmocka_unit_test(who_always_finds_something_to_read_lets_others_run_and_is_cancelled),
    };
    return cmocka_run_group_tests_name("io_wait", tests, watchdog_start, watchdog_stop);
}
