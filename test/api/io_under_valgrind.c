/* SPDX-License-Identifier: MIT */
/*
 * For test/api/valgrind: connections, a file, timers and calls that block, in one pool.
 *
 *     io_under_valgrind          do some of each and end; exits with 0 if all of it worked
 *     io_under_valgrind wait     print "waiting" when tasks wait for all of it, and wait on
 *
 * The first line of the output says how the pool does its I/O.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <filch/filch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENTS = 4, BYTES = 5000 };

static struct sockaddr_in address = {.sin_family = AF_INET};
static int listener;
static bool waits;
static char path[] = "/tmp/filch_valgrind_XXXXXX";

static int serve(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[BYTES];
    ssize_t got = filch_read_all(f, fd, buffer, waits ? BYTES + 1 : BYTES);
    ssize_t sent = got == BYTES ? filch_send_all(f, fd, buffer, BYTES, 0) : got;

    filch_close(f, fd);
    return sent == BYTES ? 0 : -EIO;
}

static int accept_clients(filch_frame *f, void *arg)
{
    filch_scope *scope = arg;
    int err = 0;

    for (int i = 0; !err && i < CLIENTS; i++) {
        int fd = filch_accept(f, listener, NULL, NULL, SOCK_CLOEXEC);
        err = fd < 0 ? fd : filch_scope_spawn(f, scope, serve, (void *)(intptr_t)fd);
    }
    return err ? err : waits ? filch_accept(f, listener, NULL, NULL, 0) : 0;
}

static int ask(filch_frame *f, void *arg)
{
    char sent[BYTES], got[BYTES];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int err = filch_connect(f, fd, (struct sockaddr *)&address, sizeof address);
    (void)arg;

    memset(sent, 'x', sizeof sent);
    if (!err && (filch_send_all(f, fd, sent, BYTES, 0) != BYTES ||
                 filch_read_all(f, fd, got, BYTES) != BYTES || memcmp(sent, got, BYTES) != 0))
        err = -EIO;
    filch_close(f, fd);
    return err;
}

static int use_file(filch_frame *f, void *arg)
{
    char text[6] = "";
    struct statx info;
    int fd = filch_open(f, path, O_RDWR, 0);
    (void)arg;

    if (fd < 0)
        return fd;
    bool works = filch_pwrite(f, fd, "filch", 5, 0) == 5 && filch_fsync(f, fd, false) == 0 &&
                 filch_pread(f, fd, text, 5, 0) == 5 && strcmp(text, "filch") == 0 &&
                 filch_statx(f, AT_FDCWD, path, 0, STATX_SIZE, &info) == 0 && info.stx_size == 5;
    return filch_close(f, fd) == 0 && works ? 0 : -EIO;
}

static int nap(filch_frame *f, void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        filch_sleep_ns(f, 100000);
    return filch_sleep_ns(f, waits ? 3600000000000 : 0);
}

static int get_process(void *arg)
{
    *(pid_t *)arg = getpid();
    return 0;
}

static int block(filch_frame *f, void *arg)
{
    pid_t process = 0;
    (void)arg;
    int err = filch_blocking(f, FILCH_LANE_ANY, get_process, &process);
    return err ? err : process == getpid() ? 0 : -EIO;
}

/* The tasks wait in calls of these kinds. */
static bool all_wait(filch_pool *pool)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    filch_pool_dump(pool, out);
    fclose(out);
    bool is_so = strstr(text, "accept") && strstr(text, "sleep") && strstr(text, "read");
    free(text);
    return is_so;
}

static int make_listener(void)
{
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind(listener, (struct sockaddr *)&address, sizeof address) ||
           listen(listener, CLIENTS) || getsockname(listener, (struct sockaddr *)&address, &length);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;
    filch_scope scope;
    int file = mkstemp(path);
    (void)argv;

    waits = argc > 1;
    if (file < 0 || make_listener() || filch_pool_create(&pool, &options) ||
        filch_scope_open(NULL, &scope, pool, NULL))
        return 1;
    printf("I/O by %s\n", filch_pool_io(pool));
    filch_scope_spawn(NULL, &scope, accept_clients, &scope);
    for (int i = 0; i < CLIENTS; i++) {
        filch_scope_spawn(NULL, &scope, ask, NULL);
        filch_scope_spawn(NULL, &scope, nap, NULL);
        filch_scope_spawn(NULL, &scope, use_file, NULL);
        filch_scope_spawn(NULL, &scope, block, NULL);
    }
    if (waits) {
        while (!all_wait(pool))
            usleep(1000);
        unlink(path);
        puts("waiting");
        fflush(stdout);
    }
    int err = filch_scope_close(NULL, &scope);
    unlink(path);
    close(file);
    close(listener);
    if (err)
        fprintf(stderr, "failed: %s\n", filch_strerror(err));
    return filch_pool_destroy(pool) || err;
}
