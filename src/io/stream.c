/* SPDX-License-Identifier: MIT */
/*
 * Streams: multishot requests of a ring; without a ring, one operation per item. stream.h says how
 * reader and task meet.
 */
#include "io/stream.h"

#include "io/ops.h"
#include "io/route.h"
#include "io/uring.h"
#include "wait/wait.h"

#include <filch/scope.h>
#include <poll.h>
#include <unistd.h>

static void init(filch_stream *stream, filch_op_code code, int fd, int flags)
{
    *stream = (filch_stream){.fd = fd,
                             .flags = (unsigned)flags,
                             .code = (unsigned char)code,
                             .held = FILCH_NO_BUFFER,
                             .items = stream->few,
                             .room = sizeof stream->few / sizeof stream->few[0]};
}

void filch_stream_accept(filch_stream *stream, int fd, int flags)
{
    init(stream, FILCH_OP_ACCEPT, fd, flags);
}

void filch_stream_recv(filch_stream *stream, int fd, int flags)
{
    /* Rings refuse MSG_WAITALL. */
    init(stream, FILCH_OP_RECV, fd, flags & ~MSG_WAITALL);
}

/* Give back the buffer that the last call has handed out. */
static void give_back(filch_stream *stream)
{
    if (stream->held != FILCH_NO_BUFFER)
        filch_buffers_give(filch_uring_buffers(stream->source), stream->held);
    stream->held = FILCH_NO_BUFFER;
    stream->data = NULL;
}

/* ---- one by one ------------------------------------------------------------------------------ */

/* The stream has a buffer only while there are bytes in it: most of many connections are silent. */
static ssize_t recv_one(filch_frame *f, filch_stream *stream, uint64_t deadline_ns)
{
    for (;;) {
        if (!stream->own_buffer)
            stream->own_buffer = malloc(FILCH_STREAM_BYTES);
        if (!stream->own_buffer)
            return -ENOMEM;
        ssize_t got = filch_recv(f, stream->fd, stream->own_buffer, FILCH_STREAM_BYTES,
                                 (int)stream->flags | MSG_DONTWAIT);
        if (got != -EAGAIN) {
            stream->data = stream->own_buffer;
            return got;
        }
        free(stream->own_buffer);
        stream->own_buffer = NULL;
        filch_op op = filch_op_poll(stream->fd, POLLIN);
        ssize_t events = filch_op_run(f, &op, deadline_ns);
        if (events < 0)
            return events;
    }
}

static ssize_t next_one(filch_frame *f, filch_stream *stream, uint64_t deadline_ns)
{
    if (stream->code == FILCH_OP_RECV)
        return recv_one(f, stream, deadline_ns);
    filch_op op = filch_op_accept(stream->fd, NULL, NULL, (int)stream->flags);
    return filch_op_run(f, &op, deadline_ns);
}

/* ---- on a ring ------------------------------------------------------------------------------- */

/* The request is over. */
static void settle(filch_frame *f, filch_stream *stream)
{
    stream->is_stopping = false;
    if (stream->is_counted)
        filch_io_count(filch_strand_of(f)->pool, stream->fd, -1u);
    stream->is_counted = false;
}

/* For AF_UNIX, Linux 6.18 does not report an end of the stream that came with the last bytes, but
 * waits for one more event. */
static bool is_of_network(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t length = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX;
}

/* Start the request. False: there is no ring, or no buffers. */
static bool arm(filch_frame *f, filch_stream *stream)
{
    filch_strand *strand = filch_strand_of(f);

    settle(f, stream);
    /* From here on the strand does not leave its thread until the request is in flight. */
    filch_uring *ring = filch_io_uring(f, strand);
    if (!ring || (stream->code == FILCH_OP_RECV &&
                  (!is_of_network(stream->fd) || !filch_uring_has_buffers(ring))))
        return false;
    stream->op =
        filch_op_make((filch_op_code)stream->code, stream->fd, NULL, NULL, 0, 0, stream->flags, 0);
    stream->op.stage = FILCH_STAGE_STREAM;
    stream->op.closings = filch_io_closings(filch_io_get(strand->pool), &stream->op);
    stream->op.strand = strand;
    stream->stop = (filch_op){.target = &stream->op, .stage = FILCH_STAGE_STOP, .strand = strand};
    stream->source = ring;
    stream->is_armed = stream->is_counted = true;
    filch_op_set_in_flight(&stream->op);
    filch_io_count(strand->pool, stream->fd, 1);
    strand->worker->owes_watch = true;
    filch_uring_start(ring, &stream->op);
    return true;
}

