/* SPDX-License-Identifier: MIT */
/*
 * Opens that wait for another process, with paths that are in the kernel's cache and with paths
 * that seem not to be. Run once for each way of I/O: FILCH_IO.
 */
#include "watchdog.h"

#include <filch/filch.h>

#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static char directory[] = "/tmp/filch_open_XXXXXX";

/* ---- the cache ------------------------------------------------------------------------------- */

static bool is_cached;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

/* The library calls this one. It opens cached paths by openat2. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_openat2 && !is_cached) {
        errno = EAGAIN;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

/* Run the test on one worker, for cached paths and others, with these flags and with O_CREAT. */
static void in_each_way(filch_fn *fn)
{
    for (int i = 0; i < 4; i++) {
        filch_pool *pool = watched_pool_of(1);
        int flags = i & 1 ? O_CREAT : 0;

        is_cached = i & 2;
        assert_int_equal(filch_submit(pool, fn, &flags), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        watched_pool_destroy(pool);
    }
}

static void path_of(char path[static 64], const char *name, int number)
{
    snprintf(path, 64, "%s/%s%d", directory, name, number);
}

static bool is_blocking(int fd, int mode)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & (O_ACCMODE | O_NONBLOCK)) == mode;
}

/* ---- FIFOs ----------------------------------------------------------------------------------- */

/* More than there are threads for files, of ours or of the kernel. */
#define PIPES 40

static char paths[PIPES][64];

static void make_pipes(void)
{
    for (int i = 0; i < PIPES; i++) {
        path_of(paths[i], "pipe", i);
        CHECK(mkfifo(paths[i], 0600) == 0);
    }
}

static void remove_pipes(void)
{
    for (int i = 0; i < PIPES; i++)
        CHECK(unlink(paths[i]) == 0);
}

static void start_opens(filch_frame *f, filch_op ops[static PIPES], int flags)
{
    for (int i = 0; i < PIPES; i++) {
        ops[i] = filch_op_openat(FILCH_CWD, paths[i], flags, 0600);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
}

static int open_in_task(filch_frame *f, void *arg)
{
    filch_op *op = arg;
    return (int)filch_op_run(f, op, FILCH_NO_DEADLINE) < 0 ? (int)op->result : 0;
}

/* All opens of one end begin, then all of the other. */
static void open_both_ends(filch_frame *f, void *arg)
{
    static filch_op ops[2][PIPES];
    int flags = *(int *)arg;
    filch_scope scope;
    char byte;

    for (int first = 0; first < 2; first++) {
        make_pipes();
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < PIPES; i++) {
                int mode = k == first ? O_RDONLY : O_WRONLY;
                ops[k == first][i] = filch_op_openat(FILCH_CWD, paths[i], mode | flags, 0600);
                CHECK(filch_scope_spawn(f, &scope, open_in_task, &ops[k == first][i]) == 0);
                filch_yield(f);
            }
        CHECK(filch_scope_close(f, &scope) == 0);
        for (int i = 0; i < PIPES; i++) {
            int reader = (int)ops[1][i].result, writer = (int)ops[0][i].result;
            CHECK(is_blocking(reader, O_RDONLY) && is_blocking(writer, O_WRONLY));
            CHECK(filch_write(f, writer, "x", 1) == 1);
            CHECK(filch_read(f, reader, &byte, 1) == 1 && byte == 'x');
            CHECK(close(reader) == 0 && close(writer) == 0);
        }
        remove_pipes();
    }
}

TEST(both_ends_of_many_pipes_find_each_other)
{
    in_each_way(open_both_ends);
}

/* While opens of pipes wait, files are opened, and the opens can be cancelled. */
static void open_files_beside_pipes(filch_frame *f, void *arg)
{
    static filch_op ops[PIPES];
    char path[64];
    int flags = *(int *)arg;

    for (int mode = O_RDONLY; mode <= O_WRONLY; mode++) {
        make_pipes();
        start_opens(f, ops, mode | flags);
        for (int i = 0; i < 20; i++) {
            path_of(path, "file", i);
            int fd = filch_open(f, path, O_RDWR | O_CREAT, 0600);
            CHECK(is_blocking(fd, O_RDWR) && filch_fsync(f, fd, false) == 0);
            CHECK(filch_close(f, fd) == 0 && filch_unlink(f, path) == 0);
        }
        for (int i = 0; i < PIPES; i++) {
            if (i % 2) {
                filch_op_cancel(f, &ops[i]);
                CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == -ECANCELED);
            } else {
                CHECK(filch_op_wait(f, &ops[i], filch_after_ms(1)) == -ETIMEDOUT);
            }
            /* There is no descriptor left of it. */
            CHECK(open(paths[i], O_WRONLY | O_NONBLOCK | O_CLOEXEC) == -1 && errno == ENXIO);
        }
        remove_pipes();
    }
}

