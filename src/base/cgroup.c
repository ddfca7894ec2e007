/* SPDX-License-Identifier: MIT */
/*
 * This file reads three kinds of files:
 *
 *   /proc/self/cgroup     1:cpu,cpuacct:/pod/app        our cgroup in a v1 hierarchy
 *                         0::/pod/app                   our cgroup in the v2 hierarchy
 *   /proc/self/mountinfo  33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
 *                         where that hierarchy is mounted, and which part of it
 *   v1  cpu.cfs_quota_us  150000 (or -1)                one per cgroup
 *       cpu.cfs_period_us 100000
 *   v2  cpu.max           150000 100000 (or max 100000)
 *
 * The cpu controller is in v1 or in v2. A hybrid system mounts both, so this code walks both; the
 * hierarchy without the controller has no such files.
 */
#include "base/cgroup.h"
#include "base/file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The strings point into the text of the two files in /proc. */
struct hierarchy {
    bool is_v2;
    const char *path;        /* of this process; NULL: it is not in this hierarchy */
    const char *mount_point; /* NULL: not mounted */
    const char *below;       /* the part of `path` under the mount: "" or "/app" */
    size_t mount_root_length;
};

/* The result of the walk so far. */
struct quota {
    uint64_t time_us; /* 0: no quota */
    uint64_t period_us;
    char cgroup[128];  /* the cgroup with that quota */
    char garbage[128]; /* a cgroup with an invalid quota, and its text */
};

/* The whole file as one string, which the caller frees. NULL: out of memory. A missing file gives
 * "". */
static char *read_all(const char *root, const char *path)
{
    char name[PATH_MAX];
    char *text = NULL;
    size_t size = 0;

    snprintf(name, sizeof name, "%s%s", root, path);
    FILE *file = fopen(name, "re");
    if (!file)
        return errno == ENOMEM ? NULL : calloc(1, 1);
    errno = 0;
    /* No such file contains a zero byte, so the first "line" is the whole file. */
    if (getdelim(&text, &size, '\0', file) < 0 && errno != ENOMEM) {
        free(text);
        text = calloc(1, 1);
    }
    fclose(file);
    return text;
}

/* Is `word` one of the comma-separated `list`? */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* mountinfo writes a space as \040; likewise a tab, a newline, a backslash. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The part of `path` below `mount_root`. NULL: the mount shows another part of the hierarchy, or
 * the path leaves our cgroup namespace, as "/../elsewhere" does. */
static const char *find_below(const char *path, const char *mount_root)
{
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);

    if (strncmp(path, mount_root, length) != 0)
        return NULL;
    path += length;
    if (strcmp(path, "/") == 0)
        return "";
    if (*path != '/' && *path != '\0')
        return NULL;
    if (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
        return NULL;
    return path;
}

/* 3:cpu,cpuacct:/pod/app */
static void parse_cgroup_line(char *line, struct hierarchy *v1, struct hierarchy *v2)
{
    char *id = strsep(&line, ":");
    char *controllers = strsep(&line, ":");

    if (!line || *line != '/')
        return;
    if (strcmp(id, "0") == 0 && *controllers == '\0')
        v2->path = line;
    else if (has_word(controllers, "cpu"))
        v1->path = line;
}

/* 33 24 0:29 /pod /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu */
static void parse_mount_line(char *line, struct hierarchy *v1, struct hierarchy *v2)
{
    char *filesystem = strstr(line, " - ");
    if (!filesystem)
        return;
    *filesystem = '\0';
    filesystem += strlen(" - ");

    char *fields[5];
    for (int i = 0; i < 5; i++)
        fields[i] = strsep(&line, " ");
    char *mount_root = fields[3], *mount_point = fields[4];
    char *type = strsep(&filesystem, " ");
    strsep(&filesystem, " "); /* the device: any word */
    if (!mount_point || !filesystem)
        return;

    struct hierarchy *h;
    if (strcmp(type, "cgroup2") == 0)
        h = v2;
    else if (strcmp(type, "cgroup") == 0 && has_word(filesystem, "cpu"))
        h = v1;
    else
        return;
    if (!h->path)
        return;

    /* Of several mounts, prefer one that shows our own cgroup, with as many of its ancestors as
     * possible. If none shows it, this is a container that has mounted only its own part. */
    unescape(mount_root);
    unescape(mount_point);
    const char *below = find_below(h->path, mount_root);
    size_t length = below ? strlen(mount_root) : SIZE_MAX;
    if (h->mount_point && length > h->mount_root_length)
        return;
    h->mount_point = mount_point;
    h->mount_root_length = length;
    h->below = below ? below : "";
}

