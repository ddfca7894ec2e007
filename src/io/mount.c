/* SPDX-License-Identifier: MIT */
/*
 * Which file systems are on this machine.
 *
 * Asking a file system for its type (statfs) may itself wait for the network. So the type is read
 * from the kernel's table of mounts, and the answer is kept by the number of the mount. Some time
 * after a mount is gone, the kernel gives its number to another mount. So the answer is a guess; a
 * wrong one costs only time.
 */
#include "io/ops.h"

#include <filch/atomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Answers, by the number of the mount: bit 0, known; bit 1, local; the number is in the bits
 * above. */
#define KNOWN_COUNT 256

static filch_atomic_u64 known[KNOWN_COUNT];

static bool is_local_type(const char *type)
{
    static const char *const types[] = {"ext4",   "xfs",      "btrfs", "tmpfs",    "overlay",
                                        "f2fs",   "ext3",     "ext2",  "bcachefs", "zfs",
                                        "erofs",  "squashfs", "vfat",  "exfat",    "ramfs",
                                        "rootfs", "devtmpfs", "proc",  "sysfs"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(type, types[i], strlen(types[i])) == 0 && type[strlen(types[i])] == ' ')
            return true;
    return false;
}

/* Find the line "<number> <parent> ... - <type> <device> <options>". */
static bool look_up(uint64_t number)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_local = false;

    while (table && getline(&line, &room, table) > 0) {
        if (strtoull(line, NULL, 10) != number)
            continue;
        const char *type = strstr(line, " - ");
        is_local = type && is_local_type(type + 3);
        break;
    }
    free(line);
    if (table)
        fclose(table);
    return is_local;
}

bool filch_mount_is_local(const struct statx *info)
{
    if (!(info->stx_mask & STATX_MNT_ID))
        return false;
    filch_atomic_u64 *place = &known[info->stx_mnt_id % KNOWN_COUNT];
    /* relaxed: an answer is one word; a thread that finds the answer for another mount asks
     * again. */
    uint64_t answer = filch_load_relaxed(place);

    if (answer >> 2 != info->stx_mnt_id || !(answer & 1)) {
        answer = info->stx_mnt_id << 2 | (look_up(info->stx_mnt_id) ? 2u : 0u) | 1;
        /* relaxed: as above. */
        filch_store_relaxed(place, answer);
    }
    return answer & 2;
}
