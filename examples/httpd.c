/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1.1 file server: one task per connection, written as straight-line code, and no thread
 * blocks.
 *
 *     httpd                                        serve a small directory to itself, then exit;
 *                                                  this mode is the test
 *     httpd [options] <root> <port> [<workers>]    serve 127.0.0.1:<port> until interrupted;
 *                                                  port 0: any free port
 *
 *     -n <connections>   most connections at a time, 0: any number [10000]
 *     -t <ms>            time for a client to send a head, or to take 64 KiB [10000]
 *     -k <ms>            time between two requests of a connection [60000]
 *     -c                 /compute?ms=<n> computes for that long: for benchmarks
 *
 * When there are too many connections, or no more descriptors or stacks, the server closes the
 * connection that has waited longest for a request (http/room.h). It does not close the connection
 * of a client that takes its answer slowly; -t limits that.
 *
 * Supported: GET, HEAD, persistent connections, one byte range, If-Modified-Since.
 *
 * The server follows no symbolic link and hides names that begin with a dot, so no byte comes from
 * outside the root. There are no listings: a request for a directory gets its index.html.
 */
#define _GNU_SOURCE
#include "http/parse.h"
#include "http/room.h"

#include <arpa/inet.h>
#include <errno.h>
#include <filch/filch.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

enum { BLOCK = 65536, LINGER_MS = 2000, COMPUTE_MAX_MS = 10000, SHORT_MS = 1000, LOOK_MS = 10 };

/* The most bytes that wait unsent in a socket. Without a limit the kernel takes 4 MB for a client
 * that reads nothing: many such clients at once keep the worker copying, and others wait. A limited
 * socket is writable again when less than half of the limit is unsent.
 *
 * The worker wakes up more often for a limited socket. So a client that takes FAST_BYTES in FAST_MS
 * gets the kernel's default for the rest of its answer, or until a block takes FAST_MS. */
enum { UNSENT_BYTES = 2 * BLOCK, FAST_BYTES = 1 << 20, FAST_MS = 1000 };

static struct {
    int root, listener, signals;
    struct sockaddr_in address;
    unsigned connections;
    uint64_t transfer_ms, idle_ms;
    bool computes;
    _Atomic bool is_accepting; /* a task waits for the next connection */
    http_room room;
} server = {.connections = 10000, .transfer_ms = 10000, .idle_ms = 60000, .room = HTTP_ROOM_INIT};

/* Lives on the stack of its task. Untouched pages cost nothing. */
typedef struct connection {
    int fd;
    bool is_fast;     /* the socket has the kernel's default for unsent bytes: limit_again */
    http_place place; /* in the list of those that wait for a request */
    size_t in_bytes, out_bytes;
    http_request request;
    char in[HTTP_HEAD_MAX]; /* a head, and perhaps later ones */
    char out[BLOCK];        /* bytes to send */
} connection;

/* ---- answers --------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } all[] = {{200, "OK"},
               {206, "Partial Content"},
               {301, "Moved Permanently"},
               {304, "Not Modified"},
               {400, "Bad Request"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {408, "Request Timeout"},
               {414, "URI Too Long"},
               {416, "Range Not Satisfiable"},
               {431, "Request Header Fields Too Large"},
               {501, "Not Implemented"},
               {503, "Service Unavailable"},
               {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].status == status)
            return all[i].reason;
    return "Internal Server Error";
}

static const char *type_of(const char *path)
{
    static const char *const all[][2] = {{".html", "text/html; charset=utf-8"},
                                         {".css", "text/css; charset=utf-8"},
                                         {".js", "text/javascript; charset=utf-8"},
                                         {".txt", "text/plain; charset=utf-8"},
                                         {".json", "application/json"},
                                         {".svg", "image/svg+xml"},
                                         {".png", "image/png"},
                                         {".jpg", "image/jpeg"},
                                         {".gif", "image/gif"},
                                         {".webp", "image/webp"},
                                         {".ico", "image/x-icon"},
                                         {".woff2", "font/woff2"},
                                         {".wasm", "application/wasm"},
                                         {".pdf", "application/pdf"}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof all / sizeof *all; i++)
        if (strcmp(dot, all[i][0]) == 0)
            return all[i][1];
    return "application/octet-stream";
}

/* The year has four digits, whatever the file's time is. */
static const char *date_of(time_t time, char date[static 30])
{
    const time_t first = -62135596800, last = 253402300799; /* start of year 1, end of year 9999 */
    struct tm parts;

    time = time < first ? first : MIN(time, last);
    if (strftime(date, 30, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&time, &parts)) == 0)
        date[0] = 0;
    return date;
}

