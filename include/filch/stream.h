/* SPDX-License-Identifier: MIT */
/*
 * Connections, or bytes, as they come: asked for once, and not once for each.
 *
 *     filch_stream incoming;
 *     filch_stream_accept(&incoming, listener, 0);
 *     while ((fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE)) >= 0)
 *         if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
 *             filch_close(f, fd);
 *     filch_stream_close(f, &incoming);
 *
 * (Tasks that have not begun when their scope is cancelled do not run: a server that goes on after that keeps a list of what they were to close, or lets them
 * begin in a scope of their own that is not cancelled.)
 *
 *     filch_stream bytes;
 *     filch_stream_recv(&bytes, fd, 0);
 *     while ((got = filch_stream_next(f, &bytes, filch_after_ms(5000))) > 0)
 *         filch_send_all(f, fd, bytes.data, (size_t)got, 0);
 *     filch_stream_close(f, &bytes);
 *
 * With io_uring, one request of the first call of filch_stream_next goes on and on (multishot), and bytes are put into buffers of the worker's ring: a connection that nobody writes to has none. What comes before
 * it is asked for is kept; if that gets to be much (16), the request is taken back until it has been fetched, so that a listener's queue or a sender's window fills up, as it should. In the other ways of
 * doing I/O (filch/io.h), and on a plain thread, each call of filch_stream_next is an accept or a recv; the results are the same.
 *
 * A stream is used by one task at a time, and stays where it is while it is open. Do not accept or receive from its descriptor otherwise. Its descriptor is closed after filch_stream_close; a filch_close by another task ends the
 * wait in filch_stream_next with -ECANCELED.
 */
#ifndef FILCH_STREAM_H
#define FILCH_STREAM_H

#include <filch/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One that has come. */
typedef struct filch_stream_item {
    int result;
    unsigned buffer;
} filch_stream_item;

typedef struct filch_stream {
    const void *data; /* what filch_stream_next has received, until the next call */

    /* The rest is the library's: src/io/stream.h. First what each piece touches. */
    unsigned held; /* the buffer that data is in */
    unsigned char code, is_plain, is_counted;
    void *source;
    filch_atomic_u32 lock, count;
    unsigned char is_armed, is_stopping, has_stop, has_lost;
    unsigned room, first;
    filch_stream_item *items; /* a ring of `room` */
    void *waiter;
    uint64_t turn;
    filch_stream_item few[4];
    filch_op op; /* the request that goes on */

    int fd;
    unsigned flags;
    void *own_buffer; /* one that data is in instead */
    filch_op stop;    /* the request to take the other back, when too much has come */
} filch_stream;

/* Connections that come to a socket that listens. flags: SOCK_NONBLOCK. Nothing is asked for before the first filch_stream_next. */
FILCH_API void filch_stream_accept(filch_stream *stream, int fd, int flags);

/* Bytes, or datagrams of at most FILCH_STREAM_BYTES, that come from a socket. flags: as for recv(2), but MSG_DONTWAIT, MSG_WAITALL and MSG_PEEK are of no use. */
FILCH_API void filch_stream_recv(filch_stream *stream, int fd, int flags);

/* The most that one call of filch_stream_next receives. */
#define FILCH_STREAM_BYTES 4096

/*
 * The next one: a descriptor, closed on exec; or how many bytes there are at stream->data, 0 at the end. Or -errno; then another call goes on, if the descriptor allows. -ETIMEDOUT: none has come until then (or, of the first call on a ring, none was seen: it only asks);
 * -ECANCELED: the task is cancelled, or another has closed the descriptor. What comes then is kept for the next call. -ENOMEM: something came, and there was no memory to keep it; of bytes no more come then.
 */
FILCH_API ssize_t filch_stream_next(filch_frame *f, filch_stream *stream, uint64_t deadline_ns);

/* Take the request back. By a task, if a task has used it. Connections that came and were not asked for are closed, and such bytes are gone. The descriptor stays open. */
FILCH_API void filch_stream_close(filch_frame *f, filch_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
