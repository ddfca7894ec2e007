/* SPDX-License-Identifier: MIT */
#include "strand/plain.h"

#include "strand/unwind.h"

FILCH_NOT_INLINED void filch_plain_run(filch_frame *f, filch_slot *task)
{
    filch_plain plain = *filch_plain_in(task);
    plain.fn(f, plain.arg);
    FILCH_STOP_UNWIND();
}

void filch_plain_run_checked(filch_frame *f, filch_slot *task)
{
    filch_plain_in(task)->is_begun = true;
    filch_plain_run(f, task);
}
