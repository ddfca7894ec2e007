/* SPDX-License-Identifier: MIT */
#include "fake_tree.h"

#include "base/cgroup.h"

#define V1_MOUNT "33 24 0:29 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
#define V2_MOUNT "31 24 0:27 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"

static char why[256];

static void we_are(const char *cgroup_file, const char *mountinfo_file)
{
    fake_file(cgroup_file, "/proc/self/cgroup");
    fake_file(mountinfo_file, "/proc/self/mountinfo");
}

static void v1_quota(const char *dir, const char *quota_us, const char *period_us)
{
    fake_file(quota_us, "%s/cpu.cfs_quota_us", dir);
    if (period_us)
        fake_file(period_us, "%s/cpu.cfs_period_us", dir);
}

static unsigned cpus(void)
{
    unsigned count = 77;

    assert_int_equal(filch_cgroup_cpus(fake_root, &count, why, sizeof why), 0);
    return count;
}

TEST(a_v2_quota_is_rounded_up_to_whole_cpus)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("150000 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 2);
    assert_string_equal(why, "cgroup quota 1.5 CPUs (/app)");
}

TEST(a_v2_quota_of_whole_cpus_is_not_rounded)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("300000 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 3);
}

TEST(max_is_no_quota)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("max 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 0);
    assert_string_equal(why, "no cgroup quota");
}

TEST(a_v1_quota_is_read_with_its_period)
{
    we_are("4:memory:/other\n3:cpu,cpuacct:/app\n2:cpuset:/wrong\n", V1_MOUNT);
    v1_quota("/sys/fs/cgroup/cpu/app", "250000\n", "50000\n");

    assert_int_equal(cpus(), 5);
    assert_string_equal(why, "cgroup quota 5 CPUs (/app)");
}

TEST(minus_one_is_no_quota)
{
    we_are("3:cpu:/app\n", V1_MOUNT);
    v1_quota("/sys/fs/cgroup/cpu/app", "-1\n", "100000\n");

    assert_int_equal(cpus(), 0);
    assert_string_equal(why, "no cgroup quota");
}

TEST(a_tighter_v2_parent_wins)
{
    we_are("0::/pod/app/main\n", V2_MOUNT);
    fake_file("max 100000\n", "/sys/fs/cgroup/pod/app/main/cpu.max");
    fake_file("800000 100000\n", "/sys/fs/cgroup/pod/app/cpu.max");
    fake_file("200000 100000\n", "/sys/fs/cgroup/pod/cpu.max");

    assert_int_equal(cpus(), 2);
    assert_string_equal(why, "cgroup quota 2 CPUs (/pod)");
}

TEST(a_tighter_v2_child_wins)
{
    we_are("0::/pod/app\n", V2_MOUNT);
    fake_file("100000 100000\n", "/sys/fs/cgroup/pod/app/cpu.max");
    fake_file("200000 100000\n", "/sys/fs/cgroup/pod/cpu.max");

    assert_int_equal(cpus(), 1);
    assert_string_equal(why, "cgroup quota 1 CPU (/pod/app)");
}

TEST(a_tighter_v1_parent_wins)
{
    we_are("1:cpu:/pod/app\n", V1_MOUNT);
    v1_quota("/sys/fs/cgroup/cpu/pod/app", "400000\n", "100000\n");
    v1_quota("/sys/fs/cgroup/cpu/pod", "30000\n", "10000\n");

    assert_int_equal(cpus(), 3);
    assert_string_equal(why, "cgroup quota 3 CPUs (/pod)");
}

TEST(the_quota_of_the_mount_itself_counts)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("200000 100000\n", "/sys/fs/cgroup/cpu.max");

    assert_int_equal(cpus(), 2);
    assert_string_equal(why, "cgroup quota 2 CPUs (/)");
}

