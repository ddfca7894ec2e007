/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <fcntl.h>
#include <poll.h>

#define CHUNK_MAX 5000
#define FAILURES_MAX 20

void wire_open(wire *w, actor *a)
{
    int ends[2], flags = one_in(a, 2) ? O_NONBLOCK : 0;

    *w = (wire){.is_socket = one_in(a, 2), .seed = number(a)};
    int err =
        w->is_socket
            ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (flags ? SOCK_NONBLOCK : 0), 0, ends)
            : pipe2(ends, O_CLOEXEC | flags);
    if (err)
        FAIL("no pipe: %s", strerror(errno));
    w->in = ends[0];
    w->out = ends[1];
}

static unsigned char byte_at(const wire *w, uint64_t at)
{
    return (unsigned char)(w->seed + at * 131 + (at >> 8) * 17);
}

void wire_fill(const wire *w, uint64_t at, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = byte_at(w, at + i);
}

void wire_check(wire *w, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte_at(w, w->received + i))
            FAIL("byte %llu of a wire is wrong", (unsigned long long)w->received + i);
    w->received += count;
}

static struct iovec slice(unsigned char *bytes, size_t count)
{
    return (struct iovec){bytes, count};
}

/* ---- send ------------------------------------------------------------------------------------ */

static ssize_t send_op(filch_frame *f, actor *a, filch_op *op, int *may)
{
    if (one_in(a, 2)) {
        *may |= MAY_TIME_OUT;
        return filch_op_run(f, op, some_deadline(a));
    }
    CHECK_EQUAL(filch_op_start(f, op), 0);
    if (one_in(a, 4)) {
        *may |= MAY_END;
        filch_op_cancel(f, op);
    }
    if (one_in(a, 2)) {
        *may |= MAY_TIME_OUT;
        return filch_op_wait(f, op, some_deadline(a));
    }
    return filch_op_wait(f, op, FILCH_NO_DEADLINE);
}

static ssize_t send_some(filch_frame *f, actor *a, wire *w, unsigned char *bytes, size_t count,
                         int *may)
{
    struct iovec parts[2] = {slice(bytes, count / 2), slice(bytes + count / 2, count - count / 2)};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t result;
    filch_op op;

    switch (below(a, w->is_socket ? 8 : 4)) {
    case 0:
        return filch_write(f, w->out, bytes, count);
    case 1:
        return filch_writev(f, w->out, parts, 2);
    case 2:
        op = filch_op_write(w->out, bytes, count);
        return send_op(f, a, &op, may);
    case 3:
        result = filch_write_all(f, w->out, bytes, count);
        w->is_unsure = result < 0;
        CHECK(result < 0 || (size_t)result == count);
        return result;
    case 4:
        return filch_send(f, w->out, bytes, count, 0);
    case 5:
        return filch_sendmsg(f, w->out, &message, 0);
    case 6:
        op = filch_op_send(w->out, bytes, count, 0);
        return send_op(f, a, &op, may);
    default:
        result = filch_send_all(f, w->out, bytes, count, 0);
        w->is_unsure = result < 0;
        return result;
    }
}

void wire_send(filch_frame *f, actor *a, wire *w, size_t bytes)
{
    unsigned char chunk[CHUNK_MAX];
    unsigned failed = 0;

    while (w->sent < bytes && failed < FAILURES_MAX && !w->is_unsure) {
        size_t left = bytes - w->sent, count = 1 + below(a, one_in(a, 4) ? CHUNK_MAX : 200);
        int may = may_fail_io(0);
        if (count > left)
            count = left;
        wire_fill(w, w->sent, chunk, count);
        ssize_t result = send_some(f, a, w, chunk, count, &may);
        if (ok(f, a, result, may)) {
            CHECK((size_t)result <= count);
            w->sent += (uint64_t)result;
        } else {
            failed++;
            if (f && filch_is_cancelled(f))
                break;
        }
    }
    int fd = w->out;
    w->out = -1;
    int err = filch_close(f, fd);
    if (err)
        FAIL("filch_close returned %d: %s", err, filch_strerror(-err));
}

/* ---- receive --------------------------------------------------------------------------------- */

static ssize_t receive_some(filch_frame *f, actor *a, wire *w, unsigned char *bytes, size_t count,
                            int *may)
{
    struct iovec parts[2] = {slice(bytes, count / 2), slice(bytes + count / 2, count - count / 2)};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t result;
    filch_op op;

    switch (below(a, w->is_socket ? 9 : 4)) {
    case 0:
        return filch_read(f, w->in, bytes, count);
    case 1:
        return filch_readv(f, w->in, parts, 2);
    case 2:
        op = filch_op_read(w->in, bytes, count);
        return send_op(f, a, &op, may);
    case 3:
        result = filch_poll(f, w->in, POLLIN);
        if (result < 0)
            return result;
        CHECK(result & (POLLIN | POLLHUP));
        return filch_read(f, w->in, bytes, count);
    case 4:
        return filch_recv(f, w->in, bytes, count, 0);
    case 5:
        return filch_recvmsg(f, w->in, &message, 0);
    case 6:
        op = filch_op_recv(w->in, bytes, count, 0);
        return send_op(f, a, &op, may);
    case 7:
        return filch_recv(f, w->in, bytes, count, MSG_WAITALL);
    default:
        result = filch_recv(f, w->in, bytes, count, MSG_DONTWAIT);
        if (result == -EAGAIN)
            *may |= MAY_FAIL;
        return result;
    }
}

bool wire_receive(filch_frame *f, actor *a, wire *w)
{
    unsigned char chunk[CHUNK_MAX];

    for (unsigned failed = 0; failed < FAILURES_MAX;) {
        size_t count = 1 + below(a, CHUNK_MAX);
        int may = may_fail_io(0);
        ssize_t result = receive_some(f, a, w, chunk, count, &may);
        if (result == 0)
            return true;
        if (ok(f, a, result, may)) {
            CHECK((size_t)result <= count);
            wire_check(w, chunk, (size_t)result);
        } else {
            failed += result != -EAGAIN;
            if (f && filch_is_cancelled(f))
                break;
            filch_yield(f);
        }
    }
    return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Wait by the library, not in poll(2): the end of the file may depend on the thread of a ring,
 * which may be this one (src/io/README.md). A call of the library may fail; then ask again. */
static void wait_for_input(filch_frame *f, const wire *w)
{
    struct pollfd one = {.fd = w->in, .events = POLLIN};
    filch_frame *shield = f ? filch_shield(f) : NULL;

    filch_poll(f, w->in, POLLIN);
    while (poll(&one, 1, 0) == 0)
        filch_sleep_ns(f, 100000);
    if (f)
        filch_unshield(f, shield);
}

void wire_finish(filch_frame *f, wire *w)
{
    unsigned char chunk[CHUNK_MAX];
    ssize_t got;

    do {
        wait_for_input(f, w);
        got = read(w->in, chunk, sizeof chunk);
        if (got > 0)
            wire_check(w, chunk, (size_t)got);
    } while (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN)));
    if (got < 0)
        FAIL("cannot read what is left: %s", strerror(errno));
}

void wire_close(wire *w)
{
    close(w->in);
    if (w->is_unsure)
        CHECK(w->received >= w->sent);
    else
        CHECK_EQUAL(w->received, w->sent);
}
