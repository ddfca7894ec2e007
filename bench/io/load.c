/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-load <port> <connections> <milliseconds>: the client of the echo servers. Each
 * connection sends its next request as soon as it has its answer.
 *
 * The client stops when the time is over and it has received as many answers as it has connections.
 * Prints RESULT requests_per_s=<n> p50_us=<n> p99_us=<n>. Exit code 1: an answer was wrong, or none
 * came for a minute.
 */
#include "server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, MESSAGE = 64, SAMPLES_MAX = 1 << 20, PATIENCE_MS = 60000 };

typedef struct connection {
    int fd;
    uint64_t number, asked_ns;
    size_t got;
    char answer[MESSAGE];
} connection;

static uint32_t samples_ns[SAMPLES_MAX];
static size_t sample_count;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void ask(connection *c)
{
    uint64_t question[MESSAGE / 8];

    c->number++;
    for (size_t i = 0; i < MESSAGE / 8; i++)
        question[i] = c->number * 31 + i + (uint64_t)c->fd;
    c->got = 0;
    c->asked_ns = now_ns();
    if (send(c->fd, question, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
        fail("send");
}

/* Returns true if the answer is complete. */
static bool receive(connection *c)
{
    ssize_t got = recv(c->fd, c->answer + c->got, MESSAGE - c->got, 0);

    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0)
        fail("recv");
    c->got += (size_t)got;
    if (c->got < MESSAGE)
        return false;
    for (size_t i = 0; i < MESSAGE / 8; i++) {
        uint64_t word;
        memcpy(&word, c->answer + 8 * i, 8);
        if (word != c->number * 31 + i + (uint64_t)c->fd) {
            fprintf(stderr, "load: a wrong answer\n");
            exit(1);
        }
    }
    if (sample_count < SAMPLES_MAX)
        samples_ns[sample_count++] = (uint32_t)(now_ns() - c->asked_ns);
    return true;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)atoi(argv[1]))};
    int count = atoi(argv[2]), epoll = epoll_create1(EPOLL_CLOEXEC);
    connection *connections = calloc((size_t)count, sizeof *connections);
    struct epoll_event events[EVENTS];
    uint64_t request_count = 0;

    for (int i = 0; i < count; i++) {
        connection *c = &connections[i];
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address))
            fail("connect");
        send_at_once(c->fd);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
    }
    uint64_t start_ns = now_ns(), end_ns = start_ns + (uint64_t)atol(argv[3]) * 1000000u;
    for (int i = 0; i < count; i++)
        ask(&connections[i]);
    while (now_ns() < end_ns || request_count < (uint64_t)count) {
        int ready = epoll_wait(epoll, events, EVENTS, PATIENCE_MS);
        if (ready == 0) {
            fprintf(stderr, "load: no answer for a minute\n");
            exit(1);
        }
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            if (!receive(c))
                continue;
            request_count++;
            ask(c);
        }
    }
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    qsort(samples_ns, sample_count, sizeof samples_ns[0], compare);
    printf("RESULT requests_per_s=%.0f p50_us=%.1f p99_us=%.1f\n", (double)request_count / seconds,
           samples_ns[sample_count / 2] / 1e3, samples_ns[sample_count * 99 / 100] / 1e3);
    free(connections);
    return 0;
}
