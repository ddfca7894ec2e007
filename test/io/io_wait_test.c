/* SPDX-License-Identifier: MIT */
/*
 * How operations wait: for hang-ups, full queues, terminals and pipes. Run once for each way of
 * I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <poll.h>
#include <sys/un.h>
#include <termios.h>

/* ---- hang-ups -------------------------------------------------------------------------------- */

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
        /* More tasks than there are threads for calls that block. */
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

/* ---- connections on this machine ------------------------------------------------------------- */

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
    /* The kernel chooses a name. */
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

/* The task that has started to connect also accepts. */
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

TEST(a_task_that_starts_to_connect_to_a_full_queue_goes_on)
{
    on_pools(connect_to_oneself, NULL);
}

TEST(a_connect_to_a_full_queue_waits_as_long_as_it_may)
{
    on_pools(connect_to_full_queue, NULL);
    connect_to_full_queue(NULL, NULL);
}

/* ---- descriptors without RWF_NOWAIT ---------------------------------------------------------- */

/* Both sides of a terminal in raw mode. */
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

/* One write of more than the terminal has room for, and no task reads before the writer waits. The
 * only worker must not wait in that write. */
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

/* A named pipe has no RWF_NOWAIT. Empty parts are skipped. */
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
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == 3);
    CHECK(filch_close(f, fd) == 0);
}

TEST(empty_parts_are_nothing_to_a_pipe)
{
    on_pools(use_named_pipe, NULL);
    use_named_pipe(NULL, NULL);
}

/* ---- a task that never has to wait ----------------------------------------------------------- */

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

/* The readers never have to wait. Other tasks run all the same, and one of them cancels the
 * readers. */
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

TEST(a_task_that_never_has_to_wait_yields_and_is_cancelled)
{
    on_pools(read_for_ever, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poll_for_no_event_waits_for_a_hang_up),
        cmocka_unit_test(a_connect_to_a_full_queue_waits_as_long_as_it_may),
        cmocka_unit_test(a_task_that_starts_to_connect_to_a_full_queue_goes_on),
        cmocka_unit_test(a_write_to_a_terminal_is_not_cut),
        cmocka_unit_test(empty_parts_are_nothing_to_a_pipe),
        cmocka_unit_test(a_task_that_never_has_to_wait_yields_and_is_cancelled),
    };
    return cmocka_run_group_tests_name("io_wait", tests, watchdog_start, watchdog_stop);
}
