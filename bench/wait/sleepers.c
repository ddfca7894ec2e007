/* SPDX-License-Identifier: MIT */
/*
 * sleepers: many tasks sleep at the same time; each forks, sleeps, joins. All sleep until the same
 * moment, `sleep_ms` after the first spawn. Memory (resident set and page tables) is read while all
 * of them sleep.
 *
 * start_ns is the time until the last task sleeps; finish_ns is the time from the common deadline
 * until all tasks have ended.
 */
#include "wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Constant while tasks run, except for the counts. */
static struct {
    uint64_t wake_ns;
    long tasks;
    filch_atomic_u64 asleep;
    filch_atomic_u64 sum;
    filch_atomic_u64 all_asleep_ns;
} night;

static long status_kib(const char *name)
{
    char line[256], format[32];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    snprintf(format, sizeof format, "%s: %%ld kB", name);
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static long used_kib(void)
{
    return status_kib("VmRSS") + status_kib("VmPTE");
}

FILCH_TASK(long, child, (long, number))
{
    return number + 1;
}

FILCH_TASK(int, sleeper, (long, number))
{
    FILCH_FORK(forked, child, number);
    /* relaxed: read after the scope is closed. */
    if ((long)filch_fetch_add_relaxed(&night.asleep, 1) + 1 == night.tasks)
        filch_store_relaxed(&night.all_asleep_ns, probe_clock_ns());
    int err = filch_sleep_until(FILCH_HERE, night.wake_ns);
    long result = FILCH_JOIN(forked);
    /* relaxed: as above. */
    filch_fetch_add_relaxed(&night.sum, (uint64_t)result);
    return err;
}

static int sleep_once(filch_frame *f, void *number)
{
    return FILCH_CALL_ON(f, sleeper, (long)(intptr_t)number);
}

static int spawn_all(filch_frame *f, filch_scope *scope)
{
    int err = 0;
    for (long i = 0; i < night.tasks && !err; i++)
        err = filch_scope_spawn(f, scope, sleep_once, (void *)(intptr_t)i);
    return err;
}

FILCH_TASK(int, spend_night, (filch_scope *, scope))
{
    filch_scope_options options = {.size = sizeof options};
    int err = filch_scope_open(FILCH_HERE, scope, NULL, &options);
    if (err)
        return err;
    err = spawn_all(FILCH_HERE, scope);
    int close_err = filch_scope_close(FILCH_HERE, scope);
    return err ? err : close_err;
}

/* Carries the result of spend_night. */
typedef struct verdict {
    filch_scope scope;
    filch_future done;
} verdict;

static void run_night(filch_frame *f, void *arg)
{
    verdict *v = arg;
    filch_future_set(&v->done, NULL, FILCH_CALL_ON(f, spend_night, &v->scope));
}

int wait_sleepers(const wait_run *run)
{
    long sleep_ms = wait_number(run, "sleep_ms", 0, 8000);
    verdict v;

    night.tasks = wait_number(run, "tasks", 1, 1000 * 1000);
    filch_future_init(&v.done);
    long before_kib = used_kib();
    uint64_t start_ns = probe_clock_ns();
    night.wake_ns = filch_after_ns((uint64_t)sleep_ms * 1000000);
    int err = filch_submit(run->pool, run_night, &v);
    if (err)
        return err;
    /* This plain thread reads the memory shortly before the tasks wake up. */
    uint64_t look_ns = night.wake_ns - (uint64_t)sleep_ms * 1000000 / 50;
    err = filch_sleep_until(NULL, look_ns);
    long rss_kib = status_kib("VmRSS"), pte_kib = status_kib("VmPTE");
    err = filch_future_get(NULL, &v.done, NULL);
    uint64_t end_ns = probe_clock_ns();
    if (err)
        return err;

    /* relaxed: all tasks have ended. */
    uint64_t all_asleep_ns = filch_load_relaxed(&night.all_asleep_ns);
    uint64_t sum = filch_load_relaxed(&night.sum);
    wait_figure("tasks", (double)night.tasks);
    wait_figure("bytes_per_task",
                (double)(rss_kib + pte_kib - before_kib) * 1024 / (double)night.tasks);
    wait_figure("rss_kib", (double)rss_kib);
    wait_figure("pte_kib", (double)pte_kib);
    wait_figure("start_ns", (double)(all_asleep_ns - start_ns));
    wait_figure("finish_ns", (double)(end_ns > night.wake_ns ? end_ns - night.wake_ns : 0));
    if (all_asleep_ns > look_ns) {
        fprintf(stderr,
                "filch-bench-wait: the last of %ld tasks slept %.1f ms too late to be seen: more "
                "sleep_ms are needed\n",
                night.tasks, (double)(all_asleep_ns - look_ns) / 1e6);
        return -ETIME;
    }
    return sum == (uint64_t)night.tasks * (uint64_t)(night.tasks + 1) / 2 ? 0 : -EBADMSG;
}
