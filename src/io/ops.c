/* SPDX-License-Identifier: MIT */
/*
 * The table of operations as data, and the functions for rows without an action.
 */
#include "io/ops.h"

#include <linux/io_uring.h>

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
    FILCH_OP_TABLE(ROW)
#undef ROW
};

/* Each operation of filch/io.h has one row, in the same order, and no row is left over. */
enum {
#define ROW(CODE, ...) ROW_##CODE,
    FILCH_OP_TABLE(ROW)
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

/* Such an operation does not go to a ring. If it did, the kernel would refuse it with -EINVAL. */
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
