/* SPDX-License-Identifier: MIT */
/*
 * Operations of a pool that has no memory for I/O. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include "base/fault.h"

#include <filch/filch.h>

#include <errno.h>

static filch_atomic_u32 has_no_memory;

/* The library calls this one. */
bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: set and read by the same task. */
    return kind == FILCH_FAULT_MALLOC && filch_load_relaxed(&has_no_memory);
}

static void read_without_memory(filch_frame *f, void *arg)
{
    int ends[2];
    char byte;
    (void)arg;
    CHECK(pipe(ends) == 0);
    filch_op op = filch_op_read(ends[0], &byte, 1);

    /* relaxed: as above. */
    filch_store_relaxed(&has_no_memory, 1);
    ssize_t empty = filch_op_run(f, &op, filch_after_ms(50));
    ssize_t put = filch_write(f, ends[1], "x", 1);
    op = filch_op_read(ends[0], &byte, 1);
    ssize_t got = filch_op_run(f, &op, FILCH_NO_DEADLINE);
    int err = filch_close(f, ends[0]);
    filch_store_relaxed(&has_no_memory, 0);

    /* A blocking call would keep the only worker, and perhaps the task that would write. */
    CHECK(empty == -ENOMEM);
    CHECK(put == 1 && got == 1 && byte == 'x');
    CHECK(err == 0);
    close(ends[1]);
}

TEST(without_memory_no_operation_waits_in_a_worker)
{
    on_pools(read_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_no_operation_waits_in_a_worker),
    };
    return cmocka_run_group_tests_name("io_memory", tests, watchdog_start, watchdog_stop);
}