TEST(a_hybrid_system_finds_the_quota_in_v1)
{
    we_are("1:cpu:/app\n0::/unified\n",
           V1_MOUNT "34 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    v1_quota("/sys/fs/cgroup/cpu/app", "300000\n", "100000\n");
    fake_file("", "/sys/fs/cgroup/unified/unified/cgroup.procs");

    assert_int_equal(cpus(), 3);
}

TEST(a_hybrid_system_finds_the_quota_in_v2)
{
    we_are("1:name=systemd:/app\n0::/app\n",
           "32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
           "34 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fake_file("400000 100000\n", "/sys/fs/cgroup/unified/app/cpu.max");

    assert_int_equal(cpus(), 4);
}

TEST(less_than_one_cpu_is_one)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("1000 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 1);
    assert_string_equal(why, "cgroup quota 0.01 CPUs (/app)");
}

TEST(trailing_spaces_do_not_matter)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("200000  100000 \t\n\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 2);
}

TEST(garbage_is_no_quota_and_is_reported)
{
    we_are("0::/pod/app\n", V2_MOUNT);
    fake_file("lots of it\n", "/sys/fs/cgroup/pod/app/cpu.max");

    assert_int_equal(cpus(), 0);
    assert_string_equal(why, "no cgroup quota, 'lots of it' of /pod/app ignored");
}

TEST(garbage_does_not_hide_the_quota_of_a_parent)
{
    we_are("0::/pod/app\n", V2_MOUNT);
    fake_file("200000 100000 more\n", "/sys/fs/cgroup/pod/app/cpu.max");
    fake_file("600000 100000\n", "/sys/fs/cgroup/pod/cpu.max");

    assert_int_equal(cpus(), 6);
    assert_string_equal(why,
                        "cgroup quota 6 CPUs (/pod), '200000 100000 more' of /pod/app ignored");
}

TEST(nonsense_numbers_are_garbage)
{
    static const char *const nonsense[] = {"0 100000", "100000 0",  "-5 100000", "1.5 1",
                                           "+1 1",     "maximum 1", "100000",    "0x10 1"};
    we_are("0::/app\n", V2_MOUNT);

    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        fake_file(nonsense[i], "/sys/fs/cgroup/app/cpu.max");

        assert_int_equal(cpus(), 0);
        assert_non_null(strstr(why, nonsense[i]));
    }
}

TEST(a_v1_quota_without_a_period_is_garbage)
{
    we_are("1:cpu:/app\n", V1_MOUNT);
    v1_quota("/sys/fs/cgroup/cpu/app", "200000\n", NULL);

    assert_int_equal(cpus(), 0);
    assert_string_equal(why, "no cgroup quota, '200000 ' of /app ignored");
}

TEST(an_enormous_quota_does_not_overflow)
{
    we_are("0::/app\n", V2_MOUNT);
    fake_file("99999999999999999999999999 1\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), UINT_MAX);
}

TEST(a_container_sees_its_part_of_the_hierarchy_under_the_mount)
{
    we_are("1:cpu,cpuacct:/docker/0123/main\n",
           "33 24 0:29 /docker/0123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
    v1_quota("/sys/fs/cgroup/cpu", "500000\n", "100000\n");
    v1_quota("/sys/fs/cgroup/cpu/main", "200000\n", "100000\n");

    assert_int_equal(cpus(), 2);
    assert_string_equal(why, "cgroup quota 2 CPUs (/main)");
}

TEST(a_path_outside_of_the_mount_means_the_mount_itself)
{
    we_are("1:cpu:/kubepods/pod1\n",
           "33 24 0:29 /kubepods/pod /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
    v1_quota("/sys/fs/cgroup/cpu", "200000\n", "100000\n");
    v1_quota("/sys/fs/cgroup/cpu/kubepods/pod1", "100000\n", "100000\n");

    assert_int_equal(cpus(), 2);
}

TEST(a_path_outside_of_the_namespace_means_the_mount_itself)
{
    we_are("0::/../../elsewhere\n", V2_MOUNT);
    fake_file("200000 100000\n", "/sys/fs/cgroup/cpu.max");
    fake_file("100000 100000\n", "/sys/elsewhere/cpu.max");

    assert_int_equal(cpus(), 2);
}

TEST(a_cgroup_that_is_not_visible_leaves_its_parents)
{
    we_are("0::/pod/gone (deleted)\n", V2_MOUNT);
    fake_file("200000 100000\n", "/sys/fs/cgroup/pod/cpu.max");

    assert_int_equal(cpus(), 2);
}

TEST(of_several_mounts_the_one_with_most_ancestors_is_taken)
{
    we_are("0::/pod/app\n", "30 24 0:27 /other /mnt/other rw - cgroup2 cgroup2 rw\n"
                            "31 24 0:27 /pod /mnt/pod rw - cgroup2 cgroup2 rw\n"
                            "32 24 0:27 / /mnt/all rw - cgroup2 cgroup2 rw\n"
                            "33 24 0:27 /pod/app /mnt/app rw - cgroup2 cgroup2 rw\n");
    fake_file("100000 100000\n", "/mnt/other/cpu.max");
    fake_file("300000 100000\n", "/mnt/all/pod/cpu.max");

    assert_int_equal(cpus(), 3);
}

TEST(a_mount_point_may_contain_spaces_and_colons)
{
    we_are("0::/a:b c\n", "31 24 0:27 / /mnt/my\\040cgroups rw - cgroup2 cgroup2 rw\n");
    fake_file("200000 100000\n", "/mnt/my cgroups/a:b c/cpu.max");

    assert_int_equal(cpus(), 2);
    assert_string_equal(why, "cgroup quota 2 CPUs (/a:b c)");
}

TEST(a_symlinked_mount_point_is_followed)
{
    char link[128];
    we_are("1:cpu,cpuacct:/app\n",
           "33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n");
    v1_quota("/sys/fs/cgroup/cpu,cpuacct/app", "200000\n", "100000\n");
    snprintf(link, sizeof link, "%s/sys/fs/cgroup/cpu", fake_root);
    assert_int_equal(symlink("cpu,cpuacct", link), 0);

    assert_int_equal(cpus(), 2);
}

TEST(a_deep_path_is_walked_to_its_top)
{
    char path[1024] = "0::", dir[1024] = "/sys/fs/cgroup";
    for (int depth = 0; depth < 200; depth++) {
        strcat(path, "/sub");
        strcat(dir, "/sub");
    }
    we_are(path, V2_MOUNT);
    fake_file("900000 100000\n", "%s/cpu.max", dir);
    fake_file("700000 100000\n", "/sys/fs/cgroup/sub/cpu.max");

    assert_int_equal(cpus(), 7);
    assert_string_equal(why, "cgroup quota 7 CPUs (/sub)");
}

TEST(a_path_too_long_to_open_still_has_ancestors)
{
    char path[3 * PATH_MAX] = "0::";
    while (strlen(path) < 2 * PATH_MAX)
        strcat(path, "/sub");
    we_are(path, V2_MOUNT);
    fake_file("700000 100000\n", "/sys/fs/cgroup/sub/cpu.max");

    assert_int_equal(cpus(), 7);
}

TEST(without_proc_there_is_no_quota)
{
    assert_int_equal(cpus(), 0);
    assert_string_equal(why, "no cgroup quota");
}

TEST(without_a_mount_there_is_no_quota)
{
    we_are("0::/app\n1:cpu:/app\n", "20 1 0:19 / /proc rw - proc proc rw\n");

    assert_int_equal(cpus(), 0);
}

TEST(broken_lines_in_proc_are_passed_over)
{
    we_are("\n:\n::\n0:\n0::\nnonsense\n7:cpu\n0::/app\n",
           "\n - \n1 2 - cgroup2\n1 2 3 4 - cgroup2 x y\n1 2 3 / /mnt\\4 - "
           "cgroup2\n" V2_MOUNT);
    fake_file("200000 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(cpus(), 2);
}

TEST(the_reason_is_optional)
{
    unsigned count;
    we_are("0::/app\n", V2_MOUNT);
    fake_file("200000 100000\n", "/sys/fs/cgroup/app/cpu.max");

    assert_int_equal(filch_cgroup_cpus(fake_root, &count, NULL, 0), 0);

    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FAKE_TREE(a_v2_quota_is_rounded_up_to_whole_cpus),
        IN_FAKE_TREE(a_v2_quota_of_whole_cpus_is_not_rounded),
        IN_FAKE_TREE(max_is_no_quota),
        IN_FAKE_TREE(a_v1_quota_is_read_with_its_period),
        IN_FAKE_TREE(minus_one_is_no_quota),
        IN_FAKE_TREE(a_tighter_v2_parent_wins),
        IN_FAKE_TREE(a_tighter_v2_child_wins),
        IN_FAKE_TREE(a_tighter_v1_parent_wins),
        IN_FAKE_TREE(the_quota_of_the_mount_itself_counts),
        IN_FAKE_TREE(a_hybrid_system_finds_the_quota_in_v1),
        IN_FAKE_TREE(a_hybrid_system_finds_the_quota_in_v2),
        IN_FAKE_TREE(less_than_one_cpu_is_one),
        IN_FAKE_TREE(trailing_spaces_do_not_matter),
        IN_FAKE_TREE(garbage_is_no_quota_and_is_reported),
        IN_FAKE_TREE(garbage_does_not_hide_the_quota_of_a_parent),
        IN_FAKE_TREE(nonsense_numbers_are_garbage),
        IN_FAKE_TREE(a_v1_quota_without_a_period_is_garbage),
        IN_FAKE_TREE(an_enormous_quota_does_not_overflow),
        IN_FAKE_TREE(a_container_sees_its_part_of_the_hierarchy_under_the_mount),
        IN_FAKE_TREE(a_path_outside_of_the_mount_means_the_mount_itself),
        IN_FAKE_TREE(a_path_outside_of_the_namespace_means_the_mount_itself),
        IN_FAKE_TREE(a_cgroup_that_is_not_visible_leaves_its_parents),
        IN_FAKE_TREE(of_several_mounts_the_one_with_most_ancestors_is_taken),
        IN_FAKE_TREE(a_mount_point_may_contain_spaces_and_colons),
        IN_FAKE_TREE(a_symlinked_mount_point_is_followed),
        IN_FAKE_TREE(a_deep_path_is_walked_to_its_top),
        IN_FAKE_TREE(a_path_too_long_to_open_still_has_ancestors),
        IN_FAKE_TREE(without_proc_there_is_no_quota),
        IN_FAKE_TREE(without_a_mount_there_is_no_quota),
        IN_FAKE_TREE(broken_lines_in_proc_are_passed_over),
        IN_FAKE_TREE(the_reason_is_optional),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
