/* SPDX-License-Identifier: MIT */
/*
 * A directory that plays the root of a machine. Tests write its proc and sys, and pass its name as
 * `root` to the code that reads them.
 */
#ifndef FILCH_TEST_FAKE_TREE_H
#define FILCH_TEST_FAKE_TREE_H

#include "support.h"

#include <ftw.h>
#include <sys/stat.h>

/* One per test program: cmocka runs its tests one after the other. */
static char fake_root[64];

static inline int fake_tree_create(void **state)
{
    (void)state;
    snprintf(fake_root, sizeof fake_root, "%s/filch-test-XXXXXX", P_tmpdir);
    return mkdtemp(fake_root) ? 0 : -1;
}

static inline int fake_tree_remove_one(const char *path, const struct stat *info, int type,
                                       struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline int fake_tree_remove(void **state)
{
    (void)state;
    return nftw(fake_root, fake_tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Write a file, with all directories on the way. */
__attribute__((format(printf, 2, 3))) static inline void fake_file(const char *text,
                                                                   const char *path_format, ...)
{
    char path[PATH_MAX];
    va_list arguments;

    int length = snprintf(path, sizeof path, "%s", fake_root);
    va_start(arguments, path_format);
    vsnprintf(path + length, sizeof path - (size_t)length, path_format, arguments);
    va_end(arguments);

    for (char *slash = path + length; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define IN_FAKE_TREE(test) cmocka_unit_test_setup_teardown(test, fake_tree_create, fake_tree_remove)

#endif
