/* SPDX-License-Identifier: MIT */
/*
 * Finds files with the same bytes below a folder, in three phases:
 *
 *     walk     one task per directory lists names and lengths; it forks a task per subdirectory
 *     hash     one task per file that shares its length with another reads and hashes its blocks
 *     check    one task per group of files with the same length and hash compares them bytewise
 *
 * All tasks are forked, so each stays in the deque of its worker until a worker runs it. Each task
 * writes only to its own data, and its parent reads that after the join. So there is no lock and no
 * shared counter. Only regular files count; symbolic links are not followed. Hard links have the
 * same bytes, and count as duplicates.
 */
#include "dups.h"

#include "../workloads/probe.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each reader has one or two open descriptors. The total stays below the limit of a process. */
enum { READERS_MAX = 256 };

typedef struct place place;
struct place {
    char *path; /* relative to the folder; "" at the top */
    place *below, *next;
    dups_file *files;
    size_t file_count, room;
    unsigned failures;
    dups_task task;
};

/* Files with the same length and hash. */
typedef struct group {
    dups_file **files;
    size_t count;
    unsigned failures;
    dups_task task;
} group;

typedef struct search {
    dups_search *ask;
    int folder;        /* all paths are relative to it */
    filch_sem readers; /* tasks that may still open files */
    place top;
    dups_file **files; /* of all places */
    size_t file_count;
    group *groups;
    size_t group_count;
} search;

/* An address unique to the current thread. It is neither inlined nor treated as a constant: after a
 * wait, the task may be on another thread. */
static __attribute__((noinline)) const void *this_thread(void)
{
    static _Thread_local char mark;
    const void *address = &mark;

    __asm__ volatile("" : "+r"(address));
    return address;
}

/* With NULL as their frame, I/O calls block the thread. */
static filch_frame *io_of(const search *all, filch_frame *f)
{
    return all->ask->is_blocking ? NULL : f;
}

static void complain(const search *all, const char *path, int err)
{
    fprintf(stderr, "filch-bench-files: %s/%s: %s\n", all->ask->folder, path, strerror(-err));
}

/* ---- walk ------------------------------------------------------------------------------------ */

static char *join_path(const place *here, const char *name)
{
    char *path;
    return asprintf(&path, "%s%s%s", here->path, *here->path ? "/" : "", name) < 0 ? NULL : path;
}

static int add_file(place *here, const char *name, uint64_t bytes)
{
    if (here->file_count == here->room) {
        size_t room = here->room ? 2 * here->room : 8;
        dups_file *files = realloc(here->files, room * sizeof *files);
        if (!files)
            return -ENOMEM;
        here->files = files;
        here->room = room;
    }
    char *path = join_path(here, name);
    if (!path)
        return -ENOMEM;
    here->files[here->file_count++] = (dups_file){.path = path, .bytes = bytes};
    return 0;
}

static int add_place(place *here, const char *name, place **result)
{
    place *child = calloc(1, sizeof *child);

    if (!child || !(child->path = join_path(here, name))) {
        free(child);
        return -ENOMEM;
    }
    child->next = here->below;
    here->below = child;
    *result = child;
    return 0;
}

/* Add the entry: a file to `here`, a directory as *child. */
static int visit(filch_frame *io, place *here, int dir, const filch_dirent *entry, place **child)
{
    struct statx info = {0};

    if (entry->type == DT_DIR)
        return add_place(here, entry->name, child);
    if (entry->type != DT_REG && entry->type != DT_UNKNOWN)
        return 0;
    int err =
        filch_statx(io, dir, entry->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_SIZE, &info);
    if (err)
        return err;
    if (S_ISDIR(info.stx_mode))
        return add_place(here, entry->name, child);
    return S_ISREG(info.stx_mode) ? add_file(here, entry->name, info.stx_size) : 0;
}

static void fail_entry(const search *all, place *here, const char *name, int err)
{
    char *path = join_path(here, name);

    complain(all, path ? path : name, err);
    free(path);
    here->failures++;
}

FILCH_TASK(void, walk, (search *, all), (place *, here))
{
    filch_dir dir;
    filch_dirent entry;
    int more = -1;

    here->task.began = this_thread();
    filch_sem_acquire(io_of(all, FILCH_HERE), &all->readers);
    int err =
        filch_dir_open(io_of(all, FILCH_HERE), &dir, all->folder, *here->path ? here->path : ".");
    while (!err && (more = filch_dir_next(io_of(all, FILCH_HERE), &dir, &entry)) > 0) {
        place *child = NULL;
        int problem = visit(io_of(all, FILCH_HERE), here, dir.fd, &entry, &child);
        if (problem)
            fail_entry(all, here, entry.name, problem);
        if (child) {
            child->task.made = this_thread();
            FILCH_SPAWN(walk, all, child);
        }
    }
    if (!err)
        filch_dir_close(io_of(all, FILCH_HERE), &dir);
    filch_sem_release(&all->readers, 1);
    if (err || more < 0) {
        complain(all, here->path, err ? err : more);
        here->failures++;
    }
    here->task.ended = this_thread();
    FILCH_SYNC();
}

