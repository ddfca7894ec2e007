/* SPDX-License-Identifier: MIT */
/*
 * Faults around input and output: no operation is lost, and none hangs. Run once for each way of
 * I/O: FILCH_IO.
 */
#include "child.h"
#include "pools.h"

#include <filch/filch.h>

#include <arpa/inet.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static void assert_child(void (*fn)(void *arg), void *arg)
{
#if defined(TEST_TSAN) || defined(TEST_EMULATED)
    print_message("ThreadSanitizer and the emulator do not let a child start threads when its "
                  "parent had some: skipped\n");
    skip();
#endif
    ended c = run_in_child(fn, arg);

    if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == SKIPPED)
        skip();
    if (c.status != 0)
        print_message("the child ended with %x: %s\n", (unsigned)c.status, c.text);
    assert_int_equal(c.status, 0);
}

/* ---- very many ------------------------------------------------------------------------------- */

#define OPS_OF_A_TASK 250
#define TASKS (400 / TEST_SLOWNESS)
#define OPS (TASKS * OPS_OF_A_TASK)

typedef struct many {
    int pair[2];
    filch_atomic_u32 *in_flight_count;
    uint32_t byte_count;
} many;

/* All operations wait at once, each for one byte of the same stream. */
static int receive_many(filch_frame *f, void *arg)
{
    many *m = arg;
    filch_op *ops = calloc(OPS_OF_A_TASK, sizeof *ops);
    char *bytes = malloc(OPS_OF_A_TASK);

    for (int i = 0; i < OPS_OF_A_TASK; i++) {
        ops[i] = filch_op_recv(m->pair[0], &bytes[i], 1, 0);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
    filch_fetch_add_release(m->in_flight_count, OPS_OF_A_TASK);
    for (int i = 0; i < OPS_OF_A_TASK; i++) {
        ssize_t got = filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE);
        CHECK(got == 1 && bytes[i] == 'x');
        m->byte_count++;
    }
    free(ops);
    free(bytes);
    return 0;
}

/* With a ring of 4 entries, nearly all operations find no free entry. With epoll they wait in the
 * lists of the descriptors. */
static void receive_very_many(filch_frame *f, void *arg)
{
    many *all = calloc(TASKS, sizeof *all);
    filch_atomic_u32 in_flight_count = {0};
    filch_scope scope;
    char bytes[OPS_OF_A_TASK];
    (void)arg;

    memset(bytes, 'x', sizeof bytes);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < TASKS; i++) {
        open_pair(all[i].pair);
        all[i].in_flight_count = &in_flight_count;
        CHECK(filch_scope_spawn(f, &scope, receive_many, &all[i]) == 0);
    }
    while (filch_load_acquire(&in_flight_count) < OPS)
        filch_yield(f);
    for (int i = 0; i < TASKS; i++)
        CHECK(filch_send_all(f, all[i].pair[1], bytes, sizeof bytes, 0) == sizeof bytes);
    CHECK(filch_scope_close(f, &scope) == 0);
    for (int i = 0; i < TASKS; i++) {
        CHECK(all[i].byte_count == OPS_OF_A_TASK);
        CHECK(filch_close(f, all[i].pair[0]) == 0 && filch_close(f, all[i].pair[1]) == 0);
    }
    free(all);
}

TEST(each_of_very_many_operations_ends_once)
{
    filch_pool *pool = watched_pool_of(2);
    assert_int_equal(filch_run(pool, receive_very_many, NULL), 0);
    watched_pool_destroy(pool);
}

/* ---- signals --------------------------------------------------------------------------------- */

static filch_atomic_u32 alarm_count;

static void on_alarm(int number)
{
    (void)number;
    filch_fetch_add_relaxed(&alarm_count, 1);
}

static int echo(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[256];
    ssize_t got;

    while ((got = filch_recv(f, fd, buffer, sizeof buffer, 0)) > 0)
        CHECK(filch_send_all(f, fd, buffer, (size_t)got, 0) == got);
    CHECK(got == 0);
    return 0;
}

