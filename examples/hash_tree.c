/* SPDX-License-Identifier: MIT */
/*
 * One hash of all files below a directory: one task per directory, and one per large file.
 *
 *     hash_tree               hash a small tree that it makes itself; this mode is the test
 *     hash_tree <path>        print the number of files, their bytes and the hash
 *
 * The hash depends on names and bytes, not on the order of the walk, so no task waits for another.
 * Only regular files count; symbolic links are not followed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <filch/filch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 64 << 10,  /* bytes per read */
    LARGE = 512 << 10, /* bytes from which a file gets its own task */
    OPEN_MAX_DIRS = 100,
};

/* ---- the hash -------------------------------------------------------------------------------- */

#define HASH_START UINT64_C(0x9e3779b97f4a7c15)

/* Every bit of x affects every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

/*
 * Hash four words at a time, so that four multiplications overlap.
 * Not cryptographic: an attacker can make two texts with the same hash.
 */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    uint64_t lane[4] = {hash, hash + 1, hash + 2, hash + 3};
    const unsigned char *at = data;
    size_t left = bytes;

    for (; left >= sizeof lane; left -= sizeof lane, at += sizeof lane) {
        uint64_t word[4];
        memcpy(word, at, sizeof word);
        for (int i = 0; i < 4; i++) {
            lane[i] = (lane[i] ^ word[i]) * UINT64_C(0xff51afd7ed558ccd);
            lane[i] = lane[i] << 31 | lane[i] >> 33;
        }
    }
    uint64_t last[4] = {0};
    memcpy(last, at, left);
    for (int i = 0; i < 4; i++)
        hash = mix(hash ^ lane[i] ^ mix(last[i] + (unsigned)i));
    return mix(hash ^ bytes);
}

/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct hash_tree {
    uint64_t files, bytes, hash;
    uint64_t failures; /* files and directories that could not be read */
} hash_tree;

typedef struct walk {
    filch_scope scope;
    filch_sem open_dirs; /* directories that may still be opened */
    size_t root_bytes;   /* length of the common start of all paths */
    _Atomic uint64_t files, bytes, hash, failures;
} walk;

/* The argument of a task, copied only up to the end of its path. */
typedef struct place {
    walk *walk;
    char path[PATH_MAX];
} place;

static void fail(const place *at, int err)
{
    fprintf(stderr, "hash_tree: %s: %s\n", at->path, filch_strerror(err));
    atomic_fetch_add_explicit(&at->walk->failures, 1, memory_order_relaxed);
}

static int spawn_at(filch_frame *f, const place *at, filch_task_fn *fn)
{
    return filch_scope_spawn_copy(f, &at->walk->scope, fn, at,
                                  offsetof(place, path) + strlen(at->path) + 1);
}

/* Hash the contents of `fd`, then close it. */
static void hash_file(filch_frame *f, const place *at, int fd)
{
    char block[BLOCK];
    const char *name = at->path + at->walk->root_bytes;
    uint64_t hash = hash_bytes(HASH_START, name, strlen(name)), offset = 0;
    size_t used;
    ssize_t got = 0;

    do {
        /* Fill each block but the last, however many bytes a read returns: the hash must not
         * depend on that. */
        for (used = 0; used < BLOCK; used += (size_t)got) {
            got = filch_pread(f, fd, block + used, BLOCK - used, offset + used);
            if (got <= 0)
                break;
        }
        hash = hash_bytes(hash, block, used);
        offset += used;
    } while (used == BLOCK);
    filch_close(f, fd);
    if (got < 0) {
        fail(at, (int)got);
        return;
    }
    /* relaxed: sums, read after the scope is closed. */
    atomic_fetch_add_explicit(&at->walk->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&at->walk->bytes, offset, memory_order_relaxed);
    atomic_fetch_add_explicit(&at->walk->hash, hash, memory_order_relaxed);
}

