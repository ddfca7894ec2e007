/* SPDX-License-Identifier: MIT */
/*
 * What the parts of filch-bench-files have in common: files, and which of them have the same bytes.
 *
 *     make.c     a tree whose answer is known
 *     find.c     the answer, by tasks that read the tree
 *     answer.c   both in the same form, so that they can be compared
 */
#ifndef BENCH_DUPS_H
#define BENCH_DUPS_H

#include <filch/filch.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes that are read at once. */
enum { DUPS_BLOCK = 4096 };

/* Where a task was made, began and ended: addresses that differ from thread to thread. */
typedef struct dups_task {
    const void *made, *began, *ended;
} dups_task;

typedef struct dups_file {
    char *path; /* from the folder on */
    uint64_t bytes, hash;
    uint64_t group; /* files with the same one have the same bytes */
    dups_task task; /* that has hashed it */
    int err;        /* it could not be read */
} dups_file;

/* ---- answer.c ---------------------------------------------------------------------------------- */

/* Groups of two files and more. The first of a group, by name, is the original, all others are its duplicates. */
typedef struct dups_answer {
    uint64_t groups, duplicates, duplicate_bytes;
    uint64_t empty;    /* files without a byte, duplicates or not */
    uint64_t checksum; /* of all groups and names */
} dups_answer;

/* Sorts the files by group and name. With `list`, each group is printed there: a name on a line, and an empty line at its end. 0 or -ENOMEM. */
int dups_answer_of(dups_file *files, size_t count, const char *folder, FILE *list,
                   dups_answer *answer);

/* As words of the line of results. */
void dups_answer_print(const dups_answer *answer);

#define DUPS_HASH_START UINT64_C(0x9e3779b97f4a7c15)

/* Not for enemies: two texts with the same hash can be made. */
uint64_t dups_hash(uint64_t hash, const void *data, size_t bytes);

/* ---- make.c ------------------------------------------------------------------------------------ */

typedef struct dups_plan {
    uint64_t seed, kib, directories, files;
} dups_plan;

/* Make the folder, and all that is in it. 0 or -errno. */
int dups_make(const char *folder, const dups_plan *plan);

/* ---- find.c ------------------------------------------------------------------------------------ */

typedef struct dups_search {
    const char *folder;
    bool is_blocking;   /* system calls block the worker */
    unsigned hash_bits; /* how many of a hash are used; with fewer, more files are compared */
    FILE *list;         /* where the groups are printed, or NULL */

    /* What was found, and how. */
    dups_answer answer;
    uint64_t files, directories, bytes;
    uint64_t failures; /* files and directories that could not be read */
    /* Stolen: began on another thread than it was made on. Moved: ended on another than it began on, since another worker took its I/O over. */
    uint64_t tasks, stolen, moved;
    uint64_t walk_ns, hash_ns, check_ns; /* one after the other */
} dups_search;

/* 0 or -errno. What cannot be read is told on stderr, and is no error. */
int dups_find(filch_pool *pool, dups_search *search);

/* Let the kernel forget what it has of the files in memory; names and sizes stay. 0 or -errno. */
int dups_forget(const char *folder);

#endif