/* Append to `out`. A head always fits: its longest part is the target. */
__attribute__((format(printf, 2, 3))) static void say(connection *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    c->out_bytes +=
        (size_t)vsnprintf(c->out + c->out_bytes, sizeof c->out - c->out_bytes, format, list);
    va_end(list);
}

static void say_status(connection *c, int status)
{
    char date[30];
    say(c, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason_of(status), date_of(time(NULL), date));
    if (c->request.is_last || c->request.is_old)
        say(c, "Connection: %s\r\n", c->request.is_last ? "close" : "keep-alive");
}

static int limit_unsent(int fd, int bytes)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static void limit_again(connection *c)
{
    if (c->is_fast)
        c->is_fast = limit_unsent(c->fd, UNSENT_BYTES) != 0;
}

/* Has the client taken a block since the socket had `queued` bytes for it? */
static bool has_taken_block(const connection *c, int64_t *queued)
{
    int now = 0;
    bool has_taken = ioctl(c->fd, SIOCOUTQ, &now) == 0 && *queued - now >= BLOCK;

    *queued = now;
    return has_taken;
}

/* Send `out`. Returns 0 or -errno. The client may have to take much more than a block until the
 * socket is writable: a third of a full socket without a limit, or the steps in which its window
 * grows. So after a time-out, ask the kernel what the client has taken. */
static int flush(filch_frame *f, connection *c)
{
    uint64_t deadline_ns = filch_after_ms(MIN(server.transfer_ms, FAST_MS));
    int64_t queued = INT32_MAX; /* not known: the first time-out is not the end */
    size_t sent = 0;

    while (sent < c->out_bytes) {
        filch_op op = filch_op_send(c->fd, c->out + sent, c->out_bytes - sent, 0);
        ssize_t result = filch_op_run(f, &op, deadline_ns);
        if (result == -ETIMEDOUT && has_taken_block(c, &queued)) {
            limit_again(c);
            deadline_ns = filch_after_ms(server.transfer_ms);
            continue;
        }
        if (result < 0)
            return (int)result;
        sent += (size_t)result;
        queued += result;
    }
    c->out_bytes = 0;
    return 0;
}

/* Answer without a file. */
static int answer(filch_frame *f, connection *c, int status, uint64_t file_bytes)
{
    char body[64];
    int bytes = snprintf(body, sizeof body, "%d %s\n", status, reason_of(status));

    say_status(c, status);
    if (status == 301)
        say(c, "Location: %.*s/\r\n", (int)c->request.target.bytes, c->request.target.at);
    if (status == 405)
        say(c, "Allow: GET, HEAD\r\n");
    if (status == 416)
        say(c, "Content-Range: bytes */%" PRIu64 "\r\n", file_bytes);
    say(c, "Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", bytes,
        c->request.is_head ? "" : body);
    return flush(f, c);
}