static int hash_large_file(filch_frame *f, void *arg)
{
    const place *at = arg;
    int fd = filch_open(f, at->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        fail(at, fd);
    else
        hash_file(f, at, fd);
    return 0;
}

static int walk_directory(filch_frame *f, void *arg);

static int visit(filch_frame *f, const place *at, int dir, const filch_dirent *entry)
{
    struct statx info = {0};

    if (entry->type == DT_DIR)
        return spawn_at(f, at, walk_directory);
    if (entry->type != DT_REG && entry->type != DT_UNKNOWN)
        return 0;
    int err = filch_statx(f, dir, entry->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_SIZE, &info);
    if (err)
        return err;
    if (S_ISDIR(info.stx_mode))
        return spawn_at(f, at, walk_directory);
    if (!S_ISREG(info.stx_mode))
        return 0;
    if (info.stx_size >= LARGE)
        return spawn_at(f, at, hash_large_file);
    int fd = filch_openat(f, dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd >= 0)
        hash_file(f, at, fd);
    return fd < 0 ? fd : 0;
}

/* A task that holds a unit of the semaphore waits for no directory, so one always proceeds. */
static int walk_directory(filch_frame *f, void *arg)
{
    const place *here = arg;
    filch_dir dir;
    filch_dirent entry;
    place at = {.walk = here->walk};
    int more, err = filch_sem_acquire(f, &here->walk->open_dirs);

    if (err)
        return err;
    err = filch_dir_open(f, &dir, FILCH_CWD, here->path);
    if (err) {
        fail(here, err);
        filch_sem_release(&here->walk->open_dirs, 1);
        return 0;
    }
    while ((more = filch_dir_next(f, &dir, &entry)) > 0) {
        int bytes = snprintf(at.path, sizeof at.path, "%s/%s", here->path, entry.name);
        err = bytes < (int)sizeof at.path ? visit(f, &at, dir.fd, &entry) : -ENAMETOOLONG;
        if (err)
            fail(&at, err);
    }
    if (more < 0)
        fail(here, more);
    filch_dir_close(f, &dir);
    filch_sem_release(&here->walk->open_dirs, 1);
    return 0;
}

/*
 * Hash all files below `path`. Returns 0, or -errno without a result.
 * Unreadable files and directories are reported on stderr and counted.
 */
static int hash_tree_run(filch_frame *f, const char *path, hash_tree *result)
{
    walk all = {.root_bytes = strlen(path)};
    place root = {.walk = &all};

    if (all.root_bytes >= sizeof root.path)
        return -ENAMETOOLONG;
    memcpy(root.path, path, all.root_bytes + 1);
    filch_sem_init(&all.open_dirs, OPEN_MAX_DIRS);
    int err = filch_scope_open(f, &all.scope, NULL, NULL);
    if (err)
        return err;
    err = spawn_at(f, &root, walk_directory);
    int closed = filch_scope_close(f, &all.scope);
    *result = (hash_tree){all.files, all.bytes, all.hash, all.failures};
    return err ? err : closed;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void run(filch_frame *f, void *arg)
{
    const char *path = arg;
    hash_tree result;
    int err = hash_tree_run(f, path, &result);

    if (err)
        printf("%s\n", filch_strerror(err));
    else
        printf("%" PRIu64 " files, %" PRIu64 " bytes, %016" PRIx64 "\n", result.files, result.bytes,
               result.hash);
    if (!err && result.failures)
        printf("%" PRIu64 " could not be read\n", result.failures);
}

/* Make or remove `levels` levels of directories, with files of various lengths. */
static int change_small_tree(char *path, unsigned levels, bool make)
{
    static const size_t lengths[] = {0, 1, 31, 32, BLOCK, BLOCK + 1, LARGE + 7};
    size_t end = strlen(path);
    int err = make && levels < 3 ? mkdir(path, 0700) : 0;

    for (unsigned i = 0; !err && i < sizeof lengths / sizeof *lengths; i++) {
        sprintf(path + end, "/file%u", i);
        FILE *file = make ? fopen(path, "w") : NULL;
        for (size_t j = 0; file && j < lengths[i]; j++)
            putc((int)(j * 7 + j / 251 + levels), file);
        err = make ? !file || fclose(file) : unlink(path);
    }
    for (unsigned i = 0; !err && levels > 0 && i < 3; i++) {
        sprintf(path + end, "/dir%u", i);
        err = change_small_tree(path, levels - 1, make);
    }
    path[end] = 0;
    return err ? err : make ? 0 : rmdir(path);
}

static void demonstrate(filch_pool *pool)
{
    char path[PATH_MAX] = "/tmp/hash_tree.XXXXXX", name[PATH_MAX + 10], other[PATH_MAX + 10];

    if (!mkdtemp(path) || change_small_tree(path, 3, true)) {
        perror("hash_tree");
        return;
    }
    snprintf(name, sizeof name, "%s/file1", path);
    snprintf(other, sizeof other, "%s/other", path);
    filch_run(pool, run, path);
    printf("the same once more:\n");
    filch_run(pool, run, path);
    printf("with another name for one file:\n");
    rename(name, other);
    filch_run(pool, run, path);
    rename(other, name);
    change_small_tree(path, 3, false);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options, .stack_bytes = 256 << 10};
    filch_pool *pool;

    if (filch_pool_create(&pool, &options))
        return 1;
    if (argc > 1)
        filch_run(pool, run, argv[1]);
    else
        demonstrate(pool);
    return filch_pool_destroy(pool);
}
