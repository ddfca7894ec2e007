/* SPDX-License-Identifier: MIT */
/*
 * The table of operations: ops.h has what the columns mean.
 */
#include "io/ops.h"

#include <fcntl.h>
#include <linux/io_uring.h>

/* clang-format off */
#define T(trait) FILCH_TRAIT_##trait
/*  code      call      try       fill     events      undo     dontwait           first
 *                      traits */
#define OPS_TABLE(ROW)                                                                                                              \
ROW(NONE,     none,     never,    never,   none,       nothing, 0,                 WAIT,            0)                              \
ROW(READ,     transfer, transfer, read,    stream_in,  nothing, 0,                 TRY_AT_OFFSET,   T(TRANSFERS))                   \
ROW(WRITE,    transfer, transfer, write,   stream_out, nothing, 0,                 WAIT,            T(TRANSFERS))                   \
ROW(READV,    transfer, transfer, readv,   stream_in,  nothing, 0,                 TRY_AT_OFFSET,   T(TRANSFERS))                   \
ROW(WRITEV,   transfer, transfer, writev,  stream_out, nothing, 0,                 WAIT,            T(TRANSFERS))                   \
ROW(RECV,     recv,     recv,     recv,    in,         nothing, MSG_DONTWAIT,      TRY_IF_DONTWAIT, T(RECEIVES) | T(POLLS_FIRST))   \
ROW(SEND,     send,     send,     send,    out,        nothing, MSG_DONTWAIT,      TRY,             0)                              \
ROW(RECVMSG,  recv,     recv,     recvmsg, in,         nothing, MSG_DONTWAIT,      TRY_IF_DONTWAIT, T(RECEIVES))                    \
ROW(SENDMSG,  sendmsg,  sendmsg,  sendmsg, out,        nothing, MSG_DONTWAIT,      TRY,             0)                              \
ROW(ACCEPT,   accept,   accept,   accept,  in,         nothing, 0,                 WAIT,            T(MAKES_FD))                    \
ROW(CONNECT,  connect,  connect,  connect, connect,    connect, O_NONBLOCK,        WAIT,            T(ONCE) | T(RETRIED))           \
ROW(POLL,     poll,     poll,     poll,    poll,       nothing, 0,                 WAIT,            0)                              \
ROW(SPLICE,   splice,   splice,   splice,  splice,     nothing, SPLICE_F_NONBLOCK, WAIT,            T(TWO_FDS))                     \
ROW(SHUTDOWN, shutdown, shutdown, never,   none,       nothing, 0,                 TRY,             T(FINAL))                       \
ROW(OPEN,     open,     open,     open,    none,       open,    0,                 QUICK,           T(OPENS) | T(MAKES_FD))         \
ROW(CLOSE,    close,    close,    never,   none,       nothing, 0,                 WAIT,            T(CLOSES) | T(ONCE) | T(FINAL)) \
ROW(STATX,    statx,    statx,    statx,   none,       nothing, 0,                 QUICK,           0)                              \
ROW(FSYNC,    fsync,    never,    fsync,   none,       nothing, 0,                 WAIT,            0)                              \
ROW(RENAME,   rename,   never,    rename,  none,       nothing, 0,                 WAIT,            T(TWO_DIRS))                    \
ROW(UNLINK,   unlink,   never,    unlink,  none,       nothing, 0,                 WAIT,            0)                              \
ROW(MKDIR,    mkdir,    never,    mkdir,   none,       nothing, 0,                 WAIT,            0)                              \
ROW(GETDENTS, getdents, never,    never,   none,       nothing, 0,                 QUICK,           0)                              \
ROW(LINK,     link,     never,    link,    none,       nothing, 0,                 WAIT,            T(TWO_DIRS))
/* clang-format on */

const filch_op_row filch_op_rows[FILCH_OP_COUNT] = {
#define ROW(CODE, call_, try_, fill_, events_, undo_, dontwait_, first_, traits_)                  \
    [FILCH_OP_##CODE] = {.call = filch_call_##call_,                                               \
                         .try = filch_try_##try_,                                                  \
                         .fill = filch_fill_##fill_,                                               \
                         .events = filch_events_##events_,                                         \
                         .undo = filch_undo_##undo_,                                               \
                         .dontwait = (dontwait_),                                                  \
                         .traits = (traits_),                                                      \
                         .first = FILCH_FIRST_##first_},
    OPS_TABLE(ROW)
#undef ROW
};

/* Each operation of filch/io.h has one row, in the same order, and no row is left over. */
enum {
#define ROW(CODE, ...) ROW_##CODE,
    OPS_TABLE(ROW)
#undef ROW
        ROW_COUNT
};
#define HAS_ROW(CODE, name)                                                                        \
    _Static_assert((int)ROW_##CODE == (int)FILCH_OP_##CODE, "the row of " #name);
FILCH_OPS(HAS_ROW)
_Static_assert((int)ROW_COUNT == (int)FILCH_OP_COUNT, "one row per operation");

const char *filch_op_name(const filch_op *op)
{
    static const char *const names[FILCH_OP_COUNT] = {[FILCH_OP_NONE] = "no operation",
#define NAME(CODE, name) [FILCH_OP_##CODE] = #name,
                                                      FILCH_OPS(NAME)
#undef NAME
    };
    return names[op->code];
}

ssize_t filch_call_none(filch_op *op)
{
    (void)op;
    return -EINVAL;
}

ssize_t filch_try_never(filch_op *op, bool is_ready)
{
    (void)op;
    (void)is_ready;
    return -EAGAIN;
}

/* If it is submitted all the same, the kernel refuses it with -EINVAL. */
void filch_fill_never(const filch_op *op, struct io_uring_sqe *entry)
{
    (void)op;
    entry->opcode = UINT8_MAX;
}

unsigned filch_events_none(const filch_op *op)
{
    (void)op;
    return 0;
}

void filch_undo_nothing(filch_op *op)
{
    (void)op;
}
