/* SPDX-License-Identifier: MIT */
/*
 * Shared by the servers of unequal requests: the part of HTTP that their client uses, and the work.
 *
 * A request is a head without a body. The answer has the target as its body, so the client can
 * match it with the request. A target that begins with /slow takes 5 ms of a core.
 */
#ifndef BENCH_MIXED_H
#define BENCH_MIXED_H

#include "server.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { HEAD_MAX = 512, ANSWER_MAX = 256, TARGET_MAX = 64, SLOW_NS = 5000000 };

/* Received bytes. */
typedef struct mixed_input {
    size_t bytes;
    char text[HEAD_MAX + 1];
} mixed_input;

typedef struct mixed_request {
    bool is_slow;
    char target[TARGET_MAX];
} mixed_request;

/* Take the next request from the input. Returns 1, 0 if it is incomplete, or -1 if it is invalid.
 * */
static inline int mixed_take(mixed_input *in, mixed_request *request)
{
    in->text[in->bytes] = 0;
    char *end = strstr(in->text, "\r\n\r\n");
    if (!end)
        return in->bytes < HEAD_MAX ? 0 : -1;
    size_t target_bytes = strncmp(in->text, "GET ", 4) ? 0 : strcspn(in->text + 4, " \r");
    if (target_bytes == 0 || target_bytes >= TARGET_MAX)
        return -1;
    memcpy(request->target, in->text + 4, target_bytes);
    request->target[target_bytes] = 0;
    request->is_slow = strncmp(request->target, "/slow", 5) == 0;
    in->bytes -= (size_t)(end + 4 - in->text);
    memmove(in->text, end + 4, in->bytes);
    return 1;
}

static inline size_t mixed_answer(const mixed_request *request, char answer[static ANSWER_MAX])
{
    return (size_t)snprintf(answer, ANSWER_MAX, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                            strlen(request->target), request->target);
}

/* Compute for 5 ms of the thread's CPU time, not of wall time: waiting for a core must not shorten
 * the work. */
static inline void mixed_compute(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (volatile unsigned i = 0; i < 10000; i++)
            ;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < SLOW_NS);
}

#endif
