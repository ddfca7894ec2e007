/* SPDX-License-Identifier: MIT */
/* The machine, and the CPU time that other programs used during the run. */
#include "driver.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

int core_count(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* CPU seconds that all cores were busy, including time stolen by the host. */
static double busy_seconds(void)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return 0;
    int count = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                       &idle, &iowait, &irq, &softirq, &steal);
    fclose(file);
    if (count != 8)
        return 0;
    return (double)(user + nice + system + irq + softirq + steal) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* CPU seconds of the driver and the programs it ran. */
static double own_seconds(void)
{
    struct rusage self;
    struct rusage children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds(self.ru_utime) + seconds(self.ru_stime) + seconds(children.ru_utime) +
           seconds(children.ru_stime);
}

double others_seconds(void)
{
    return busy_seconds() - own_seconds();
}

void machine_print(void)
{
    char model[128] = "unknown processor";
    char line[256];
    struct utsname system;

    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    uname(&system);
    printf("%s, %d cores, %s %s\n", model, core_count(), system.sysname, system.release);
}
