/* SPDX-License-Identifier: MIT */
/*
 * Makes a tree with duplicate files: a seed gives the same tree on any machine.
 *
 * - Lengths are drawn from 48 steps of a logarithmic scale, then scaled to add up to the requested
 *   total. So nearly every file shares its length with others, and must be read.
 * - One file in fifty is empty.
 * - Of the others, a tenth are the first of 2 to 6 equal files.
 * - A twentieth are the first of 2 to 4 files with the same length and first block, which differ in
 *   one later byte.
 */
#include "dups.h"

#include "../workloads/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 64 << 10,
    BYTES_MIN = 16,                  /* of a non-empty file: no two are equal by chance */
    NEAR_BYTES_MIN = 3 * DUPS_BLOCK, /* of files that are nearly equal */
    EMPTY_SHARE = 50,
};

/* The bytes of a file: a stream of random numbers, and one altered byte, or NOT_ALTERED. */
typedef struct content {
    uint64_t stream, altered_at;
} content;

#define NOT_ALTERED UINT64_MAX

typedef struct tree {
    const dups_plan *plan;
    uint64_t random;
    char **directories; /* paths relative to the folder; the first is "." */
    dups_file *files;   /* `group` is the number of the content */
    content *contents;  /* of each file */
    uint64_t near;      /* number of files nearly equal to another */
} tree;

static uint64_t draw(tree *all, uint64_t below)
{
    all->random += DUPS_HASH_START;
    return uts_mix(all->random) % below;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int name_entry(char **path, const char *directory, char kind, uint64_t number)
{
    bool is_top = strcmp(directory, ".") == 0;
    int length = asprintf(path, "%s%s%c%05" PRIu64, is_top ? "" : directory, is_top ? "" : "/",
                          kind, number);
    return length < 0 ? -ENOMEM : 0;
}

static int plan_directories(tree *all)
{
    int err = 0;

    all->directories = calloc(all->plan->directories, sizeof *all->directories);
    if (!all->directories || !(all->directories[0] = strdup(".")))
        return -ENOMEM;
    for (uint64_t i = 1; !err && i < all->plan->directories; i++)
        err = name_entry(&all->directories[i], all->directories[draw(all, i)], 'd', i);
    return err;
}

static uint64_t draw_bytes(tree *all)
{
    uint64_t octave = draw(all, 12);
    return (64 * (4 + draw(all, 4))) << octave;
}

/* Plan a family of equal or nearly equal files from `i` on; returns the first file after it. */
static uint64_t plan_family(tree *all, uint64_t i)
{
    uint64_t kind = draw(all, 20), stream = draw(all, UINT64_MAX), bytes = draw_bytes(all);
    uint64_t count = kind < 2 ? 2 + draw(all, 5) : kind == 2 ? 2 + draw(all, 3) : 1;
    bool is_near = kind == 2;

    if (count > all->plan->files - i)
        count = all->plan->files - i;
    if (is_near && bytes < NEAR_BYTES_MIN)
        bytes = NEAR_BYTES_MIN;
    for (uint64_t j = 0; j < count; j++) {
        bool is_altered = is_near && j > 0;
        all->files[i + j].bytes = bytes;
        all->files[i + j].group = is_near ? i + j : i;
        all->contents[i + j] = (content){stream, is_altered ? j : NOT_ALTERED};
        all->near += is_altered;
    }
    return i + count;
}

/* Scale the lengths to the requested total. Nearly equal files keep more than two blocks. */
static void stretch(tree *all)
{
    uint64_t sum = 0, total = all->plan->kib << 10;

    for (uint64_t i = 0; i < all->plan->files; i++)
        sum += all->files[i].bytes;
    for (uint64_t i = 0; sum > 0 && i < all->plan->files; i++) {
        dups_file *file = &all->files[i];
        uint64_t bytes = (uint64_t)((__uint128_t)file->bytes * total / sum);
        bool is_in_near_family = all->contents[i].altered_at != NOT_ALTERED ||
                                 (i + 1 < all->plan->files && all->contents[i + 1].altered_at == 1);
        uint64_t least = is_in_near_family ? 2 * DUPS_BLOCK + 1 : file->bytes > 0 ? BYTES_MIN : 0;
        file->bytes = bytes < least ? least : bytes;
    }
    /* Alter the first byte after the first block, one in the middle, or the last byte. */
    for (uint64_t i = 0; i < all->plan->files; i++) {
        uint64_t bytes = all->files[i].bytes, *at = &all->contents[i].altered_at;
        if (*at != NOT_ALTERED)
            *at = *at == 1 ? DUPS_BLOCK : *at == 2 ? (DUPS_BLOCK + bytes) / 2 : bytes - 1;
    }
}

static int plan_files(tree *all)
{
    uint64_t count = all->plan->files, empty = count / EMPTY_SHARE;
    int err = 0;

    all->files = calloc(count, sizeof *all->files);
    all->contents = calloc(count, sizeof *all->contents);
    if (!all->files || !all->contents)
        return -ENOMEM;
    for (uint64_t i = 0; i < empty; i++)
        all->contents[i].altered_at = NOT_ALTERED;
    for (uint64_t i = empty; i < count;)
        i = plan_family(all, i);
    stretch(all);
    for (uint64_t i = 0; !err && i < count; i++)
        err = name_entry(&all->files[i].path, all->directories[draw(all, all->plan->directories)],
                         'f', i);
    return err;
}

/* ---- on the disk ----------------------------------------------------------------------------- */

static int write_all(int fd, const char *buffer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, buffer + done, bytes - done);
        if (put < 0)
            return -errno;
        done += (size_t)put;
    }
    return 0;
}

