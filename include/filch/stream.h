/* SPDX-License-Identifier: MIT */
/*
 * A stream delivers connections, or bytes, as they come. They are requested once, not one by one.
 *
 *     filch_stream incoming;
 *     filch_stream_accept(&incoming, listener, 0);
 *     while ((fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE)) >= 0)
 *         if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
 *             filch_close(f, fd);
 *     filch_stream_close(f, &incoming);
 *
 *     filch_stream bytes;
 *     filch_stream_recv(&bytes, fd, 0);
 *     while ((got = filch_stream_next(f, &bytes, filch_after_ms(5000))) > 0)
 *         filch_send_all(f, fd, bytes.data, (size_t)got, 0);
 *     filch_stream_close(f, &bytes);
 *
 * A task that has not begun does not run if the scope is cancelled, or without memory for its stack
 * (filch_scope_spawn). Then its descriptor stays open. So in a server that is to go on after that,
 * the task that accepts a connection also serves it, and first spawns a task that accepts the next
 * one (examples/echo.c).
 *
 * How it is carried out
 *   - With io_uring, the first filch_stream_next starts one request that completes again and again
 *     (multishot). Bytes are put into buffers of the worker's ring: a silent connection has none.
 *   - Connections and bytes that come before the task asks for them are kept. When 16 of them are
 *     kept, the request is cancelled until the task has taken them. So the listener's queue or the
 *     sender's window fills up, as it should. Completions that the kernel has posted by then still
 *     come: of connections, as many as were in the listener's queue.
 *   - With epoll or threads (filch/io.h), and on a plain thread, each filch_stream_next is an
 *     accept or a recv. The results are the same.
 *
 * Rules
 *   - One task at a time uses a stream, and the stream stays in place while it is open.
 *   - Do not accept or receive from its descriptor otherwise.
 *   - Close the descriptor after filch_stream_close. If another task closes it with filch_close
 *     before, the wait in filch_stream_next ends with -ECANCELED.
 */
#ifndef FILCH_STREAM_H
#define FILCH_STREAM_H

#include <filch/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A completion that no task has taken yet. */
typedef struct filch_stream_item {
    int result;
    unsigned buffer;
} filch_stream_item;

typedef struct filch_stream {
    const void *data; /* what filch_stream_next has received; valid until the next call */

    /* The rest belongs to the library: src/io/stream.h. First what each completion touches. */
    unsigned held; /* the buffer of the ring that data is in */
    unsigned char code, is_plain, is_counted;
    void *source;
    filch_atomic_u32 lock, count;
    unsigned char is_armed, is_stopping, has_stop, has_lost;
    unsigned room, first;
    filch_stream_item *items; /* a ring of `room` */
    void *waiter;
    uint64_t turn;
    filch_stream_item few[4];
    filch_op op; /* the multishot request */

    int fd;
    unsigned flags;
    void *own_buffer; /* a buffer of its own that data is in instead */
    filch_op stop;    /* the request that cancels `op` when too much has come */
} filch_stream;

/* Connections of a listening socket. flags: SOCK_NONBLOCK. The first filch_stream_next starts the
 * request. */
FILCH_API void filch_stream_accept(filch_stream *stream, int fd, int flags);

/* Bytes, or datagrams of at most FILCH_STREAM_BYTES, of a socket. flags: as for recv(2);
 * MSG_DONTWAIT, MSG_WAITALL and MSG_PEEK are of no use. */
FILCH_API void filch_stream_recv(filch_stream *stream, int fd, int flags);

/* The most that one call of filch_stream_next receives. */
#define FILCH_STREAM_BYTES 4096

/*
 * The next connection: its descriptor, closed on exec. Or the next bytes: their number, at
 * stream->data; 0 at the end of the stream. Or -errno, after which another call goes on, if the
 * descriptor allows:
 *   -ETIMEDOUT   nothing has come before the deadline. The first call on a ring only starts the
 *                request, and may not see what was there before.
 *   -ECANCELED   the task is cancelled, or another task has closed the descriptor.
 *   -ENOMEM      something came, and there was no memory to keep it. A stream of bytes ends
 *                there; a stream of connections goes on.
 * Connections and bytes that come after -ETIMEDOUT and -ECANCELED are kept for the next call.
 */
FILCH_API ssize_t filch_stream_next(filch_frame *f, filch_stream *stream, uint64_t deadline_ns);

/* Cancel the request. If a task has used the stream, a task has to close it. Connections that no
 * call has returned are closed, and such bytes are lost. The descriptor stays open. */
FILCH_API void filch_stream_close(filch_frame *f, filch_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
