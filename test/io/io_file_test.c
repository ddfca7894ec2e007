/* SPDX-License-Identifier: MIT */
/*
 * Files and directories of tasks. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <dirent.h>

static char directory[] = "/tmp/filch_io_XXXXXX";

static void use_files(filch_frame *f, void *arg)
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
    CHECK(filch_readv(f, fd, parts, 2) == 4 && buffer[0] == 'f' &&
          memcmp(buffer + 10, "ile", 3) == 0);
    struct iovec more[2] = {{(void *)"ab", 2}, {(void *)"c", 1}};
    CHECK(filch_writev(f, fd, more, 2) == 3);
    CHECK(filch_pread(f, fd, buffer, sizeof buffer, 0) == 14 &&
          memcmp(buffer, "HELLO, fileabc", 14) == 0);
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

static void link_files(filch_frame *f, void *arg)
{
    struct statx info;
    (void)arg;

    int at = filch_open(f, directory, O_RDONLY | O_DIRECTORY, 0);
    CHECK(at >= 0);
    CHECK(filch_close(f, filch_openat(f, at, "one", O_WRONLY | O_CREAT, 0600)) == 0);
    CHECK(symlinkat("one", at, "symbolic") == 0);

    CHECK(filch_linkat(f, at, "one", at, "two", 0) == 0);
    CHECK(filch_linkat(f, at, "one", at, "two", 0) == -EEXIST);
    CHECK(filch_linkat(f, at, "none", at, "three", 0) == -ENOENT);
    CHECK(filch_linkat(f, at, "symbolic", at, "three", AT_SYMLINK_FOLLOW) == 0);
    CHECK(filch_statx(f, at, "three", AT_SYMLINK_NOFOLLOW, STATX_NLINK, &info) == 0);
    CHECK(S_ISREG(info.stx_mode) && info.stx_nlink == 3);
    filch_op op = filch_op_linkat(at, "one", at, "four", 1 << 30);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == -EINVAL);

    CHECK(filch_unlinkat(f, at, "one", 0) == 0 && filch_unlinkat(f, at, "two", 0) == 0);
    CHECK(filch_unlinkat(f, at, "three", 0) == 0 && filch_unlinkat(f, at, "symbolic", 0) == 0);
    CHECK(filch_close(f, at) == 0);
}

TEST(a_file_gets_a_second_name)
{
    on_pools(link_files, NULL);
    link_files(NULL, NULL);
}

/* Open the subdirectory `name` of `at`, which is made. */
static int make_subdirectory(filch_frame *f, int at, const char *name)
{
    CHECK(filch_mkdirat(f, at, name, 0700) == 0);
    return filch_openat(f, at, name, O_RDONLY | O_DIRECTORY, 0);
}

static void close_second_directory(filch_frame *f, void *arg)
{
    bool renames = *(bool *)arg;
    struct statx info;

    int at = filch_open(f, directory, O_RDONLY | O_DIRECTORY, 0);
    CHECK(at >= 0);
    CHECK(filch_close(f, filch_openat(f, at, "one", O_WRONLY | O_CREAT, 0600)) == 0);
    int meant = make_subdirectory(f, at, "meant"), other = make_subdirectory(f, at, "other");
    CHECK(meant >= 0 && other >= 0);

    filch_op op = renames ? filch_op_renameat(at, "one", meant, "two", 0)
                          : filch_op_linkat(at, "one", meant, "two", 0);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_close(f, meant) == 0);
    CHECK(dup2(other, meant) == meant);
    ssize_t result = filch_op_wait(f, &op, FILCH_NO_DEADLINE);
    CHECK(result == 0 || result == -ECANCELED);
    CHECK(filch_statx(f, other, "two", 0, STATX_TYPE, &info) == -ENOENT);

    CHECK(filch_close(f, meant) == 0 && filch_close(f, other) == 0);
    filch_unlinkat(f, at, "one", 0);
    filch_unlinkat(f, at, "meant/two", 0);
    CHECK(filch_unlinkat(f, at, "meant", AT_REMOVEDIR) == 0);
    CHECK(filch_unlinkat(f, at, "other", AT_REMOVEDIR) == 0);
    CHECK(filch_close(f, at) == 0);
}

/* Not on rings: there a close does not wait for an operation on a path. */
TEST(no_file_gets_into_the_directory_that_has_a_closed_number)
{
    const char *way = getenv("FILCH_IO");
    if (!way || strncmp(way, "uring", 5) == 0)
        skip();
    on_pools(close_second_directory, &(bool){false});
    on_pools(close_second_directory, &(bool){true});
}

