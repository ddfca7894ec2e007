/* SPDX-License-Identifier: MIT */
/*
 * The open of a FIFO, when the kernel has no memory to say what is at the path. Run once for each
 * way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/filch.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static bool has_no_memory;

int __real_fstatat(int at, const char *path, struct stat *result, int flags);
int __wrap_fstatat(int at, const char *path, struct stat *result, int flags);

/* The library calls this one. */
int __wrap_fstatat(int at, const char *path, struct stat *result, int flags)
{
    if (!has_no_memory)
        return __real_fstatat(at, path, result, flags);
    errno = ENOMEM;
    return -1;
}

static void open_fifo(filch_frame *f, void *path)
{
    /* There is a reader, so that an open that blocks ends, too. */
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(reader >= 0);

    has_no_memory = true;
    int refused = filch_open(f, path, O_WRONLY, 0);
    has_no_memory = false;
    int fd = filch_open(f, path, O_WRONLY, 0);

    CHECK(refused == -ENOMEM);
    CHECK(fd >= 0);
    CHECK(filch_close(f, fd) == 0);
    close(reader);
}

/* A blocking open could not be cancelled. */
TEST(an_open_fails_that_cannot_tell_whether_it_would_block)
{
    char folder[] = "/tmp/filch_fifo_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);

    on_pools(open_fifo, path);

    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_fails_that_cannot_tell_whether_it_would_block),
    };
    return cmocka_run_group_tests_name("io_open_fault", tests, watchdog_start, watchdog_stop);
}
