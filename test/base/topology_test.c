/* SPDX-License-Identifier: MIT */
#include "fake_tree.h"

#include "base/topology.h"

#include <sched.h>
#include <sys/syscall.h>

/*
 * The machine of these tests. The library calls the sched_getaffinity below instead of libc's. With
 * kernel_cpus at 0 it asks the real kernel.
 */
static unsigned kernel_cpus;    /* a mask for fewer CPUs is EINVAL */
static unsigned affinity[8192]; /* the CPUs in the mask */
static unsigned affinity_count;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask)
{
    if (kernel_cpus == 0) {
        memset(mask, 0, bytes);
        return syscall(SYS_sched_getaffinity, pid, bytes, mask) < 0 ? -1 : 0;
    }
    if (bytes * 8 < kernel_cpus) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, mask);
    for (unsigned i = 0; i < affinity_count; i++)
        CPU_SET_S(affinity[i], bytes, mask);
    return 0;
}

static void allow_cpus(unsigned first, unsigned last)
{
    for (unsigned id = first; id <= last; id++)
        affinity[affinity_count++] = id;
}

#define CPU "/sys/devices/system/cpu/cpu%u/"

static void fake_cpu(unsigned id, const char *core_cpus, const char *package_cpus,
                     const char *l3_cpus)
{
    static const char *const levels[] = {"1\n", "1\n", "2\n", "3\n"};

    fake_file(core_cpus, CPU "topology/thread_siblings_list", id);
    fake_file(package_cpus, CPU "topology/core_siblings_list", id);
    for (unsigned i = 0; i < (l3_cpus ? 4 : 3); i++) {
        fake_file(levels[i], CPU "cache/index%u/level", id, i);
        fake_file(i == 3 ? l3_cpus : core_cpus, CPU "cache/index%u/shared_cpu_list", id, i);
    }
}

static void explore(filch_topology *topology, const char *root)
{
    assert_int_equal(filch_topology_init(topology), 0);
    filch_topology_explore(topology, root);
}

static int machine_create(void **state)
{
    kernel_cpus = 64;
    affinity_count = 0;
    unsetenv("FILCH_WORKERS");
    return fake_tree_create(state);
}

static void check_order(const filch_topology *topology, const unsigned *ids, unsigned count)
{
    assert_int_equal(topology->cpu_count, count);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(topology->cpus[i].id, ids[i]);
}

TEST(smt_siblings_come_last)
{
    static const unsigned expected[] = {0, 1, 2, 3, 4, 5, 6, 7};
    filch_topology topology;
    allow_cpus(0, 7);
    for (unsigned id = 0; id < 8; id++) {
        char siblings[16];
        snprintf(siblings, sizeof siblings, "%u,%u\n", id % 4, id % 4 + 4);
        fake_cpu(id, siblings, "0-7\n", "0-7\n");
    }

    explore(&topology, fake_root);

    check_order(&topology, expected, 8);
    assert_int_equal(topology.cpus[3].sibling, 0);
    assert_int_equal(topology.cpus[4].sibling, 1);
    assert_int_equal(topology.cpus[4].core, topology.cpus[0].core);
    filch_topology_fini(&topology);
}

TEST(siblings_that_are_numbered_as_neighbours_come_last_as_well)
{
    static const unsigned expected[] = {0, 2, 4, 6, 1, 3, 5, 7};
    filch_topology topology;
    allow_cpus(0, 7);
    for (unsigned id = 0; id < 8; id++) {
        char siblings[16];
        snprintf(siblings, sizeof siblings, "%u-%u\n", id & ~1u, id | 1u);
        fake_cpu(id, siblings, "0-7\n", "0-7\n");
    }

    explore(&topology, fake_root);

    check_order(&topology, expected, 8);
    filch_topology_fini(&topology);
}

