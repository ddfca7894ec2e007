/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-mixed-load <port> <connections> <requests per s> <milliseconds> <seed>: the client of
 * the servers of unequal requests. It sends at a given rate, whether the server keeps up or not.
 *
 * The seed determines when requests are due, and which are slow (one in ten). It is a Poisson
 * process, the same for every server. A due request goes out on an idle connection, or waits for
 * one.
 *
 * Latency counts from the due time. So a late server does not get fewer requests, and the client's
 * own wait for a core counts, too.
 *
 * Prints RESULT sent=<n> fast=<n> p50_us=<n> p99_us=<n> max_us=<n>, for the fast requests. Exit
 * code 1: an answer was wrong, or none came for a minute.
 */
#include "server.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 64, TEXT_MAX = 256 };

#define PATIENCE_NS UINT64_C(60000000000)

typedef struct request {
    uint64_t due_ns; /* after the start */
    bool is_slow;
    uint64_t latency_ns;
} request;

typedef struct connection {
    int fd;
    request *asked; /* the pending request; NULL: idle */
    size_t got, want;
    char expected[TEXT_MAX], answer[TEXT_MAX];
    struct connection *next_idle;
} connection;

static connection *idle;
static uint64_t start_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "mixed-load: %s\n", what);
    exit(1);
}

/* splitmix64: a number in (0, 1] */
static double draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((double)((z ^ (z >> 31)) >> 11) + 1) / 9007199254740992.0;
}

/* Draw all requests for `ms` milliseconds. Returns their number. */
static size_t draw_requests(request **out, double per_s, double ms, uint64_t seed)
{
    size_t room = 64, count = 0;
    request *all = malloc(room * sizeof *all);
    double due_ns = 0;

    while (all && (due_ns -= log(draw(&seed)) / per_s * 1e9) < ms * 1e6) {
        if (count == room)
            all = realloc(all, (room *= 2) * sizeof *all);
        if (all)
            all[count++] = (request){.due_ns = (uint64_t)due_ns, .is_slow = draw(&seed) <= 0.1};
    }
    if (!all)
        fail("no memory");
    *out = all;
    return count;
}

static void ask(connection *c, request *r, size_t number)
{
    char text[TEXT_MAX], target[32];

    int target_bytes =
        snprintf(target, sizeof target, "/%s/%zu", r->is_slow ? "slow" : "fast", number);
    int bytes = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: here\r\n\r\n", target);
    c->want =
        (size_t)snprintf(c->expected, sizeof c->expected,
                         "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", target_bytes, target);
    c->got = 0;
    c->asked = r;
    if (send(c->fd, text, (size_t)bytes, MSG_NOSIGNAL) != bytes)
        fail("a request could not be sent");
}

/* Returns true if the answer is complete and the connection idle again. */
static bool receive(connection *c)
{
    ssize_t got = recv(c->fd, c->answer + c->got, sizeof c->answer - c->got, MSG_DONTWAIT);

    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0 || !c->asked)
        fail("a connection was closed, or spoke unasked");
    c->got += (size_t)got;
    if (c->got > c->want || memcmp(c->answer, c->expected, c->got) != 0)
        fail("a wrong answer");
    if (c->got < c->want)
        return false;
    c->asked->latency_ns = now_ns() - start_ns - c->asked->due_ns;
    c->asked = NULL;
    c->next_idle = idle;
    idle = c;
    return true;
}

static connection *connect_all(int epoll, int port, size_t count)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    connection *all = calloc(count, sizeof *all);

    for (size_t i = 0; all && i < count; i++) {
        connection *c = &all[i];
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address) ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event))
            fail("no connection");
        send_at_once(c->fd);
        c->next_idle = idle;
        idle = c;
    }
    return all;
}

/* Send each request when it is due, until all are answered. */
static void run(int epoll, request *all, size_t count)
{
    struct epoll_event events[EVENTS];
    size_t sent = 0, answered = 0;
    uint64_t heard_ns = start_ns = now_ns();

    while (answered < count) {
        for (uint64_t due_ns = now_ns() - start_ns;
             idle && sent < count && all[sent].due_ns <= due_ns; sent++) {
            connection *c = idle;
            idle = c->next_idle;
            ask(c, &all[sent], sent);
        }
        /* The next due request, if a connection is idle. */
        uint64_t now = now_ns(), until_ns = now + PATIENCE_NS;
        if (idle && sent < count && start_ns + all[sent].due_ns < until_ns)
            until_ns = start_ns + all[sent].due_ns > now ? start_ns + all[sent].due_ns : now;
        uint64_t wait_ns = until_ns - now;
        struct timespec timeout = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        int ready = epoll_pwait2(epoll, events, EVENTS, &timeout, NULL);
        for (int i = 0; i < ready; i++)
            answered += receive(events[i].data.ptr);
        if (ready > 0 || answered == sent)
            heard_ns = now_ns();
        else if (now_ns() - heard_ns > PATIENCE_NS)
            fail("no answer for a minute");
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: filch-bench-mixed-load <port> <connections> <requests per s> "
                        "<milliseconds> <seed>\n");
        return 2;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    request *requests;
    size_t count =
               draw_requests(&requests, atof(argv[3]), atof(argv[4]), strtoull(argv[5], NULL, 10)),
           fast = 0;
    connection *connections = connect_all(epoll, atoi(argv[1]), (size_t)atoi(argv[2]));
    uint64_t *samples_ns = malloc((count + 1) * sizeof *samples_ns);

    if (!connections || !samples_ns)
        fail("no memory");
    run(epoll, requests, count);
    for (size_t i = 0; i < count; i++)
        if (!requests[i].is_slow)
            samples_ns[fast++] = requests[i].latency_ns;
    if (fast == 0)
        fail("too short: no fast request was due");
    qsort(samples_ns, fast, sizeof *samples_ns, compare);
    printf("RESULT sent=%zu fast=%zu p50_us=%.0f p99_us=%.0f max_us=%.0f\n", count, fast,
           (double)samples_ns[fast / 2] / 1e3, (double)samples_ns[fast * 99 / 100] / 1e3,
           (double)samples_ns[fast - 1] / 1e3);
    free(samples_ns);
    free(connections);
    free(requests);
    return 0;
}
