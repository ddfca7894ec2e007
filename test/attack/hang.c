/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a program do that makes no progress.
 */
#include "supervise.h"

#include <dirent.h>

#define PROCESSES_MAX 3 /* in a report; each may take half a minute */

typedef void each_fn(pid_t process, void *arg);

/* Each process of the program's group: it may have children. */
static void each_process(pid_t group, unsigned count_max, each_fn *fn, void *arg)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && count_max > 0 && (entry = readdir(proc))) {
        pid_t process = (pid_t)atoi(entry->d_name);
        if (process <= 0 || getpgid(process) != group)
            continue;
        fn(process, arg);
        count_max--;
    }
    if (proc)
        closedir(proc);
}

/* ---- the report ------------------------------------------------------------------------------ */

/* What an epoll instance waits for. */
static void print_epoll(pid_t process, const char *fd, FILE *out)
{
    char path[300], line[300];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", process, fd);
    FILE *info = fopen(path, "r");

    while (info && fgets(line, sizeof line, info))
        if (strncmp(line, "tfd", 3) == 0)
            fprintf(out, "  %s", line);
    if (info)
        fclose(info);
}

/* A pipe whose end is still open somewhere explains many a wait. */
static void print_descriptors(pid_t process, FILE *out)
{
    char path[300], target[200] = "";
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *folder = opendir(path);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", process, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 0)
            fprintf(out, "fd %s: %.*s\n", entry->d_name, (int)length, target);
        if (length > 0 && strstr(target, "eventpoll"))
            print_epoll(process, entry->d_name, out);
    }
    if (folder)
        closedir(folder);
}

/* A debugger that waits for the terminal, or ignores SIGTERM, does not stop the supervisor. */
static void print_process(pid_t process, void *arg)
{
    FILE *out = arg;
    char command[300], line[1000];

    snprintf(command, sizeof command,
             "timeout -k 5 30 gdb -nx /proc/%d/exe -p %d -batch -ex 'set pagination off' "
             "-ex 'thread apply all bt 25' </dev/null 2>/dev/null | grep -E '^(#|Thread)'",
             process, process);
    fprintf(out, "---- process %d\n", process);
    FILE *gdb = popen(command, "r");
    while (gdb && fgets(line, sizeof line, gdb))
        fputs(line, out);
    if (gdb)
        pclose(gdb);
    print_descriptors(process, out);
}

void hang_report(pid_t group, FILE *out)
{
    each_process(group, PROCESSES_MAX, print_process, out);
    fflush(out);
}

/* ---- waits for a CPU ------------------------------------------------------------------------- */

/* The second number of schedstat. */
static void add_waited(pid_t process, void *arg)
{
    uint64_t *sum_ns = arg;
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    const struct dirent *entry;

    while (tasks && (entry = readdir(tasks))) {
        unsigned long long ran_ns, waited_ns;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", process, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2)
            *sum_ns += waited_ns;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
}

uint64_t hang_waited_ns(pid_t group)
{
    uint64_t sum_ns = 0;

    each_process(group, UINT32_MAX, add_waited, &sum_ns);
    return sum_ns;
}