static void send_files(filch_frame *f, void *arg)
{
    char path[64], buffer[100];
    int pair[2], ends[2];
    (void)arg;

    snprintf(path, sizeof path, "%s/file", directory);
    int fd = filch_open(f, path, O_RDWR | O_CREAT, 0600);
    CHECK(filch_pwrite(f, fd, "0123456789", 10, 0) == 10);
    CHECK(pipe(ends) == 0);
    open_pair(pair);
    CHECK(filch_sendfile(f, ends[1], fd, 2, 5) == 5 &&
          filch_read(f, ends[0], buffer, sizeof buffer) == 5);
    CHECK(memcmp(buffer, "23456", 5) == 0);
    CHECK(filch_sendfile(f, pair[0], fd, 8, 5) == 2 &&
          filch_recv(f, pair[1], buffer, sizeof buffer, 0) == 2);
    CHECK(memcmp(buffer, "89", 2) == 0);
    CHECK(filch_close(f, pair[1]) == 0);
    CHECK(filch_sendfile(f, pair[0], fd, 0, 10) == -EPIPE); /* and no SIGPIPE */
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, ends[0]) == 0 &&
          filch_close(f, ends[1]) == 0);
    CHECK(filch_close(f, fd) == 0 && filch_unlink(f, path) == 0);
}

TEST(a_file_is_sent_to_a_socket_or_a_pipe)
{
    on_pools(send_files, NULL);
    send_files(NULL, NULL);
}

static void open_pipes(filch_frame *f, void *arg)
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

TEST(an_open_with_o_nonblock_does_not_wait)
{
    on_pools(open_pipes, NULL);
    open_pipes(NULL, NULL);
}

/* ---- opens that wait for another process ----------------------------------------------------- */

typedef struct opening {
    char path[64];
    int flags, result;
    bool has_begun;
} opening;

static int open_in_task(filch_frame *f, void *arg)
{
    opening *o = arg;

    o->has_begun = true;
    o->result = filch_open(f, o->path, o->flags, 0);
    return o->result < 0 ? o->result : 0;
}

/* There is one worker: when the opening task has begun, and this task runs again, the open
 * waits. */
static void begin_to_open(filch_frame *f, filch_scope *scope, opening *o)
{
    o->has_begun = false;
    CHECK(filch_scope_spawn(f, scope, open_in_task, o) == 0);
    while (!o->has_begun)
        filch_yield(f);
}

static void on_one_worker(filch_fn *fn, void *arg)
{
    filch_pool *pool = watched_pool_of(1);

    assert_int_equal(filch_submit(pool, fn, arg), 0);
    assert_int_equal(filch_pool_wait(pool), 0);
    watched_pool_destroy(pool);
}

