/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "room.h"

#include <errno.h>
#include <sys/socket.h>

/* How long a task waits for room before it looks again, and how many places it looks at. */
enum { LOOK_MS = 10, PLACES_MAX = 64 };

/* Under the mutex. */
static void take_off(http_room *room, http_place *place)
{
    *(place->older ? &place->older->newer : &room->oldest) = place->newer;
    *(place->newer ? &place->newer->older : &room->newest) = place->older;
    place->is_listed = false;
}

/* Under the mutex: shut down the connection that has waited longest, one at a time. If bytes of its
 * request have come meanwhile, its task goes on: then choose the next connection. */
static void shut_oldest(http_room *room)
{
    http_place *place = room->oldest;
    char byte;

    if (room->wanted == 0 || room->leaving > 0)
        return;
    for (int i = 0; i < PLACES_MAX && place; i++) {
        if (recv(place->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) {
            take_off(room, place);
            place->is_shut = true;
            room->leaving++;
            /* The descriptor is still open: its task calls http_room_go_on before it closes it. */
            shutdown(place->fd, SHUT_RDWR);
            return;
        }
        place = place->newer;
    }
}

/* Under the mutex, which is released during the wait: wait for room. The room of connections that
 * were closed before is taken by now, or found when this task looks again. So they no longer count
 * as leaving, and one more connection may be shut down. */
static int await_room(filch_frame *f, http_room *room)
{
    room->leaving -= room->left_count;
    room->left_count = 0;
    room->wanted++;
    shut_oldest(room);
    filch_event_reset(&room->left);
    pthread_mutex_unlock(&room->mutex);
    /* Another task may have reset the event. So look again after a while in any case. */
    int err = filch_event_wait_until(f, &room->left, filch_after_ms(LOOK_MS));
    pthread_mutex_lock(&room->mutex);
    room->wanted--;
    return err;
}

int http_room_enter(filch_frame *f, http_room *room, unsigned most)
{
    int err = 0;

    pthread_mutex_lock(&room->mutex);
    while (most > 0 && room->open >= most && err != -ECANCELED)
        err = await_room(f, room);
    err = err == -ECANCELED ? err : 0;
    if (!err)
        room->open++;
    pthread_mutex_unlock(&room->mutex);
    return err;
}

void http_room_leave(http_room *room, const http_place *place)
{
    pthread_mutex_lock(&room->mutex);
    room->open--;
    room->left_count += place->is_shut;
    filch_event_set(&room->left);
    pthread_mutex_unlock(&room->mutex);
}

int http_room_make(filch_frame *f, http_room *room)
{
    pthread_mutex_lock(&room->mutex);
    int err = await_room(f, room);
    pthread_mutex_unlock(&room->mutex);
    return err;
}

static int do_nothing(filch_frame *f, void *arg)
{
    (void)f;
    (void)arg;
    return 0;
}

/* A task that finds no stack counts as one that returned -ENOMEM. */
void http_room_make_stack(filch_frame *f, http_room *room)
{
    filch_scope scope;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    int err = filch_scope_spawn(f, &scope, do_nothing, NULL);
    int closed = filch_scope_close(f, &scope);
    if (err == -ENOMEM || closed == -ENOMEM)
        http_room_make(f, room);
}

void http_room_wait(http_room *room, http_place *place, int fd)
{
    pthread_mutex_lock(&room->mutex);
    if (place->is_listed)
        take_off(room, place);
    if (!place->is_shut) {
        place->fd = fd;
        place->older = room->newest;
        place->newer = NULL;
        *(room->newest ? &room->newest->newer : &room->oldest) = place;
        room->newest = place;
        place->is_listed = true;
        shut_oldest(room);
    }
    pthread_mutex_unlock(&room->mutex);
}

bool http_room_go_on(http_room *room, http_place *place)
{
    pthread_mutex_lock(&room->mutex);
    if (place->is_listed)
        take_off(room, place);
    bool is_open = !place->is_shut;
    pthread_mutex_unlock(&room->mutex);
    return is_open;
}