TEST(cpus_that_share_a_package_and_a_cache_stand_together)
{
    static const unsigned expected[] = {0, 4, 2, 6, 1, 5, 3, 7};
    filch_topology topology;
    allow_cpus(0, 7);
    for (unsigned id = 0; id < 8; id++) {
        char self[16], package[16], l3[16];
        snprintf(self, sizeof self, "%u\n", id);
        snprintf(package, sizeof package, "%u,%u,%u,%u\n", id % 2, id % 2 + 2, id % 2 + 4,
                 id % 2 + 6);
        snprintf(l3, sizeof l3, "%u,%u\n", id % 4, id % 4 + 4);
        fake_cpu(id, self, package, l3);
    }

    explore(&topology, fake_root);

    check_order(&topology, expected, 8);
    assert_int_equal(topology.cpus[0].l3, topology.cpus[1].l3);
    assert_int_not_equal(topology.cpus[1].l3, topology.cpus[2].l3);
    assert_int_equal(topology.cpus[1].package, topology.cpus[2].package);
    assert_int_not_equal(topology.cpus[3].package, topology.cpus[4].package);
    filch_topology_fini(&topology);
}

TEST(a_sibling_whose_core_we_may_not_use_counts_as_a_core)
{
    static const unsigned expected[] = {1, 2, 3};
    filch_topology topology;
    allow_cpus(1, 3);
    fake_cpu(1, "0-1\n", "0-3\n", "0-3\n");
    fake_cpu(2, "2-3\n", "0-3\n", "0-3\n");
    fake_cpu(3, "2-3\n", "0-3\n", "0-3\n");

    explore(&topology, fake_root);

    check_order(&topology, expected, 3);
    assert_int_equal(topology.cpus[0].sibling, 0);
    assert_int_equal(topology.cpus[1].sibling, 0);
    assert_int_equal(topology.cpus[2].sibling, 1);
    filch_topology_fini(&topology);
}

TEST(without_an_l3_cache_the_package_takes_its_place)
{
    filch_topology topology;
    allow_cpus(4, 5);
    fake_cpu(4, "4\n", "4-7\n", NULL);
    fake_cpu(5, "5\n", "4-7\n", NULL);

    explore(&topology, fake_root);

    assert_int_equal(topology.cpus[0].l3, 4);
    assert_int_equal(topology.cpus[1].l3, 4);
    filch_topology_fini(&topology);
}

TEST(without_sysfs_every_cpu_is_a_core_of_one_package)
{
    static const unsigned expected[] = {2, 3, 9};
    filch_topology topology;
    allow_cpus(9, 9);
    allow_cpus(2, 3);

    explore(&topology, fake_root);

    check_order(&topology, expected, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(topology.cpus[i].core, expected[i]);
        assert_int_equal(topology.cpus[i].sibling, 0);
        assert_int_equal(topology.cpus[i].package, 0);
        assert_int_equal(topology.cpus[i].l3, 0);
    }
    filch_topology_fini(&topology);
}

TEST(garbage_in_sysfs_is_like_no_sysfs)
{
    filch_topology topology;
    allow_cpus(0, 1);
    fake_cpu(0, "x\n", "\n", "what\n");
    fake_cpu(1, "\n", "?\n", "");

    explore(&topology, fake_root);

    assert_int_equal(topology.cpus[1].core, 1);
    assert_int_equal(topology.cpus[1].package, 0);
    assert_int_equal(topology.cpus[1].l3, 0);
    filch_topology_fini(&topology);
}

TEST(a_kernel_with_more_than_1024_cpus_is_asked_again)
{
    static const unsigned expected[] = {0, 1500, 4999};
    filch_topology topology;
    kernel_cpus = 5000;
    allow_cpus(0, 0);
    allow_cpus(1500, 1500);
    allow_cpus(4999, 4999);

    explore(&topology, fake_root);

    check_order(&topology, expected, 3);
    filch_topology_fini(&topology);
}

TEST(a_kernel_that_never_answers_is_an_error)
{
    filch_topology topology;
    kernel_cpus = UINT_MAX;

    assert_int_equal(filch_topology_init(&topology), -EINVAL);
}

TEST(this_machine_has_as_many_cpus_as_its_mask)
{
    filch_topology topology;
    cpu_set_t *mask = CPU_ALLOC(8192);
    kernel_cpus = 0;
    assert_int_equal(sched_getaffinity(0, CPU_ALLOC_SIZE(8192), mask), 0);

    explore(&topology, "");

    assert_int_equal(topology.cpu_count, CPU_COUNT_S(CPU_ALLOC_SIZE(8192), mask));
    for (unsigned i = 0; i < topology.cpu_count; i++)
        assert_true(CPU_ISSET_S(topology.cpus[i].id, CPU_ALLOC_SIZE(8192), mask));
    filch_topology_fini(&topology);
    CPU_FREE(mask);
}

