/* SPDX-License-Identifier: MIT */
/*
 * Files and directories, in a folder of the program.
 */
#include "attack.h"

#include <netdb.h>

#define BLOCK 1000
#define BLOCKS 8

/* No task receives while a part of the file is sent. So the part must fit into the socket, even if
 * each byte becomes a message of its own. */
#define SENT 200

/* ---- contents -------------------------------------------------------------------------------- */

static void fill(unsigned char *bytes, unsigned block, unsigned seed)
{
    for (unsigned i = 0; i < BLOCK; i++)
        bytes[i] = (unsigned char)(block * 37 + i + seed);
}

/* Write all blocks, in any order, one by one or several at once. Returns whether all was
 * written. */
static bool write_blocks(filch_frame *f, actor *a, int fd, unsigned seed)
{
    unsigned char bytes[BLOCKS][BLOCK];
    filch_op ops[BLOCKS];
    unsigned first = below(a, BLOCKS);
    bool is_complete = true;

    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned block = (first + i) % BLOCKS;
        fill(bytes[block], block, seed);
        ops[block] = filch_op_pwrite(fd, bytes[block], BLOCK, (uint64_t)block * BLOCK);
        CHECK_EQUAL(filch_op_start(f, &ops[block]), 0);
    }
    for (unsigned block = 0; block < BLOCKS; block++) {
        ssize_t done = filch_op_wait(f, &ops[block], FILCH_NO_DEADLINE);
        while (ok(f, a, done, may_fail_io(0)) && done < BLOCK) {
            ssize_t more = filch_pwrite(f, fd, bytes[block] + done, (size_t)(BLOCK - done),
                                        (uint64_t)block * BLOCK + (uint64_t)done);
            done = more < 0 ? more : done + more;
        }
        is_complete &= done == BLOCK;
    }
    return is_complete;
}

static void read_blocks(filch_frame *f, actor *a, int fd, unsigned seed)
{
    unsigned char bytes[BLOCK], expected[BLOCK];

    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned block = below(a, BLOCKS), from = below(a, BLOCK),
                 count = 1 + below(a, BLOCK - from);
        fill(expected, block, seed);
        ssize_t got = filch_pread(f, fd, bytes, count, (uint64_t)block * BLOCK + from);
        if (!ok(f, a, got, may_fail_io(0)))
            continue;
        CHECK(got > 0 && got <= (ssize_t)count);
        CHECK(memcmp(bytes, expected + from, (size_t)got) == 0);
    }
}

static void send_file(filch_frame *f, actor *a, int fd, unsigned seed)
{
    unsigned char bytes[BLOCK], expected[BLOCK];
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    ssize_t sent = filch_sendfile(f, pair[0], fd, BLOCK, SENT);
    if (ok(f, a, sent, may_fail_io(0))) {
        CHECK_EQUAL(sent, SENT);
        fill(expected, 1, seed);
        for (ssize_t done = 0, got; done<SENT; done += got> 0 ? got : 0) {
            got = recv(pair[1], bytes + done, (size_t)(SENT - done), 0);
            CHECK(got > 0 || errno == EINTR);
        }
        CHECK(memcmp(bytes, expected, SENT) == 0);
    }
    close(pair[0]);
    close(pair[1]);
}

void op_file(filch_frame *f, actor *a)
{
    unsigned seed = below(a, 256);
    bool is_named = one_in(a, 2);
    char name[32];
    struct statx info;

    note_if(a, true, is_named ? "named" : "O_TMPFILE");
    snprintf(name, sizeof name, "f%llx", (unsigned long long)number(a));
    int fd = is_named ? filch_openat(f, the_world.folder_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600)
                      : filch_open(f, the_world.folder, O_RDWR | O_TMPFILE, 0600);
    if (!ok(f, a, fd, may_fail_io(0))) {
        /* Cancelled, but too late: then the file exists, and the descriptor was closed. */
        unlinkat(the_world.folder_fd, name, 0);
        return;
    }
    if (write_blocks(f, a, fd, seed)) {
        ok(f, a, filch_fsync(f, fd, one_in(a, 2)), may_fail_io(0));
        read_blocks(f, a, fd, seed);
        send_file(f, a, fd, seed);
        int err = filch_statx(f, fd, "", AT_EMPTY_PATH, STATX_SIZE, &info);
        if (ok(f, a, err, may_fail_io(0)))
            CHECK_EQUAL(info.stx_size, BLOCKS * BLOCK);
    }
    CHECK_EQUAL(filch_close(f, fd), 0);
    if (is_named && !ok(f, a, filch_unlinkat(f, the_world.folder_fd, name, 0), may_fail_io(0)))
        unlinkat(the_world.folder_fd, name, 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

#define FILES 5

static void list(filch_frame *f, actor *a, const char *folder, unsigned expected)
{
    filch_dir dir;
    filch_dirent entry;
    unsigned count = 0;
    int err;

    if (!ok(f, a, filch_dir_open(f, &dir, the_world.folder_fd, folder), may_fail_io(0)))
        return;
    while ((err = filch_dir_next(f, &dir, &entry)) > 0)
        count++;
    if (ok(f, a, err, may_fail_io(0)))
        CHECK_EQUAL(count, expected);
    filch_dir_close(f, &dir);
}

static void look_up(filch_frame *f, actor *a)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found;
    int err = filch_getaddrinfo(f, "127.0.0.1", "80", &hints, &found);

    if (err == 0)
        freeaddrinfo(found);
    else
        CHECK((err == EAI_CANCELED && f && a->is_cancellable) ||
              (err == EAI_AGAIN && fault_is_on(PART_paths)));
}

/* The calls that change names take effect once, or return an error and do not. Cancelled calls may
 * have had an effect: then only what is left is removed. */
void op_names(filch_frame *f, actor *a)
{
    int at = the_world.folder_fd, may = may_fail_io(0);
    char folder[32], old[64], new[64];
    unsigned count = 0;
    bool is_sure = true;

    snprintf(folder, sizeof folder, "d%llx", (unsigned long long)number(a));
    if (ok(f, a, filch_mkdirat(f, at, folder, 0700), may)) {
        for (unsigned i = 0; i < FILES; i++) {
            snprintf(old, sizeof old, "%s/%u", folder, i);
            snprintf(new, sizeof new, "%s/n%u", folder, i);
            int fd = filch_openat(f, at, old, O_WRONLY | O_CREAT | O_EXCL, 0600), err = fd;
            if (ok(f, a, fd, may)) {
                count++;
                CHECK_EQUAL(filch_close(f, fd), 0);
                err = one_in(a, 2) ? filch_renameat(f, at, old, at, new, 0)
                                   : filch_linkat(f, at, old, at, new, 0);
                ok(f, a, err, may);
                count += err == 0 && faccessat(at, old, F_OK, 0) == 0;
            }
            is_sure &= fd >= 0 && err == 0;
        }
        if (is_sure)
            list(f, a, folder, count);
    }
    look_up(f, a);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(old, sizeof old, "%s/%u", folder, i);
        snprintf(new, sizeof new, "%s/n%u", folder, i);
        unlinkat(at, old, 0);
        unlinkat(at, new, 0);
    }
    unlinkat(at, folder, AT_REMOVEDIR);
}