/* Another task of the same worker releases the lease on the file. */
static void open_leased_file(filch_frame *f, void *arg)
{
    int holder = *(int *)arg;
    opening o = {.flags = O_RDWR | O_APPEND};
    filch_scope scope;

    snprintf(o.path, sizeof o.path, "%s/leased", directory);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    begin_to_open(f, &scope, &o);
    CHECK(fcntl(holder, F_SETLEASE, F_UNLCK) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    int flags = fcntl(o.result, F_GETFL);
    CHECK(o.result >= 0 && flags & O_APPEND && !(flags & O_NONBLOCK));
    CHECK(filch_close(f, o.result) == 0);
}

static void open_leased_file_late(filch_frame *f, void *arg)
{
    char path[64];

    snprintf(path, sizeof path, "%s/leased", directory);
    filch_op op = filch_op_openat(FILCH_CWD, path, O_RDWR, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(fcntl(*(int *)arg, F_SETLEASE, F_UNLCK) == 0);
    CHECK(filch_close(f, filch_open(f, path, O_RDWR, 0)) == 0);
}

TEST(an_open_that_waits_for_a_lease_holds_up_no_worker)
{
    static filch_fn *const fns[] = {open_leased_file, open_leased_file_late};
    char path[64];
    bool has_lease = true;

    snprintf(path, sizeof path, "%s/leased", directory);
    assert_int_equal(close(open(path, O_RDWR | O_CREAT, 0600)), 0);
    int holder = open(path, O_RDONLY | O_CLOEXEC);
    void (*old)(int) = signal(SIGIO, SIG_IGN);
    for (size_t i = 0; i < COUNT_OF(fns) && has_lease; i++) {
        has_lease = fcntl(holder, F_SETLEASE, F_RDLCK) == 0;
        if (has_lease)
            on_one_worker(fns[i], &holder);
    }
    signal(SIGIO, old);
    close(holder);
    unlink(path);
    if (!has_lease) {
        print_message("no leases on this file system: skipped\n");
        skip();
    }
}

/* More pipes than there are threads for files. */
#define PIPES 20

static void open_many_pipes(filch_frame *f, void *arg)
{
    static opening readers[PIPES], writers[PIPES];
    opening *firsts = *(int *)arg == O_RDONLY ? readers : writers,
            *seconds = firsts == readers ? writers : readers;
    char byte;
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < PIPES; i++) {
        snprintf(readers[i].path, sizeof readers[i].path, "%s/pipe%d", directory, i);
        CHECK(mkfifo(readers[i].path, 0600) == 0);
        writers[i] = readers[i];
        readers[i].flags = O_RDONLY;
        writers[i].flags = O_WRONLY;
        begin_to_open(f, &scope, &firsts[i]);
    }
    for (int i = 0; i < PIPES; i++)
        begin_to_open(f, &scope, &seconds[i]);
    CHECK(filch_scope_close(f, &scope) == 0);
    for (int i = 0; i < PIPES; i++) {
        CHECK((fcntl(readers[i].result, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDONLY);
        CHECK((fcntl(writers[i].result, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_WRONLY);
        CHECK(filch_write(f, writers[i].result, "x", 1) == 1);
        CHECK(filch_read(f, readers[i].result, &byte, 1) == 1 && byte == 'x');
        CHECK(filch_close(f, writers[i].result) == 0 &&
              filch_read(f, readers[i].result, &byte, 1) == 0);
        CHECK(filch_close(f, readers[i].result) == 0);
        CHECK(filch_unlink(f, readers[i].path) == 0);
    }
}

TEST(opens_of_pipes_wait_for_each_other_however_many)
{
    on_one_worker(open_many_pipes, &(int){O_RDONLY});
    on_one_worker(open_many_pipes, &(int){O_WRONLY});
}

/* The writer has opened, written and closed before the open for reading looks. */
static int write_and_close(filch_frame *f, void *arg)
{
    int fd = filch_open(f, arg, O_WRONLY, 0);
    CHECK(fd >= 0 && filch_write(f, fd, "abc", 3) == 3);
    CHECK(filch_close(f, fd) == 0);
    return 0;
}

/* Deadlines and cancellations end the open, and leave no descriptor of the pipe behind. So does a
 * writer. */
static void open_pipes_in_vain(filch_frame *f, void *arg)
{
    static const int modes[] = {O_RDONLY, O_WRONLY};
    char path[64], bytes[8];
    filch_scope scope;
    (void)arg;

    snprintf(path, sizeof path, "%s/pipe", directory);
    CHECK(mkfifo(path, 0600) == 0);
    for (int i = 0; i < 2; i++) {
        opening o = {.flags = modes[i], .result = -ECANCELED}; /* also if it has not begun */
        filch_op op = filch_op_openat(FILCH_CWD, path, modes[i], 0);
        CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
        CHECK(filch_open(f, path, O_WRONLY | O_NONBLOCK, 0) == -ENXIO);
        if (!f)
            continue;
        memcpy(o.path, path, sizeof path);
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        CHECK(filch_scope_spawn(f, &scope, open_in_task, &o) == 0);
        filch_yield(f);
        filch_scope_cancel(&scope);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED && o.result == -ECANCELED);
        CHECK(filch_open(f, path, O_WRONLY | O_NONBLOCK, 0) == -ENXIO);
    }
    if (f) {
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        CHECK(filch_scope_spawn(f, &scope, write_and_close, path) == 0);
        int fd = filch_open(f, path, O_RDONLY, 0);
        CHECK(fd >= 0 && filch_read_all(f, fd, bytes, sizeof bytes) == 3);
        CHECK(filch_close(f, fd) == 0 && filch_scope_close(f, &scope) == 0);
    }
    CHECK(filch_unlink(f, path) == 0);
}

TEST(an_open_of_a_pipe_waits_as_long_as_it_may)
{
    on_pools(open_pipes_in_vain, NULL);
    open_pipes_in_vain(NULL, NULL);
}

/* One task has the opens of both ends in flight. It waits for them in any order, or cancels one. */
static void open_both_ends(filch_frame *f, void *arg)
{
    char path[64];
    (void)arg;

    snprintf(path, sizeof path, "%s/pipe", directory);
    CHECK(mkfifo(path, 0600) == 0);
    for (int i = 0; i < 4; i++) {
        filch_op ops[2] = {filch_op_openat(FILCH_CWD, path, i & 1 ? O_RDONLY : O_WRONLY, 0),
                           filch_op_openat(FILCH_CWD, path, i & 1 ? O_WRONLY : O_RDONLY, 0)};
        CHECK(filch_op_start(f, &ops[0]) == 0 && !filch_op_is_done(&ops[0]));
        CHECK(filch_op_wait(f, &ops[0], filch_after_ms(1)) == -ETIMEDOUT);
        CHECK(filch_op_start(f, &ops[0]) == 0);
        filch_op_cancel(f, &ops[0]);
        CHECK(filch_op_wait(f, &ops[0], FILCH_NO_DEADLINE) == -ECANCELED);
        CHECK(filch_open(f, path, O_WRONLY | O_NONBLOCK, 0) == -ENXIO);
        CHECK(filch_op_start(f, &ops[0]) == 0 && filch_op_start(f, &ops[1]) == 0);
        for (int j = 0; j < 2; j++)
            CHECK(filch_close(f, (int)filch_op_wait(f, &ops[(i >> 1) ^ j], FILCH_NO_DEADLINE)) ==
                  0);
    }
    CHECK(filch_unlink(f, path) == 0);
}

TEST(a_task_that_starts_to_open_a_pipe_goes_on)
{
    on_pools(open_both_ends, NULL);
}

/* Paths from one file system to others: results are the same on all, whether they come at once or
 * not. */
static void cross_mounts(filch_frame *f, void *arg)
{
    static const char *const places[] = {"proc", "proc/self", "sys", "dev", "dev/pts", "tmp", "."};
    struct statx info;
    (void)arg;

    int root = filch_open(f, "/", O_RDONLY | O_DIRECTORY, 0);
    CHECK(root >= 0);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct stat expected;
        if (fstatat(root, places[i], &expected, 0))
            continue;
        for (int round = 0; round < 2; round++) {
            CHECK(filch_statx(f, root, places[i], 0, STATX_BASIC_STATS, &info) == 0);
            CHECK(info.stx_ino == expected.st_ino && S_ISDIR(info.stx_mode));
            int fd =
                filch_openat(f, root, places[i], O_RDONLY | (round ? O_NONBLOCK : O_DIRECTORY), 0);
            CHECK(fd >= 0 && filch_statx(f, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) == 0);
            CHECK(info.stx_ino == expected.st_ino);
            CHECK(filch_close(f, fd) == 0);
        }
        CHECK(filch_openat(f, root, "tmp/no such file", O_RDONLY | O_NONBLOCK, 0) == -ENOENT);
    }
    CHECK(filch_close(f, root) == 0);
}

TEST(a_path_may_lead_to_another_file_system)
{
    on_pools(cross_mounts, NULL);
    cross_mounts(NULL, NULL);
}

static void use_directories(filch_frame *f, void *arg)
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
        CHECK(strncmp(entry.name, "file", 4) == 0 &&
              (entry.type == DT_REG || entry.type == DT_UNKNOWN));
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

static int make_directory(void **state)
{
    return mkdtemp(directory) ? watchdog_start(state) : -1;
}

static int remove_directory(void **state)
{
    return rmdir(directory) || watchdog_stop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_made_written_read_renamed_and_removed),
        cmocka_unit_test(a_file_gets_a_second_name),
        cmocka_unit_test(no_file_gets_into_the_directory_that_has_a_closed_number),
        cmocka_unit_test(a_file_is_sent_to_a_socket_or_a_pipe),
        cmocka_unit_test(an_open_with_o_nonblock_does_not_wait),
        cmocka_unit_test(an_open_that_waits_for_a_lease_holds_up_no_worker),
        cmocka_unit_test(opens_of_pipes_wait_for_each_other_however_many),
        cmocka_unit_test(an_open_of_a_pipe_waits_as_long_as_it_may),
        cmocka_unit_test(a_task_that_starts_to_open_a_pipe_goes_on),
        cmocka_unit_test(a_path_may_lead_to_another_file_system),
        cmocka_unit_test(a_directory_has_the_entries_that_were_made),
    };
    return cmocka_run_group_tests_name("io_file", tests, make_directory, remove_directory);
}