/* Wait until an item has come or the stream is at rest. Returns 0, and is_dry says whether no item
 * is left; or -ETIMEDOUT, -ECANCELED. */
static int await(filch_frame *f, filch_stream *stream, uint64_t deadline_ns, bool for_rest,
                 bool *is_dry)
{
    filch_waiting waiting;

    filch_waiting_begin(&waiting, f,
                        stream->code == FILCH_OP_RECV ? FILCH_WAITS_BYTES : FILCH_WAITS_CONNECTIONS,
                        filch_waits_operation(stream->code, stream->fd));
    filch_stream_wait wait = filch_stream_await(stream, waiting.strand, waiting.turn, for_rest);
    *is_dry = wait == FILCH_STREAM_DRY;
    if (wait != FILCH_STREAM_WAITS) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome < 0)
        filch_stream_stop_waiting(stream);
    return outcome < 0 ? outcome : 0;
}

/* How the caller of a stream continues after an item. */
typedef enum meaning { FOR_THE_CALLER, ASK_AGAIN, ONE_BY_ONE_ONCE, ONE_BY_ONE } meaning;

static meaning understand(filch_frame *f, const filch_stream *stream, int result)
{
    switch (result) {
    case -ENOBUFS:
        return stream->code == FILCH_OP_RECV ? ONE_BY_ONE_ONCE
                                             : FOR_THE_CALLER; /* all buffers are in use */
    case -EAGAIN:
        return ONE_BY_ONE; /* the descriptor is non-blocking: the kernel does not wait */
    case -EINTR:
        return ASK_AGAIN;
    case -ECANCELED:
        return filch_io_has_closed(filch_io_get(filch_strand_of(f)->pool), &stream->op)
                   ? FOR_THE_CALLER
                   : ASK_AGAIN;
    default:
        return FOR_THE_CALLER;
    }
}

ssize_t filch_stream_next(filch_frame *f, filch_stream *stream, uint64_t deadline_ns)
{
    filch_stream_item item;

    give_back(stream);
    if (stream->is_plain || !f || !filch_strand_can_leave(filch_strand_of(f)))
        return next_one(f, stream, deadline_ns);
    for (;;) {
        if (filch_stream_take(stream, &item)) {
            switch (understand(f, stream, item.result)) {
            case FOR_THE_CALLER:
                stream->held = item.buffer;
                if (item.buffer != FILCH_NO_BUFFER)
                    stream->data =
                        filch_buffers_at(filch_uring_buffers(stream->source), item.buffer);
                return item.result;
            case ASK_AGAIN:
                break;
            case ONE_BY_ONE:
                stream->is_plain = true;
                return next_one(f, stream, deadline_ns);
            case ONE_BY_ONE_ONCE:
                return next_one(f, stream, deadline_ns);
            }
            continue;
        }
        bool is_dry = !stream->source; /* no request was started yet */
        int err = is_dry ? 0 : await(f, stream, deadline_ns, false, &is_dry);
        /* relaxed: a hint. An item that came at the last moment is taken. */
        if (err && filch_load_relaxed(&stream->count) == 0)
            return err;
        if (!is_dry)
            continue;
        if (stream->has_lost) {
            /* No more bytes can follow a gap; connections can. */
            stream->has_lost = stream->code == FILCH_OP_RECV;
            return -ENOMEM;
        }
        if (!arm(f, stream)) {
            stream->is_plain = true;
            return next_one(f, stream, deadline_ns);
        }
    }
}

void filch_stream_close(filch_frame *f, filch_stream *stream)
{
    filch_stream_item item;

    give_back(stream);
    free(stream->own_buffer);
    stream->own_buffer = NULL;
    if (f && filch_strand_can_leave(filch_strand_of(f)) && stream->source) {
        filch_frame *shield = filch_shield(f);
        uint64_t patience_ns = FILCH_URING_PATIENCE_NS;
        for (bool is_at_rest = false; !is_at_rest; patience_ns *= 2) {
            if (!filch_stream_is_at_rest(stream)) {
                filch_op cancel = {.target = &stream->op, .strand = filch_strand_of(f)};
                filch_uring_cancel(stream->source, &cancel);
                filch_op_await_end(f, &cancel, FILCH_NO_DEADLINE);
            }
            await(f, stream, filch_after_ns(patience_ns), true, &is_at_rest);
        }
        filch_unshield(f, shield);
        settle(f, stream);
        while (filch_stream_take(stream, &item))
            filch_uring_drop(stream->source, stream->code, item);
    }
    if (stream->items != stream->few)
        free(stream->items);
    init(stream, (filch_op_code)stream->code, stream->fd, (int)stream->flags);
}