static unsigned workers_on(unsigned cpu_count, char *why, size_t why_size)
{
    filch_topology topology;
    allow_cpus(0, cpu_count - 1);
    explore(&topology, fake_root);

    unsigned at_hand;
    unsigned workers =
        filch_topology_default_workers(&topology, fake_root, &at_hand, why, why_size);
    filch_topology_fini(&topology);
    return workers;
}

static void limit_to(const char *cpu_max)
{
    fake_file("0::/kubepods/pod1\n", "/proc/self/cgroup");
    fake_file("31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/proc/self/mountinfo");
    fake_file(cpu_max, "/sys/fs/cgroup/kubepods/pod1/cpu.max");
}

TEST(there_is_one_worker_for_each_cpu)
{
    char why[256];

    assert_int_equal(workers_on(8, why, sizeof why), 8);
    assert_string_equal(why, "8 workers: 8 CPUs in the affinity mask, no cgroup quota");
}

TEST(there_are_not_more_workers_than_the_quota)
{
    char why[256];
    limit_to("150000 100000\n");

    assert_int_equal(workers_on(8, why, sizeof why), 2);
    assert_string_equal(why, "2 workers: 8 CPUs in the affinity mask, cgroup quota 1.5 CPUs "
                             "(/kubepods/pod1)");
}

TEST(a_quota_above_the_mask_changes_nothing)
{
    char why[256];
    limit_to("1600000 100000\n");

    assert_int_equal(workers_on(1, why, sizeof why), 1);
    assert_string_equal(why, "1 worker: 1 CPU in the affinity mask, cgroup quota 16 CPUs "
                             "(/kubepods/pod1)");
}

TEST(the_environment_overrides_mask_and_quota)
{
    char why[256];
    limit_to("150000 100000\n");
    setenv("FILCH_WORKERS", "12", 1);

    assert_int_equal(workers_on(8, why, sizeof why), 12);
    assert_string_equal(why, "12 workers: set by FILCH_WORKERS");
}

TEST(nonsense_in_the_environment_is_ignored_and_reported)
{
    static const char *const nonsense[] = {"0",  "-3", "many", "",
                                           "4x", " 4", "+4",   "99999999999999999999"};
    char why[256], told[64];

    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        affinity_count = 0;
        setenv("FILCH_WORKERS", nonsense[i], 1);
        snprintf(told, sizeof told, ", FILCH_WORKERS='%s' ignored", nonsense[i]);

        assert_int_equal(workers_on(8, why, sizeof why), 8);
        assert_non_null(strstr(why, told));
    }
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, machine_create, fake_tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MACHINE(smt_siblings_come_last),
        ON_MACHINE(siblings_that_are_numbered_as_neighbours_come_last_as_well),
        ON_MACHINE(cpus_that_share_a_package_and_a_cache_stand_together),
        ON_MACHINE(a_sibling_whose_core_we_may_not_use_counts_as_a_core),
        ON_MACHINE(without_an_l3_cache_the_package_takes_its_place),
        ON_MACHINE(without_sysfs_every_cpu_is_a_core_of_one_package),
        ON_MACHINE(garbage_in_sysfs_is_like_no_sysfs),
        ON_MACHINE(a_kernel_with_more_than_1024_cpus_is_asked_again),
        ON_MACHINE(a_kernel_that_never_answers_is_an_error),
        ON_MACHINE(this_machine_has_as_many_cpus_as_its_mask),
        ON_MACHINE(there_is_one_worker_for_each_cpu),
        ON_MACHINE(there_are_not_more_workers_than_the_quota),
        ON_MACHINE(a_quota_above_the_mask_changes_nothing),
        ON_MACHINE(the_environment_overrides_mask_and_quota),
        ON_MACHINE(nonsense_in_the_environment_is_ignored_and_reported),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
