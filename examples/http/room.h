/* SPDX-License-Identifier: MIT */
/*
 * Room for connections: how many are open, and which of them wait for a request.
 *
 *     oldest -> [fd 7] -> [fd 12] -> [fd 9] -> newest       they wait, idle or within a head
 *               ^ shut down when there is no room
 *
 * A connection that waits for a request is worth less than a new one. So when the server is short
 * of connections, descriptors or stacks, it shuts down the connection that has waited longest. The
 * task of that connection receives an end, and closes it. A connection goes to the end of the list
 * when it begins to wait, and once more when the first byte of a head comes. So a client that sends
 * a head byte by byte gains nothing. A connection whose answer is being sent is not in the list.
 *
 * The mutex is a pthread_mutex_t: no task waits while it holds the mutex.
 */
#ifndef HTTP_ROOM_H
#define HTTP_ROOM_H

#include <filch/filch.h>
#include <pthread.h>

/* A connection's place in the list. All zero: it is not in the list. */
typedef struct http_place http_place;
struct http_place {
    http_place *older, *newer;
    int fd;
    bool is_listed, is_shut;
};

typedef struct http_room {
    pthread_mutex_t mutex;
    http_place *oldest, *newest;
    unsigned open;       /* connections */
    unsigned leaving;    /* connections shut down for room that is not taken yet */
    unsigned left_count; /* of these: closed since a task last waited for room */
    unsigned wanted;     /* tasks that wait for room */
    filch_event left;    /* a connection was closed */
} http_room;

#define HTTP_ROOM_INIT                                                                             \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

/* Count a new connection. While there are `most`, wait; 0 means any number. Returns 0 or
 * -ECANCELED. */
int http_room_enter(filch_frame *f, http_room *room, unsigned most);

/* The descriptor of a connection was closed. */
void http_room_leave(http_room *room, const http_place *place);

/* There are no descriptors: wait until a connection is closed, but not for long. Returns 0, there
 * may be a descriptor now; or -ETIMEDOUT, -ECANCELED. */
int http_room_make(filch_frame *f, http_room *room);

/* If no task can begin, because there is no memory for its stack: the same. The task of the closed
 * connection has a stack. */
void http_room_make_stack(filch_frame *f, http_room *room);

/* The connection begins to wait for a request, or for the rest of one. */
void http_room_wait(http_room *room, http_place *place, int fd);

/* The connection no longer waits. False: it was shut down meanwhile. */
bool http_room_go_on(http_room *room, http_place *place);

#endif
