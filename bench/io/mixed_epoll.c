/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-mixed-epoll: a server of unequal requests, as a loop around epoll_wait on one thread.
 * While one request computes, no other is answered. Prints PORT and a number.
 */
#include "mixed.h"

#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, CONNECTIONS_MAX = 1024 };

static mixed_input inputs[CONNECTIONS_MAX]; /* by descriptor */

/* Answer all received requests. Returns false if the connection is unusable. */
static bool answer(int fd)
{
    mixed_input *in = &inputs[fd];
    mixed_request request;
    char text[ANSWER_MAX];
    int got_one;

    ssize_t got = recv(fd, in->text + in->bytes, HEAD_MAX - in->bytes, 0);
    if (got <= 0)
        return false;
    in->bytes += (size_t)got;
    while ((got_one = mixed_take(in, &request)) > 0) {
        if (request.is_slow)
            mixed_compute();
        /* Answers of this benchmark fit into the kernel's buffer. */
        size_t bytes = mixed_answer(&request, text);
        if (send(fd, text, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
            return false;
    }
    return got_one == 0;
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
                if (!answer(events[i].data.fd))
                    close(events[i].data.fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                if (fd >= CONNECTIONS_MAX) {
                    close(fd);
                    continue;
                }
                send_at_once(fd);
                inputs[fd].bytes = 0;
                event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
}
