/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the parts of filch-bench-files, which finds files with the same bytes.
 *
 *     make.c     makes a tree whose duplicates are known
 *     find.c     finds the duplicates with tasks that read the tree
 *     answer.c   brings both results into the same form, to compare them
 */
#ifndef BENCH_DUPS_H
#define BENCH_DUPS_H

#include <filch/filch.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes per read. */
enum { DUPS_BLOCK = 4096 };

/* The threads on which a task was made, began and ended, as addresses unique to each thread. */
typedef struct dups_task {
    const void *made, *began, *ended;
} dups_task;

typedef struct dups_file {
    char *path; /* relative to the folder */
    uint64_t bytes, hash;
    uint64_t group; /* files of one group have the same bytes */
    dups_task task; /* the task that hashed it */
    int err;        /* why it could not be read; 0: it was read */
} dups_file;

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Groups of at least two files. The first of a group by name is the original, all others are its
 * duplicates. */
typedef struct dups_answer {
    uint64_t groups, duplicates, duplicate_bytes;
    uint64_t empty;    /* empty files, duplicates or not */
    uint64_t checksum; /* over all groups and names */
} dups_answer;

/* Sort the files by group and name, and fill in `answer`. If `list` is set, print each group there:
 * one name per line, then an empty line. Returns 0 or -ENOMEM. */
int dups_answer_of(dups_file *files, size_t count, const char *folder, FILE *list,
                   dups_answer *answer);

/* Print the answer as words of the result line. */
void dups_answer_print(const dups_answer *answer);

#define DUPS_HASH_START UINT64_C(0x9e3779b97f4a7c15)

/* Not cryptographic: an attacker can make two texts with the same hash. */
uint64_t dups_hash(uint64_t hash, const void *data, size_t bytes);

/* ---- make.c ---------------------------------------------------------------------------------- */

typedef struct dups_plan {
    uint64_t seed, kib, directories, files;
} dups_plan;

/* Make the folder and its contents. Returns 0 or -errno. */
int dups_make(const char *folder, const dups_plan *plan);

/* ---- find.c ---------------------------------------------------------------------------------- */

typedef struct dups_search {
    const char *folder;
    bool is_blocking;   /* system calls block the worker */
    unsigned hash_bits; /* bits of a hash that count; with fewer, more files are compared */
    FILE *list;         /* print the groups there, or NULL */

    /* Results. */
    dups_answer answer;
    uint64_t files, directories, bytes;
    uint64_t failures; /* files and directories that could not be read */
    /* Stolen tasks began on another thread than they were made on. Moved tasks ended on another
     * thread than they began on: another worker resumed them after I/O. */
    uint64_t tasks, stolen, moved;
    uint64_t walk_ns, hash_ns, check_ns; /* the phases, in this order */
} dups_search;

/* Returns 0 or -errno. Unreadable files are reported on stderr and counted, and are no error. */
int dups_find(filch_pool *pool, dups_search *search);

/* Let the kernel drop the cached bytes of the files; names and sizes stay. Returns 0 or -errno. */
int dups_forget(const char *folder);

#endif