static int answer_error(filch_frame *f, connection *c, int err)
{
    switch (-err) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
        return answer(f, c, 404, 0);
    case ELOOP: /* a symbolic link */
    case EACCES:
    case EPERM:
    case ENXIO: /* a socket */
        return answer(f, c, 403, 0);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return answer(f, c, 503, 0);
    default:
        return answer(f, c, 500, 0);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Open a file directory by directory; none may be a symbolic link. The parser guarantees that no
 * part of the path is "..". */
static int open_beneath(filch_frame *f, char *path)
{
    int at = server.root;

    for (char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        *slash = 0;
        int next = filch_openat(f, at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
        *slash = '/';
        if (at != server.root)
            filch_close(f, at);
        at = next;
    }
    if (at < 0)
        return at;
    /* Without O_NONBLOCK, opening a FIFO would wait for its writer. */
    int file = filch_openat(f, at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (at != server.root)
        filch_close(f, at);
    return file;
}

static bool is_short(int err)
{
    return err == -EMFILE || err == -ENFILE;
}

/* As open_beneath. If there are no descriptors, wait until other connections are closed. */
static int open_file(filch_frame *f, char *path)
{
    uint64_t deadline_ns = filch_after_ms(SHORT_MS);
    int file = open_beneath(f, path);

    while (is_short(file) && filch_now_ns() < deadline_ns &&
           http_room_make(f, &server.room) != -ECANCELED)
        file = open_beneath(f, path);
    return file;
}

/* Send the file; its first block goes out with the head. */
static int send_file(filch_frame *f, connection *c, int file, uint64_t offset, uint64_t bytes)
{
    uint64_t fast_ns = filch_after_ms(FAST_MS), fast_offset = offset + FAST_BYTES;
    int err = 0;

    limit_again(c);
    do {
        size_t room = MIN(bytes, sizeof c->out - c->out_bytes);
        ssize_t got = room ? filch_pread(f, file, c->out + c->out_bytes, room, offset) : 0;
        if (got < 0 || (got == 0 && room > 0))
            return got < 0 ? (int)got : -EIO; /* shorter than the length in the head */
        c->out_bytes += (size_t)got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
        err = flush(f, c);
        if (!c->is_fast && offset >= fast_offset && filch_now_ns() < fast_ns)
            c->is_fast = limit_unsent(c->fd, 0) == 0;
    } while (!err && bytes > 0);
    return err;
}

static int answer_file(filch_frame *f, connection *c, int file, const char *type)
{
    const http_request *r = &c->request;
    struct statx info;
    char date[30];
    int err = filch_statx(f, file, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE | STATX_MTIME, &info);

    if (err)
        return answer_error(f, c, err);
    if (S_ISDIR(info.stx_mode) && r->target.bytes > 0 && r->target.at[r->target.bytes - 1] != '/') {
        /* In a Location field, two slashes at the start would name another host. */
        for (; r->target.bytes > 1 && r->target.at[1] == '/'; c->request.target.at++)
            c->request.target.bytes--;
        return answer(f, c, 301, 0);
    }
    if (!S_ISREG(info.stx_mode))
        return answer(f, c, 403, 0);

    date_of(info.stx_mtime.tv_sec, date);
    if (r->modified.bytes == strlen(date) && memcmp(r->modified.at, date, r->modified.bytes) == 0) {
        say_status(c, 304);
        say(c, "Last-Modified: %s\r\n\r\n", date);
        return flush(f, c);
    }
    uint64_t size = info.stx_size, first = 0, bytes = size;
    if (r->has_range) {
        first = r->first <= r->last ? r->first : size - MIN(size, r->last);
        if (first >= size)
            return answer(f, c, 416, size);
        bytes = r->first <= r->last ? MIN(r->last, size - 1) - first + 1 : size - first;
    }
    say_status(c, r->has_range ? 206 : 200);
    if (r->has_range)
        say(c, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", first,
            first + bytes - 1, size);
    say(c,
        "Content-Type: %s\r\nContent-Length: %" PRIu64
        "\r\nLast-Modified: %s\r\nAccept-Ranges: bytes\r\n\r\n",
        type, bytes, date);
    return r->is_head ? flush(f, c) : send_file(f, c, file, first, bytes);
}

/* ---- connections ----------------------------------------------------------------------------- */

static int compute(filch_frame *f, connection *c)
{
    http_text query = c->request.query; /* in `in`, followed by a space: strtoul stops there */
    bool has_time = query.bytes > 3 && memcmp(query.at, "ms=", 3) == 0;
    unsigned long ms = has_time ? strtoul(query.at + 3, NULL, 10) : 0;
    uint64_t end_ns = filch_after_ms(MIN(ms, COMPUTE_MAX_MS));

    while (filch_now_ns() < end_ns)
        ;
    return answer(f, c, 200, 0);
}

/* Answer one request. Returns 0, or -errno if the connection is unusable. */
static int serve_request(filch_frame *f, connection *c)
{
    if (c->request.status)
        return answer(f, c, c->request.status, 0);
    if (server.computes && strcmp(c->request.path, "compute") == 0)
        return compute(f, c);

    const char *type = type_of(c->request.path);
    int file = open_file(f, c->request.path);
    if (file < 0)
        return answer_error(f, c, file);
    int err = answer_file(f, c, file, type);
    filch_close(f, file);
    return err;
}

/* Receive bytes of a head. If no task accepts connections meanwhile, perhaps there is no stack for
 * such a task. */
static ssize_t receive_more(filch_frame *f, connection *c, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t look_ns =
            atomic_load(&server.is_accepting) ? deadline_ns : filch_after_ms(LOOK_MS);
        filch_op op = filch_op_recv(c->fd, c->in + c->in_bytes, sizeof c->in - c->in_bytes, 0);
        ssize_t got = filch_op_run(f, &op, MIN(look_ns, deadline_ns));
        if (got != -ETIMEDOUT || look_ns >= deadline_ns)
            return got;
        if (!atomic_load(&server.is_accepting))
            http_room_make_stack(f, &server.room);
    }
}

/* Wait for a whole head. Returns its length, 0 if no more heads come, or -status. */
static int receive_whole_head(filch_frame *f, connection *c)
{
    uint64_t deadline_ns = filch_after_ms(c->in_bytes > 0 ? server.transfer_ms : server.idle_ms);
    size_t enough_bytes = 0;
    bool has_line = true, is_step = true; /* to wait for a head, or for its rest */

    for (;;) {
        /* The parser starts from the first byte each time, and a head may come byte by byte. So
         * parse only when a line ended, when the input doubled, and at the limits: the latter two
         * find errors within a line. */
        if (has_line || c->in_bytes >= enough_bytes) {
            int head = http_parse(&c->request, c->in, c->in_bytes);
            if (head != 0)
                return head;
            enough_bytes =
                MIN(2 * c->in_bytes, c->in_bytes < HTTP_LINE_MAX ? HTTP_LINE_MAX : HTTP_HEAD_MAX);
        }
        if (is_step)
            http_room_wait(&server.room, &c->place, c->fd);
        is_step = c->in_bytes == 0;
        ssize_t got = receive_more(f, c, deadline_ns);
        if (got == -ETIMEDOUT && c->in_bytes > 0) {
            c->request.is_last = true;
            return -408;
        }
        if (got <= 0)
            return 0;
        if (c->in_bytes == 0)
            deadline_ns = filch_after_ms(server.transfer_ms);
        has_line = memchr(c->in + c->in_bytes, '\n', (size_t)got);
        c->in_bytes += (size_t)got;
    }
}

static int receive_head(filch_frame *f, connection *c)
{
    int head = receive_whole_head(f, c);
    return http_room_go_on(&server.room, &c->place) ? head : 0;
}

/* Read the rest of the input before closing. If bytes were left unread, the kernel would reset the
 * connection, and the client might lose the answer. */
static void linger(filch_frame *f, connection *c)
{
    uint64_t deadline_ns = filch_after_ms(LINGER_MS);
    ssize_t got;

    filch_shutdown(f, c->fd, SHUT_WR);
    http_room_wait(&server.room, &c->place, c->fd);
    do {
        filch_op op = filch_op_recv(c->fd, c->in, sizeof c->in, 0);
        got = filch_op_run(f, &op, deadline_ns);
    } while (got > 0 && filch_now_ns() < deadline_ns);
    http_room_go_on(&server.room, &c->place);
}

static void serve(filch_frame *f, int fd)
{
    connection c;
    int head, err = 0;

    c.fd = fd;
    c.is_fast = false;
    c.place = (http_place){0};
    c.in_bytes = c.out_bytes = 0;
    while ((head = receive_head(f, &c)) != 0) {
        err = head > 0 ? serve_request(f, &c) : answer(f, &c, -head, 0);
        if (err || c.request.is_last)
            break;
        c.in_bytes -= (size_t)head;
        memmove(c.in, c.in + head, c.in_bytes);
    }
    if (head != 0 && !err)
        linger(f, &c);
    filch_close(f, c.fd);
    http_room_leave(&server.room, &c.place);
}

/* There are no descriptors. The kernel says so before a client comes, so wait for it first. */
static int make_room_for_client(filch_frame *f)
{
    int events = filch_poll(f, server.listener, POLLIN);
    return events < 0 ? events : http_room_make(f, &server.room);
}

/* Returns the next connection, or -ECANCELED. */
static int accept_next(filch_frame *f)
{
    int err = 0;

    while (err != -ECANCELED) {
        int fd = filch_accept(f, server.listener, NULL, NULL, 0);
        if (is_short(fd)) {
            err = make_room_for_client(f);
        } else if (fd >= 0) {
            err = http_room_enter(f, &server.room, server.connections);
            if (!err)
                return fd;
            filch_close(f, fd);
        } else if (fd != -ECONNABORTED) {
            /* Memory is exhausted: wait until other connections return some. */
            err = fd == -ECANCELED ? fd : filch_sleep_ns(f, 10000000);
        }
    }
    return err;
}

/*
 * One task at a time accepts. With a connection it lets another task accept, and serves the
 * connection itself. The other task may never begin: there may be no memory for its stack, or the
 * scope is cancelled (filch/scope.h). Nothing is lost then, because it has no connection yet, and
 * the first task that has served its own accepts the next one.
 */
static int accept_and_serve(filch_frame *f, void *arg)
{
    filch_scope *scope = arg;

    while (!atomic_exchange(&server.is_accepting, true)) {
        int fd = accept_next(f);
        if (fd < 0)
            break;
        atomic_store(&server.is_accepting, false);
        filch_scope_spawn(f, scope, accept_and_serve, scope);
        serve(f, fd);
    }
    return 0; /* the error of one client does not stop the server */
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Send a request. Print its first line, then status and body of the answer. */
static void ask(filch_frame *f, int fd, const char *request)
{
    char text[4096];
    size_t used = 0, want = sizeof text - 1;
    ssize_t got = filch_send_all(f, fd, request, strlen(request), 0);
    char *body = NULL;

    while (got > 0 && used < want && (got = filch_recv(f, fd, text + used, want - used, 0)) > 0) {
        used += (size_t)got;
        text[used] = 0;
        if (!body && (body = strstr(text, "\r\n\r\n"))) {
            const char *length = strstr(text, "Content-Length: ");
            body += 4;
            want = (size_t)(body - text) +
                   (length && request[0] != 'H' ? strtoul(length + 16, NULL, 10) : 0);
        }
    }
    text[used] = 0;
    printf("%.*s\n", (int)strcspn(request, "\r"), request);
    printf("    %.*s\n", (int)strcspn(text, "\r"), text);
    if (body && *body)
        printf("    %.*s\n", (int)strcspn(body, "\n"), body);
}

static void demonstrate(filch_frame *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (filch_connect(f, fd, (struct sockaddr *)&server.address, sizeof server.address) == 0) {
        ask(f, fd, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
        ask(f, fd, "HEAD /index.html HTTP/1.1\r\nHost: here\r\n\r\n");
        ask(f, fd, "GET /index.html HTTP/1.1\r\nHost: here\r\nRange: bytes=0-4\r\n\r\n");
        ask(f, fd, "GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: here\r\n\r\n");
        ask(f, fd, "GET /nothing HTTP/1.1\r\nHost: here\r\n\r\n");
        ask(f, fd, "POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    }
    filch_close(f, fd);
}

static void run(filch_frame *f, void *arg)
{
    struct signalfd_siginfo signal;
    filch_scope scope;
    bool *is_demo = arg;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    if (filch_scope_spawn(f, &scope, accept_and_serve, &scope) == 0) {
        if (*is_demo)
            demonstrate(f);
        else
            filch_read(f, server.signals, &signal, sizeof signal);
    }
    filch_scope_cancel(&scope);
    filch_scope_close(f, &scope);
}

static int make_demo_root(char *path)
{
    static const char page[] = "Hello from a task.\n";
    int root = mkdtemp(path) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int file = openat(root, "index.html", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    bool is_written = write(file, page, sizeof page - 1) == sizeof page - 1;
    close(file);
    return is_written ? root : -1;
}

/* Parse a number from 0 to `most`; exit with 2 if `text` is none. */
static unsigned number(const char *text, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value > most) {
        fprintf(stderr, "httpd: '%s' is no number from 0 to %lu\n", text, most);
        exit(2);
    }
    return (unsigned)value;
}

static int listen_at(unsigned port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    socklen_t length = sizeof server.address;

    server.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    server.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* Accepted connections inherit these two. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    limit_unsent(fd, UNSENT_BYTES);
    if (bind(fd, (struct sockaddr *)&server.address, length) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&server.address, &length))
        return -1;
    return fd;
}

int main(int argc, char **argv)
{
    char demo_path[] = "/tmp/httpd.XXXXXX";
    filch_options options = {.size = sizeof options, .stack_bytes = 256 << 10};
    struct rlimit files;
    sigset_t signals;
    filch_pool *pool;
    bool is_understood = true;

    for (int option; (option = getopt(argc, argv, "n:t:k:c")) != -1;) {
        if (option == 'n')
            server.connections = number(optarg, 1000000);
        else if (option == 't')
            server.transfer_ms = number(optarg, 86400000);
        else if (option == 'k')
            server.idle_ms = number(optarg, 86400000);
        else if (option == 'c')
            server.computes = true;
        else
            is_understood = false;
    }
    bool is_demo = optind == argc;
    if (!is_understood || (!is_demo && argc - optind < 2)) {
        fprintf(stderr,
                "usage: httpd [-n connections] [-t ms] [-k ms] [-c] <root> <port> [<workers>]\n");
        return 2;
    }
    options.workers = argc - optind > 2 ? number(argv[optind + 2], 1000) : 0;

    server.root =
        is_demo ? make_demo_root(demo_path) : open(argv[optind], O_PATH | O_DIRECTORY | O_CLOEXEC);
    server.listener =
        server.root >= 0 ? listen_at(is_demo ? 0 : number(argv[optind + 1], 65535)) : -1;
    /* A task reads the signals from a signalfd, so all threads block them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    server.signals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (server.listener < 0 || server.signals < 0) {
        perror("httpd");
        return 1;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!is_demo) {
        printf("listening on port %u\n", ntohs(server.address.sin_port));
        fflush(stdout);
    }
    int err = filch_pool_create(&pool, &options);
    if (!err) {
        filch_run(pool, run, &is_demo);
        err = filch_pool_destroy(pool);
    }
    if (err)
        fprintf(stderr, "httpd: %s\n", filch_strerror(err));
    if (is_demo) {
        unlinkat(server.root, "index.html", 0);
        rmdir(demo_path);
    }
    close(server.listener);
    close(server.signals);
    close(server.root);
    return err ? 1 : 0;
}