/* ---- hash ------------------------------------------------------------------------------------ */

/* O_NONBLOCK: the file may have been replaced by a FIFO. */
static int open_file(filch_frame *io, const search *all, const dups_file *file)
{
    return filch_openat(io, all->folder, file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
}

/* Read a whole block, or the rest of the file. Returns the number of bytes, or -errno; -ESTALE: the
 * file has become shorter. */
static ssize_t read_block(filch_frame *io, int fd, const dups_file *file, uint64_t offset,
                          char *block)
{
    uint64_t left = file->bytes - offset;
    size_t want = left < DUPS_BLOCK ? (size_t)left : DUPS_BLOCK;

    for (size_t used = 0; used < want;) {
        ssize_t got = filch_pread(io, fd, block + used, want - used, offset + used);
        if (got <= 0)
            return got < 0 ? got : -ESTALE;
        used += (size_t)got;
    }
    return (ssize_t)want;
}

FILCH_TASK(void, hash_file, (search *, all), (dups_file *, file))
{
    filch_frame *io = io_of(all, FILCH_HERE);
    char block[DUPS_BLOCK];
    ssize_t got = 0;

    file->task.began = this_thread();
    filch_sem_acquire(io, &all->readers);
    int fd = open_file(io, all, file);
    file->hash = DUPS_HASH_START;
    for (uint64_t offset = 0; fd >= 0 && offset < file->bytes && got >= 0;
         offset += (uint64_t)got) {
        got = read_block(io, fd, file, offset, block);
        if (got > 0)
            file->hash = dups_hash(file->hash, block, (size_t)got);
    }
    if (fd >= 0)
        filch_close(io, fd);
    filch_sem_release(&all->readers, 1);
    file->err = fd < 0 ? fd : got < 0 ? (int)got : 0;
    if (file->err)
        complain(all, file->path, file->err);
    if (all->ask->hash_bits < 64)
        file->hash &= (UINT64_C(1) << all->ask->hash_bits) - 1;
    file->task.ended = this_thread();
}

/* all->files is sorted by length, so files of the same length are adjacent. */
FILCH_TASK(void, hash_files, (search *, all))
{
    for (size_t i = 0; i < all->file_count; i++) {
        dups_file **at = &all->files[i], *file = *at;
        bool has_match = (i > 0 && at[-1]->bytes == file->bytes) ||
                         (i + 1 < all->file_count && at[1]->bytes == file->bytes);
        if (!has_match || file->bytes == 0)
            continue;
        file->task.made = this_thread();
        FILCH_SPAWN(hash_file, all, file);
    }
    FILCH_SYNC();
}

/* ---- check ----------------------------------------------------------------------------------- */

static int compare_open(filch_frame *io, int left, int right, const dups_file *a,
                        const dups_file *b)
{
    char left_block[DUPS_BLOCK], right_block[DUPS_BLOCK];

    for (uint64_t offset = 0; offset < a->bytes; offset += DUPS_BLOCK) {
        ssize_t got = read_block(io, left, a, offset, left_block);
        ssize_t got_too = got < 0 ? got : read_block(io, right, b, offset, right_block);
        if (got_too < 0)
            return (int)got_too;
        if (memcmp(left_block, right_block, (size_t)got) != 0)
            return 0;
    }
    return 1;
}

/* Returns 1 if both files have the same bytes, 0 if not, or -errno. */
static int compare_files(filch_frame *io, const search *all, const dups_file *a, const dups_file *b)
{
    int result = 1, left, right;

    if (a->bytes == 0)
        return 1;
    left = open_file(io, all, a);
    if (left < 0)
        return left;
    right = open_file(io, all, b);
    result = right < 0 ? right : compare_open(io, left, right, a, b);
    if (right >= 0)
        filch_close(io, right);
    filch_close(io, left);
    return result;
}

/* Compare each file with the first file of every kind found so far. So files that share a hash by
 * chance do not become duplicates. */
FILCH_TASK(void, check_group, (search *, all), (group *, suspects))
{
    filch_frame *io = io_of(all, FILCH_HERE);

    suspects->task.began = this_thread();
    filch_sem_acquire(io, &all->readers);
    for (size_t i = 1; i < suspects->count; i++) {
        dups_file *file = suspects->files[i];
        uint64_t own = file->group;
        for (size_t j = 0; j < i && file->group == own; j++) {
            dups_file *other = suspects->files[j];
            bool is_first = other->group == (uint64_t)(&suspects->files[j] - all->files);
            int is_same = is_first ? compare_files(io, all, other, file) : 0;
            if (is_same > 0)
                file->group = other->group;
            if (is_same >= 0)
                continue;
            complain(all, file->path, is_same);
            suspects->failures++;
        }
    }
    filch_sem_release(&all->readers, 1);
    suspects->task.ended = this_thread();
}

FILCH_TASK(void, check_groups, (search *, all))
{
    for (size_t i = 0; i < all->group_count; i++) {
        all->groups[i].task.made = this_thread();
        FILCH_SPAWN(check_group, all, &all->groups[i]);
    }
    FILCH_SYNC();
}

/* ---- between them ---------------------------------------------------------------------------- */

static int by_bytes_and_hash(const void *a, const void *b)
{
    const dups_file *left = *(dups_file *const *)a, *right = *(dups_file *const *)b;

    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    if (left->err != right->err) /* unreadable files match no other file */
        return left->err < right->err ? -1 : 1;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return strcmp(left->path, right->path);
}

static void count_files(search *all, const place *here)
{
    for (; here; here = here->next) {
        all->file_count += here->file_count;
        all->ask->directories++;
        count_files(all, here->below);
    }
}

static dups_file **list_files(dups_file **to, const place *here)
{
    for (; here; here = here->next) {
        for (size_t i = 0; i < here->file_count; i++)
            *to++ = &here->files[i];
        to = list_files(to, here->below);
    }
    return to;
}

static int gather_files(search *all)
{
    count_files(all, &all->top);
    all->files = malloc((all->file_count + 1) * sizeof *all->files);
    if (!all->files)
        return -ENOMEM;
    list_files(all->files, &all->top);
    qsort(all->files, all->file_count, sizeof *all->files, by_bytes_and_hash);
    return 0;
}

static bool may_be_same(const dups_file *a, const dups_file *b)
{
    return a->bytes == b->bytes && a->hash == b->hash && !a->err && !b->err;
}

static int gather_groups(search *all)
{
    all->groups = calloc(all->file_count / 2 + 1, sizeof *all->groups);
    if (!all->groups)
        return -ENOMEM;
    qsort(all->files, all->file_count, sizeof *all->files, by_bytes_and_hash);
    for (size_t i = 0, end; i < all->file_count; i = end) {
        for (end = i + 1; end < all->file_count && may_be_same(all->files[i], all->files[end]);)
            end++;
        for (size_t j = i; j < end; j++)
            all->files[j]->group = j; /* initially each file is the first of its kind */
        if (end - i > 1)
            all->groups[all->group_count++] = (group){.files = &all->files[i], .count = end - i};
    }
    return 0;
}

static void count_task(dups_search *ask, const dups_task *task)
{
    ask->tasks += task->began != NULL;
    ask->stolen += task->made && task->began != task->made;
    ask->moved += task->began != task->ended;
}

static void count_places(dups_search *ask, const place *here)
{
    for (; here; here = here->next) {
        count_task(ask, &here->task);
        ask->failures += here->failures;
        count_places(ask, here->below);
    }
}

static int conclude(search *all)
{
    dups_search *ask = all->ask;
    dups_file *copy = malloc((all->file_count + 1) * sizeof *copy);

    if (!copy)
        return -ENOMEM;
    for (size_t i = 0; i < all->file_count; i++) {
        copy[i] = *all->files[i];
        ask->bytes += copy[i].bytes;
        ask->failures += copy[i].err != 0;
        count_task(ask, &copy[i].task);
    }
    for (size_t i = 0; i < all->group_count; i++) {
        count_task(ask, &all->groups[i].task);
        ask->failures += all->groups[i].failures;
    }
    count_places(ask, &all->top);
    ask->files = all->file_count;
    int err = dups_answer_of(copy, all->file_count, ask->folder, ask->list, &ask->answer);
    free(copy);
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void free_places(place *here)
{
    for (place *next; here; here = next) {
        next = here->next;
        free_places(here->below);
        for (size_t i = 0; i < here->file_count; i++)
            free(here->files[i].path);
        free(here->files);
        if (*here->path) {
            free(here->path);
            free(here);
        }
    }
}

FILCH_TASK(int, run, (search *, all))
{
    dups_search *ask = all->ask;
    uint64_t start_ns = probe_clock_ns();

    FILCH_CALL(walk, all, &all->top);
    int err = gather_files(all);
    uint64_t walked_ns = probe_clock_ns();
    if (!err) {
        FILCH_CALL(hash_files, all);
        err = gather_groups(all);
    }
    uint64_t hashed_ns = probe_clock_ns();
    if (!err)
        FILCH_CALL(check_groups, all);
    ask->walk_ns = walked_ns - start_ns;
    ask->hash_ns = hashed_ns - walked_ns;
    ask->check_ns = probe_clock_ns() - hashed_ns;
    return err;
}

int dups_find(filch_pool *pool, dups_search *ask)
{
    char top[] = "";
    search all = {.ask = ask, .top.path = top};

    all.folder = open(ask->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all.folder < 0)
        return -errno;
    filch_sem_init(&all.readers, READERS_MAX);
    int err = FILCH_RUN(pool, run, &all);
    if (!err)
        err = conclude(&all);
    close(all.folder);
    free_places(&all.top);
    free(all.files);
    free(all.groups);
    return err;
}