static void talk(filch_frame *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    char buffer[200];
    const int *rounds = arg;

    open_pair(pair);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, echo, (void *)(intptr_t)pair[1]) == 0);
    for (int i = 0; i < *rounds; i++) {
        memset(buffer, i, sizeof buffer);
        CHECK(filch_write_all(f, pair[0], buffer, sizeof buffer) == sizeof buffer);
        memset(buffer, ~i, sizeof buffer);
        CHECK(filch_read_all(f, pair[0], buffer, sizeof buffer) == sizeof buffer);
        for (size_t j = 0; j < sizeof buffer; j++)
            CHECK(buffer[j] == (char)i);
        /* Signals also interrupt threads that sleep. */
        CHECK(filch_sleep_ns(f, 20000) == 0);
    }
    CHECK(filch_shutdown(f, pair[0], SHUT_WR) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_thousand_signals_a_second_disturb_nothing)
{
    struct sigaction action = {.sa_handler = on_alarm}, old;
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    int rounds = 300;

    sigaction(SIGALRM, &action, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    on_pools(talk, &rounds);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_true(filch_load_relaxed(&alarm_count) > 0);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void reset_peer(filch_frame *f, void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct linger at_once = {1, 0};
    char byte;
    (void)arg;

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(filch_connect(f, client, (struct sockaddr *)&address, sizeof address) == 0);
    int server = filch_accept(f, listener, NULL, NULL, 0);
    CHECK(server >= 0);
    filch_op op = filch_op_recv(server, &byte, 1, 0);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    CHECK(filch_close(f, client) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECONNRESET);
    CHECK(filch_send(f, server, "x", 1, 0) == -EPIPE);
    CHECK(filch_close(f, server) == 0 && filch_close(f, listener) == 0);
}

TEST(a_peer_that_resets_is_an_error)
{
    on_pools(reset_peer, NULL);
}

/* ---- no descriptors, no room on the disk ----------------------------------------------------- */

static void open_too_many(filch_frame *f, void *arg)
{
    int fds[64], count = 0;
    (void)arg;

    while (count < 64 && (fds[count] = filch_open(f, "/dev/null", O_RDONLY, 0)) >= 0)
        count++;
    CHECK(count < 64 && fds[count] == -EMFILE);
    /* A statx needs no descriptor. */
    struct statx info;
    CHECK(filch_statx(f, FILCH_CWD, "/dev/null", 0, STATX_TYPE, &info) == 0);
    for (int i = 0; i < count; i++)
        CHECK(filch_close(f, fds[i]) == 0);
}

static void live_with_few_descriptors(void *arg)
{
    struct rlimit few = {24, 24};
    (void)arg;

    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    on_pools(open_too_many, NULL);
}

TEST(without_descriptors_an_open_fails_and_the_rest_goes_on)
{
    assert_child(live_with_few_descriptors, NULL);
}

/* There is no descriptor for a ring or for epoll either. */
static void read_all_the_same(filch_frame *f, void *arg)
{
    const int *ends = arg;
    char byte;

    CHECK(filch_write(f, ends[1], "y", 1) == 1);
    CHECK(filch_read(f, ends[0], &byte, 1) == 1 && byte == 'y');
}

static void live_without_descriptors(void *arg)
{
    int ends[2];
    (void)arg;

    CHECK(pipe(ends) == 0);
    struct rlimit none = {(rlim_t)ends[1] + 1, (rlim_t)ends[1] + 1};
    for (int fd; (fd = dup(0)) >= 0 && fd < ends[1];)
        ;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    on_pools(read_all_the_same, ends);
}

TEST(without_a_descriptor_for_a_ring_calls_are_made_by_threads)
{
    assert_child(live_without_descriptors, NULL);
}

static void fill_disk(filch_frame *f, void *arg)
{
    char path[128], *block = calloc(1, 64 << 10);
    ssize_t put;

    snprintf(path, sizeof path, "%s/file", (const char *)arg);
    int fd = filch_open(f, path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    size_t written = 0;
    while ((put = filch_write(f, fd, block, 64 << 10)) > 0)
        written += (size_t)put;
    CHECK(put == -ENOSPC && written > 0);
    CHECK(filch_write_all(f, fd, block, 64 << 10) == -ENOSPC);
    CHECK(filch_close(f, fd) == 0 && filch_unlink(f, path) == 0);
    free(block);
}

TEST(a_full_disk_is_an_error)
{
    char directory[] = "/tmp/filch_full_XXXXXX";

    assert_non_null(mkdtemp(directory));
    if (mount("none", directory, "tmpfs", 0, "size=300k")) {
        rmdir(directory);
        print_message("not allowed to mount a small disk: skipped\n");
        skip();
    }
    on_pools(fill_disk, directory);
    umount(directory);
    rmdir(directory);
}

/* ---- fork and exec --------------------------------------------------------------------------- */

static void talk_in_child(void *arg)
{
    filch_pool *pool = arg;
    int rounds = 5;

    CHECK(filch_run(pool, talk, &rounds) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_child_of_fork_has_input_and_output_of_its_own)
{
    filch_pool *pool = watched_pool_of(2);
    int rounds = 5;

    assert_int_equal(filch_run(pool, talk, &rounds), 0);
    for (int i = 0; i < 3; i++)
        assert_child(talk_in_child, pool);
    assert_int_equal(filch_run(pool, talk, &rounds), 0);
    watched_pool_destroy(pool);
}

/* How many descriptors a program inherits that is started here. */
static int count_descriptors(void)
{
    FILE *list = popen("ls /proc/self/fd | wc -l", "r");
    int count = -1;

    CHECK(list && fscanf(list, "%d", &count) == 1 && pclose(list) == 0);
    return count;
}

static void count_in_task(filch_frame *f, void *arg)
{
    (void)f;
    *(int *)arg = count_descriptors();
}

TEST(a_program_that_is_started_inherits_nothing)
{
    int before = count_descriptors(), after = -1, rounds = 5;
    filch_pool *pool = watched_pool_of(2);

    assert_int_equal(filch_run(pool, talk, &rounds), 0);
    assert_int_equal(filch_run(pool, count_in_task, &after), 0);
    assert_int_equal(after, before);
    watched_pool_destroy(pool);
}

/* ---- refused --------------------------------------------------------------------------------- */

/* As Docker's profile: the calls of io_uring return -EPERM. So does `another` call, as calls do
 * that an older profile does not know. */
static bool refuse_io_uring(long another)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)another, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void live_without_rings(void *arg)
{
    int rounds = 20;

    if (!refuse_io_uring((long)(intptr_t)arg))
        _exit(SKIPPED);
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool;
        filch_options options = {.size = sizeof options, .workers = workers};
        CHECK(filch_pool_create(&pool, &options) == 0);
        CHECK(filch_run(pool, talk, &rounds) == 0);
        CHECK(strcmp(filch_pool_io(pool), "uring") != 0);
        CHECK(filch_pool_destroy(pool) == 0);
    }
}

TEST(where_io_uring_is_refused_the_results_are_the_same)
{
    assert_child(live_without_rings, (void *)(intptr_t)SYS_io_uring_setup);
}

TEST(where_a_call_for_events_is_refused_they_come_all_the_same)
{
    assert_child(live_without_rings, (void *)(intptr_t)SYS_epoll_pwait2);
}

/* ---- standard streams that are closed -------------------------------------------------------- */

static void read_and_write_nothing(filch_frame *f, void *arg)
{
    int pair[2];
    char byte;
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    close(pair[0]);
    close(pair[1]);
    CHECK(filch_read(f, 0, &byte, 1) == -EBADF);
    CHECK(filch_write(f, 1, "12345678", 8) == -EBADF);
}

static void close_standard_streams(void *arg)
{
    filch_pool *pool;
    (void)arg;

    close(0);
    close(1);
    CHECK(filch_pool_create(&pool, NULL) == 0);
    CHECK(filch_run(pool, read_and_write_nothing, NULL) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(our_descriptors_are_never_standard_streams)
{
    assert_child(close_standard_streams, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_descriptors_are_never_standard_streams),
        cmocka_unit_test(each_of_very_many_operations_ends_once),
        cmocka_unit_test(a_thousand_signals_a_second_disturb_nothing),
        cmocka_unit_test(a_peer_that_resets_is_an_error),
        cmocka_unit_test(without_descriptors_an_open_fails_and_the_rest_goes_on),
        cmocka_unit_test(without_a_descriptor_for_a_ring_calls_are_made_by_threads),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(a_child_of_fork_has_input_and_output_of_its_own),
        cmocka_unit_test(a_program_that_is_started_inherits_nothing),
        cmocka_unit_test(where_io_uring_is_refused_the_results_are_the_same),
        cmocka_unit_test(where_a_call_for_events_is_refused_they_come_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
