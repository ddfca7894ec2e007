/* SPDX-License-Identifier: MIT */
/*
 * The route EPOLL: operations that wait until their descriptor is ready.
 */
#ifndef FILCH_IO_EPOLL_H
#define FILCH_IO_EPOLL_H

#include "io/io.h"

int filch_epoll_create(filch_epoll **epoll, filch_io *io, bool has_thread);
void filch_epoll_destroy(filch_epoll *epoll);

/* In the child of a fork(). */
void filch_epoll_forget(filch_epoll *epoll);

/* The source for a worker's thread; NULL: the instance has its own thread, which waits. */
filch_source *filch_epoll_source(filch_epoll *epoll);

/* The operation was tried and has to wait: try it again when its descriptor is ready. Returns 0;
 * -EPERM: epoll does not take files of this kind; -ECANCELED: it was cancelled; or -errno. */
int filch_epoll_start(filch_epoll *epoll, filch_op *op);

/* Cancel one operation. It may still complete with a result. */
void filch_epoll_cancel(filch_epoll *epoll, filch_op *op);

/* Cancel all operations on cancel->fd. The request is in flight until no thread tries an operation
 * on that descriptor. */
void filch_epoll_cancel_all(filch_epoll *epoll, filch_op *cancel);

/* Remove a descriptor on which no operation is in flight, before it is closed. Otherwise
 *   - epoll might go on watching the file, if it has another descriptor, and report its events
 *     under this number, which may be another file soon;
 *   - a thread in epoll_wait may hold the file for a moment. If the close falls into this moment,
 *     the kernel releases the file only at the thread's next event, so a peer gets no end. */
void filch_epoll_remove(filch_epoll *epoll, int fd);

/* Between these two calls filch_close waits, while the caller tries the operation or makes its
 * system call. Begin returns 0; -ECANCELED: a descriptor was closed; or -errno. */
int filch_epoll_begin_try(filch_epoll *epoll, const filch_op *op);
void filch_epoll_end_try(filch_epoll *epoll, const filch_op *op);

#endif
