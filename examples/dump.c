/* SPDX-License-Identifier: MIT */
/*
 * Find out why a program hangs: filch_pool_dump prints what every strand waits for.
 * scripts/gdb/filch.py does the same in gdb, with backtraces.
 */
#include <filch/filch.h>
#include <stdio.h>
#include <string.h>

static filch_event green;

static int drive(filch_frame *f, void *mutex)
{
    int err = mutex ? filch_mutex_lock(f, mutex) : filch_event_wait(f, &green);
    if (!err && mutex)
        filch_mutex_unlock(mutex);
    return err;
}

/* Count the lines of the dump that contain `what`. */
static int count(filch_pool *pool, const char *what)
{
    FILE *out = tmpfile();
    char line[200];
    int found = 0;

    if (!out || filch_pool_dump(pool, out))
        return -1;
    for (rewind(out); fgets(line, sizeof line, out);)
        found += strstr(line, what) != NULL;
    fclose(out);
    return found;
}

int main(void)
{
    static filch_mutex bridge;
    filch_pool *pool;
    filch_scope scope;

    if (filch_pool_create(&pool, NULL))
        return 1;
    filch_mutex_lock(NULL, &bridge);
    filch_scope_open(NULL, &scope, pool, NULL);
    for (int i = 0; i < 3; i++)
        filch_scope_spawn(NULL, &scope, drive, NULL);
    for (int i = 0; i < 2; i++)
        filch_scope_spawn(NULL, &scope, drive, &bridge);

    /* A dump is a snapshot of a running pool: repeat it until all tasks wait. */
    while (count(pool, "waits for an event") != 3 || count(pool, "waits for a mutex") != 2)
        filch_sleep_ns(NULL, 1000000);
    filch_pool_dump(pool, stderr);
    printf("3 wait for an event, 2 for a mutex\n");

    filch_event_set(&green);
    filch_mutex_unlock(&bridge);
    filch_scope_close(NULL, &scope);
    printf("and now %d\n", count(pool, "waits for"));
    return filch_pool_destroy(pool);
}