TEST(opens_of_pipes_that_wait_hold_up_no_file)
{
    in_each_way(open_files_beside_pipes);
}

/* ---- others ---------------------------------------------------------------------------------- */

static int give_lease_back(filch_frame *f, void *arg)
{
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    CHECK(fcntl(*(int *)arg, F_SETLEASE, F_UNLCK) == 0);
    return 0;
}

static bool has_leases;

/* More leased files than there are threads of the kernel. */
static void open_leased_files(filch_frame *f, void *arg)
{
    static filch_op ops[PIPES];
    int flags = *(int *)arg, holders[PIPES];

    for (int i = 0; i < PIPES; i++) {
        path_of(paths[i], "leased", i);
        CHECK(close(open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600)) == 0);
        holders[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
        has_leases = fcntl(holders[i], F_SETLEASE, F_RDLCK) == 0;
    }
    if (has_leases) {
        start_opens(f, ops, O_RDWR | O_APPEND | flags);
        int fd = filch_open(f, directory, O_TMPFILE | O_RDWR, 0600);
        CHECK(fd >= 0 && close(fd) == 0);
        for (int i = 0; i < PIPES; i++) {
            filch_scope scope;
            CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
            CHECK(filch_scope_spawn(f, &scope, give_lease_back, &holders[i]) == 0);
            fd = (int)filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE);
            CHECK(is_blocking(fd, O_RDWR) && fcntl(fd, F_GETFL) & O_APPEND);
            CHECK(close(fd) == 0 && filch_scope_close(f, &scope) == 0);
        }
    }
    for (int i = 0; i < PIPES; i++)
        CHECK(close(holders[i]) == 0 && unlink(paths[i]) == 0);
}

TEST(opens_that_wait_for_leases_hold_up_no_file)
{
    void (*old)(int) = signal(SIGIO, SIG_IGN);
    in_each_way(open_leased_files);
    signal(SIGIO, old);
    if (!has_leases) {
        print_message("no leases on this file system: skipped\n");
        skip();
    }
}

static void open_each_kind(filch_frame *f, void *arg)
{
    int flags = *(int *)arg;
    char path[64];

    path_of(path, "pipe", 0);
    CHECK(mkfifo(path, 0600) == 0);
    int fd = filch_open(f, path, O_RDWR | flags, 0600);
    CHECK(is_blocking(fd, O_RDWR) && filch_close(f, fd) == 0);
    fd = filch_open(f, path, O_RDONLY | O_NONBLOCK | flags, 0600);
    CHECK(fd >= 0 && !is_blocking(fd, O_RDONLY) && filch_close(f, fd) == 0);
    CHECK(filch_open(f, path, O_WRONLY | O_NONBLOCK | flags, 0600) == -ENXIO);
    CHECK(filch_open(f, path, O_CREAT | O_EXCL | O_RDWR, 0600) == -EEXIST);
    CHECK(filch_unlink(f, path) == 0);

    fd = filch_open(f, "/dev/null", O_RDWR | flags, 0600);
    CHECK(is_blocking(fd, O_RDWR) && filch_close(f, fd) == 0);

    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    path_of(address.sun_path, "socket", 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && close(listener) == 0);
    CHECK(filch_open(f, address.sun_path, O_RDWR | flags, 0600) == -ENXIO);
    CHECK(filch_unlink(f, address.sun_path) == 0);

    path_of(path, "file", 0);
    CHECK(filch_open(f, path, O_RDWR, 0600) == -ENOENT);
    fd = filch_open(f, path, O_CREAT | O_EXCL | O_RDWR, 0600);
    CHECK(is_blocking(fd, O_RDWR) && filch_write(f, fd, "abc", 3) == 3 && filch_close(f, fd) == 0);
    fd = filch_open(f, path, O_WRONLY | O_TRUNC | O_APPEND | flags, 0600);
    CHECK(is_blocking(fd, O_WRONLY) && fcntl(fd, F_GETFL) & O_APPEND);
    CHECK(lseek(fd, 0, SEEK_END) == 0 && filch_close(f, fd) == 0 && filch_unlink(f, path) == 0);
}

TEST(a_descriptor_has_the_flags_that_were_asked_for)
{
    in_each_way(open_each_kind);
}

static int make_directory(void **state)
{
    return mkdtemp(directory) ? watchdog_start(state) : -1;
}

static int remove_directory(void **state)
{
    return rmdir(directory) ? -1 : watchdog_stop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_of_many_pipes_find_each_other),
        cmocka_unit_test(opens_of_pipes_that_wait_hold_up_no_file),
        cmocka_unit_test(opens_that_wait_for_leases_hold_up_no_file),
        cmocka_unit_test(a_descriptor_has_the_flags_that_were_asked_for),
    };
    return cmocka_run_group_tests_name("io_open", tests, make_directory, remove_directory);
}