/* The number at *text; moves *text to the next word. 0: there is no number. A quota or a period is
 * never 0. A number that is too large becomes UINT64_MAX. */
static uint64_t take_number(const char **text)
{
    char *end;

    if (**text < '0' || **text > '9')
        return 0;
    uint64_t number = strtoull(*text, &end, 10);
    *text = end + strspn(end, " \t\n");
    return number;
}

static double cpus_of(uint64_t time_us, uint64_t period_us)
{
    return (double)time_us / (double)period_us;
}

/* Keep the quota of the cgroup `dir`, called `name`, if it is the smallest so far. */
static void look_at(const char *dir, const char *name, bool is_v2, struct quota *smallest)
{
    char text[96], period[32], first[8] = "";

    if (is_v2) {
        filch_file_read(text, sizeof text, "%s/cpu.max", dir);
    } else if (filch_file_read(text, 32, "%s/cpu.cfs_quota_us", dir) == 0) {
        filch_file_read(period, sizeof period, "%s/cpu.cfs_period_us", dir);
        strcat(strcat(text, " "), period);
    }
    sscanf(text, "%7s", first);
    if (*first == '\0' || strcmp(first, "max") == 0 || strcmp(first, "-1") == 0)
        return;

    const char *rest = text;
    uint64_t time_us = take_number(&rest);
    uint64_t period_us = take_number(&rest);
    if (time_us == 0 || period_us == 0 || *rest != '\0') {
        snprintf(smallest->garbage, sizeof smallest->garbage, ", '%.32s' of %.64s ignored", text,
                 name);
        return;
    }
    if (smallest->time_us &&
        cpus_of(time_us, period_us) >= cpus_of(smallest->time_us, smallest->period_us))
        return;
    smallest->time_us = time_us;
    smallest->period_us = period_us;
    snprintf(smallest->cgroup, sizeof smallest->cgroup, "%s", name);
}

/* Look at each cgroup from our own up to the mount point. 0 or -ENOMEM. */
static int walk_up(const char *root, const struct hierarchy *h, struct quota *smallest)
{
    char *dir;

    if (!h->mount_point)
        return 0;
    if (asprintf(&dir, "%s%s%s", root, h->mount_point, h->below) < 0)
        return -ENOMEM;

    char *below = dir + strlen(root) + strlen(h->mount_point);
    while (*below) {
        look_at(dir, below, h->is_v2, smallest);
        *strrchr(below, '/') = '\0';
    }
    look_at(dir, "/", h->is_v2, smallest);
    free(dir);
    return 0;
}

int filch_cgroup_cpus(const char *root, unsigned *cpus, char *why, size_t why_size)
{
    struct hierarchy v1 = {.is_v2 = false}, v2 = {.is_v2 = true};
    struct quota smallest = {0};
    int err = -ENOMEM;
    char *line, *rest;

    *cpus = 0;
    snprintf(why, why_size, "no cgroup quota: out of memory");

    char *cgroups = read_all(root, "/proc/self/cgroup");
    if (!cgroups)
        return err;
    for (rest = cgroups; (line = strsep(&rest, "\n"));)
        parse_cgroup_line(line, &v1, &v2);

    char *mounts = read_all(root, "/proc/self/mountinfo");
    if (!mounts)
        goto free_cgroups;
    for (rest = mounts; (line = strsep(&rest, "\n"));)
        parse_mount_line(line, &v1, &v2);

    err = walk_up(root, &v1, &smallest);
    if (err)
        goto free_mounts;
    err = walk_up(root, &v2, &smallest);
    if (err)
        goto free_mounts;

    if (smallest.time_us == 0) {
        snprintf(why, why_size, "no cgroup quota%s", smallest.garbage);
        goto free_mounts;
    }
    uint64_t whole = smallest.time_us / smallest.period_us;
    bool has_rest = smallest.time_us % smallest.period_us != 0;
    *cpus = whole < UINT_MAX ? (unsigned)whole + has_rest : UINT_MAX;
    double exact = cpus_of(smallest.time_us, smallest.period_us);
    snprintf(why, why_size, "cgroup quota %.6g CPU%s (%s)%s", exact, exact == 1 ? "" : "s",
             smallest.cgroup, smallest.garbage);

free_mounts:
    free(mounts);
free_cgroups:
    free(cgroups);
    return err;
}
