/* SPDX-License-Identifier: MIT */
/*
 * filch: a work-stealing runtime.
 *
 *     #include <filch/filch.h>
 *     #include <stdio.h>
 *
 *     FILCH_TASK(long, fib, (long, n))
 *     {
 *         if (n < 2)
 *             return n;
 *         FILCH_FORK(left, fib, n - 1);
 *         long right = FILCH_CALL(fib, n - 2);
 *         return FILCH_JOIN(left) + right;
 *     }
 *
 *     int main(void)
 *     {
 *         filch_pool *pool;
 *         if (filch_pool_create(&pool, NULL))
 *             return 1;
 *         printf("%ld\n", FILCH_RUN(pool, fib, 40));
 *         return filch_pool_destroy(pool);
 *     }
 *
 * filch/task.h has the tasks, filch/pool.h the pool, filch/loop.h the loops.
 */
#ifndef FILCH_FILCH_H
#define FILCH_FILCH_H

#include <filch/blocking.h>
#include <filch/channel.h>
#include <filch/error.h>
#include <filch/future.h>
#include <filch/io.h>
#include <filch/local.h>
#include <filch/loop.h>
#include <filch/pipeline.h>
#include <filch/pool.h>
#include <filch/scope.h>
#include <filch/sort.h>
#include <filch/strand.h>
#include <filch/stream.h>
#include <filch/sync.h>
#include <filch/task.h>
#include <filch/time.h>
#include <filch/trace.h>
#include <filch/version.h>

#endif
