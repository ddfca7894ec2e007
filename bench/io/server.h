/* SPDX-License-Identifier: MIT */
/*
 * Shared by the compared servers: open a listening socket and print its port.
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define MESSAGE_MAX 4096

/* Listen on a free local port and print it. Exits on failure. */
static inline int listen_and_say(int type_flags)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type_flags, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) ||
        listen(listener, 4096) || getsockname(listener, (struct sockaddr *)&address, &length)) {
        perror("listen");
        exit(1);
    }
    printf("PORT %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static inline void send_at_once(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

#endif