static int write_file(int folder, const dups_file *file, const content *inside)
{
    static uint64_t words[WRITE_BYTES / sizeof(uint64_t)];
    char *bytes = (char *)words;
    uint64_t random = inside->stream;
    int fd = openat(folder, file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int err = fd < 0 ? -errno : 0;

    for (uint64_t at = 0; !err && at < file->bytes; at += WRITE_BYTES) {
        uint64_t left = file->bytes - at;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            words[i] = uts_mix(random += DUPS_HASH_START);
        if (inside->altered_at >= at && inside->altered_at - at < WRITE_BYTES)
            bytes[inside->altered_at - at] ^= 1;
        err = write_all(fd, bytes, left < WRITE_BYTES ? left : WRITE_BYTES);
    }
    if (fd >= 0 && close(fd) != 0 && !err)
        err = -errno;
    return err;
}

static int write_tree(const char *folder, const tree *all)
{
    int err = mkdir(folder, 0755) ? -errno : 0;
    int fd = err ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!err && fd < 0)
        err = -errno;
    for (uint64_t i = 1; !err && i < all->plan->directories; i++)
        err = mkdirat(fd, all->directories[i], 0755) ? -errno : 0;
    for (uint64_t i = 0; !err && i < all->plan->files; i++)
        err = write_file(fd, &all->files[i], &all->contents[i]);
    /* The kernel cannot drop dirty pages, so write them back now. */
    if (!err && syncfs(fd))
        err = -errno;
    if (fd >= 0)
        close(fd);
    return err;
}

static void print(const tree *all, const dups_answer *answer)
{
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < all->plan->files; i++)
        bytes += all->files[i].bytes;
    printf("RESULT make %" PRIu64 " files=%" PRIu64 " directories=%" PRIu64 " bytes=%" PRIu64
           " near=%" PRIu64,
           all->plan->seed, all->plan->files, all->plan->directories, bytes, all->near);
    dups_answer_print(answer);
    puts("");
}

int dups_make(const char *folder, const dups_plan *plan)
{
    tree all = {.plan = plan, .random = plan->seed};
    dups_answer answer;
    int err = plan_directories(&all);

    if (!err)
        err = plan_files(&all);
    if (!err)
        err = write_tree(folder, &all);
    if (!err) /* last, because it sorts the files */
        err = dups_answer_of(all.files, plan->files, folder, NULL, &answer);
    if (!err)
        print(&all, &answer);
    for (uint64_t i = 0; all.files && i < plan->files; i++)
        free(all.files[i].path);
    for (uint64_t i = 0; all.directories && i < plan->directories; i++)
        free(all.directories[i]);
    free(all.files);
    free(all.contents);
    free(all.directories);
    return err;
}

static int forget_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)where;
    if (kind != FTW_F || !S_ISREG(info->st_mode))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int err = fd < 0 ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (fd >= 0)
        close(fd);
    return err;
}

int dups_forget(const char *folder)
{
    int err = nftw(folder, forget_one, 32, FTW_PHYS);
    return err < 0 ? -errno : -err;
}
