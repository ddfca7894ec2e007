/* SPDX-License-Identifier: MIT */
#include "base/topology.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include <filch/atomic.h>

#include <sched.h>
#include <stdbool.h>

/* More CPUs than any kernel supports: if this is not enough, the error is not about the size. */
#define MAX_CPUS (1 << 20)

/* Set *number to the first number in a file about this CPU. False: there is none, and *number is
 * unchanged. A list such as "0-3,8-11" begins with its smallest number. */
static bool read_number(unsigned *number, const char *root, unsigned cpu, const char *file)
{
    char text[64];

    return filch_file_read(text, sizeof text, "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu,
                           file) == 0 &&
           sscanf(text, "%u", number) == 1;
}

static void read_cpu(filch_cpu *cpu, const char *root)
{
    unsigned id = cpu->id;
    char file[64];

    read_number(&cpu->core, root, id, "topology/thread_siblings_list");
    read_number(&cpu->package, root, id, "topology/core_siblings_list");

    cpu->l3 = cpu->package;
    for (int i = 0;; i++) {
        unsigned level;
        snprintf(file, sizeof file, "cache/index%d/level", i);
        if (!read_number(&level, root, id, file))
            break;
        snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", i);
        if (level == 3)
            read_number(&cpu->l3, root, id, file);
    }
}

/* Allocate *mask large enough for this kernel. Returns the number of CPUs it has room for, or
 * -errno. */
static int read_affinity(cpu_set_t **mask)
{
    for (int max_cpus = CPU_SETSIZE; max_cpus <= MAX_CPUS; max_cpus *= 2) {
        *mask = CPU_ALLOC(max_cpus);
        if (!*mask)
            return -ENOMEM;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE(max_cpus), *mask) == 0)
            return max_cpus;
        int err = -errno;
        CPU_FREE(*mask);
        if (err != -EINVAL)
            return err;
    }
    return -EINVAL;
}

/* Sorts the siblings of a core next to each other. */
static int compare_cores(const void *left, const void *right)
{
    const filch_cpu *a = left, *b = right;

    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Sorts CPUs in the order in which workers take them. */
static int compare_places(const void *left, const void *right)
{
    const filch_cpu *a = left, *b = right;

    if (a->sibling != b->sibling)
        return a->sibling < b->sibling ? -1 : 1;
    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->l3 != b->l3)
        return a->l3 < b->l3 ? -1 : 1;
    return compare_cores(left, right);
}

int filch_topology_init(filch_topology *topology)
{
    cpu_set_t *mask;
    int err = 0;

    int max_cpus = read_affinity(&mask);
    if (max_cpus < 0)
        return max_cpus;

    unsigned count = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(max_cpus), mask);
    filch_cpu *cpus = filch_calloc(count, sizeof *cpus);
    if (!cpus) {
        err = -ENOMEM;
        goto free_mask;
    }
    unsigned found = 0;
    for (int id = 0; id < max_cpus; id++)
        if (CPU_ISSET_S(id, CPU_ALLOC_SIZE(max_cpus), mask))
            cpus[found++] = (filch_cpu){.id = (unsigned)id, .core = (unsigned)id};

    topology->cpu_count = count;
    topology->cpus = cpus;

free_mask:
    CPU_FREE(mask);
    return err;
}

void filch_topology_explore(filch_topology *topology, const char *root)
{
    unsigned count = topology->cpu_count;
    filch_cpu *cpus = topology->cpus;

    for (unsigned i = 0; i < count; i++)
        read_cpu(&cpus[i], root);
    qsort(cpus, count, sizeof *cpus, compare_cores);
    for (unsigned i = 1; i < count; i++)
        if (cpus[i].core == cpus[i - 1].core)
            cpus[i].sibling = cpus[i - 1].sibling + 1;
    qsort(cpus, count, sizeof *cpus, compare_places);
}

void filch_topology_fini(filch_topology *topology)
{
    free(topology->cpus);
}

unsigned filch_topology_parse_count(const char *text)
{
    char *end;

    if (*text < '0' || *text > '9')
        return 0;
    unsigned long count = strtoul(text, &end, 10);
    return *end == '\0' && count <= UINT_MAX ? (unsigned)count : 0;
}

/* The quota of the process, or 0, and when it was read, in milliseconds: reading it takes some 100
 * us. A process with many pools reads it once a second at most. */
#define QUOTA_BITS 16
#define QUOTA_MS 1000

static filch_atomic_u64 known_quota;

static unsigned read_quota(const char *root)
{
    /* relaxed: one word has both. */
    uint64_t now_ms = filch_clock_ns() / 1000000, known = filch_load_relaxed(&known_quota);
    unsigned quota_cpus;

    if (root[0] == '\0' && known != 0 && now_ms - (known >> QUOTA_BITS) < QUOTA_MS)
        return (unsigned)(known & ((1 << QUOTA_BITS) - 1));
    filch_cgroup_cpus(root, &quota_cpus, NULL, 0);
    if (root[0] == '\0' && quota_cpus < 1 << QUOTA_BITS)
        /* relaxed: as above. */
        filch_store_relaxed(&known_quota, now_ms << QUOTA_BITS | quota_cpus);
    return quota_cpus;
}

unsigned filch_topology_limit(unsigned cpu_count, const char *root)
{
    unsigned quota_cpus = read_quota(root);

    return quota_cpus > 0 && quota_cpus < cpu_count ? quota_cpus : cpu_count;
}

unsigned filch_topology_default_workers(const filch_topology *topology, const char *root,
                                        unsigned *at_hand, char *why, size_t why_size)
{
    char quota[320], ignored[64] = "";
    unsigned cpu_count = topology->cpu_count, workers = cpu_count, quota_cpus;

    *at_hand = 0;
    const char *wish = getenv("FILCH_WORKERS");
    if (wish) {
        unsigned wished = filch_topology_parse_count(wish);
        if (wished > 0) {
            snprintf(why, why_size, "%u worker%s: set by FILCH_WORKERS", wished,
                     wished == 1 ? "" : "s");
            return wished;
        }
        snprintf(ignored, sizeof ignored, ", FILCH_WORKERS='%.32s' ignored", wish);
    }

    filch_cgroup_cpus(root, &quota_cpus, quota, sizeof quota);
    if (quota_cpus > 0 && quota_cpus < workers)
        workers = quota_cpus;
    snprintf(why, why_size, "%u worker%s: %u CPU%s in the affinity mask, %s%s", workers,
             workers == 1 ? "" : "s", cpu_count, cpu_count == 1 ? "" : "s", quota, ignored);
    *at_hand = workers;
    return workers;
}
