/* SPDX-License-Identifier: MIT */
/* Groups of equal files: counted, sorted, and condensed to a checksum. */
#include "dups.h"

#include "../workloads/kernels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hash four words at a time, so that four multiplications overlap. */
uint64_t dups_hash(uint64_t hash, const void *data, size_t bytes)
{
    uint64_t lane[4] = {hash, hash + 1, hash + 2, hash + 3}, last[4] = {0};
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
    memcpy(last, at, left);
    for (int i = 0; i < 4; i++)
        hash = uts_mix(hash ^ lane[i] ^ uts_mix(last[i] + (unsigned)i));
    return uts_mix(hash ^ bytes);
}

static int by_group_and_name(const void *a, const void *b)
{
    const dups_file *left = a, *right = b;

    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* The files of a group are adjacent: from `first` to before `last`. */
typedef struct group {
    const dups_file *first, *last;
} group;

static int by_first_name(const void *a, const void *b)
{
    const group *left = a, *right = b;
    return strcmp(left->first->path, right->first->path);
}

static void add_group(dups_answer *answer, const group *one, const char *folder, FILE *list)
{
    uint64_t copies = (uint64_t)(one->last - one->first) - 1;

    answer->groups++;
    answer->duplicates += copies;
    answer->duplicate_bytes += copies * one->first->bytes;
    for (const dups_file *file = one->first; file < one->last; file++) {
        answer->checksum = dups_hash(answer->checksum, file->path, strlen(file->path));
        if (list)
            fprintf(list, "%s/%s\n", folder, file->path);
    }
    answer->checksum = dups_hash(answer->checksum, &one->first->bytes, sizeof one->first->bytes);
    if (list)
        putc('\n', list);
}

int dups_answer_of(dups_file *files, size_t count, const char *folder, FILE *list,
                   dups_answer *answer)
{
    group *groups = malloc((count / 2 + 1) * sizeof *groups);
    size_t group_count = 0;

    if (!groups)
        return -ENOMEM;
    *answer = (dups_answer){.checksum = DUPS_HASH_START};
    qsort(files, count, sizeof *files, by_group_and_name);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && files[end].group == files[i].group;)
            end++;
        if (end - i > 1)
            groups[group_count++] = (group){files + i, files + end};
    }
    for (size_t i = 0; i < count; i++)
        answer->empty += files[i].bytes == 0;
    qsort(groups, group_count, sizeof *groups, by_first_name);
    for (size_t i = 0; i < group_count; i++)
        add_group(answer, &groups[i], folder, list);
    free(groups);
    return 0;
}

void dups_answer_print(const dups_answer *answer)
{
    printf(" groups=%" PRIu64 " duplicates=%" PRIu64 " duplicate_bytes=%" PRIu64 " empty=%" PRIu64
           " checksum=%016" PRIx64,
           answer->groups, answer->duplicates, answer->duplicate_bytes, answer->empty,
           answer->checksum);
}
