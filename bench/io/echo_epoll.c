/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-echo-epoll: the least that an echo server can do, a loop around epoll_wait on one
 * thread. Prints PORT and a number.
 */
#include "server.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256 };

static void answer(int fd)
{
    char buffer[MESSAGE_MAX];
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);

    /* Messages of this benchmark fit into the kernel's buffer. */
    if (got > 0 && send(fd, buffer, (size_t)got, MSG_NOSIGNAL) == got)
        return;
    if (got < 0 && errno == EAGAIN)
        return;
    close(fd);
}

int main(void)
{
    int listener = listen_and_say(SOCK_NONBLOCK), epoll = epoll_create1(EPOLL_CLOEXEC), fd;
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.fd = listener};

    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != listener) {
                answer(events[i].data.fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                send_at_once(fd);
                event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
}
