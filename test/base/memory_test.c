/* SPDX-License-Identifier: MIT */
/*
 * Aligned reservations, when the kernel refuses to split a mapping.
 */
#include "base/memory.h"

#include "support.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static unsigned call_count;
static char *others; /* what another thread maps, where a part has just been unmapped */
static size_t others_bytes;

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);

/* The library calls this one. The second call fails. */
int __wrap_munmap(void *at, size_t bytes)
{
    int result = ++call_count == 2 ? -1 : __real_munmap(at, bytes);

    if (call_count == 1) {
        others_bytes = bytes;
        others = mmap(at, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        assert_ptr_equal(others, at);
        *others = 1;
    }
    if (result)
        errno = ENOMEM;
    return result;
}

/* mincore(2) fails for pages that are not mapped. */
static bool is_mapped(char *at)
{
    unsigned char state;
    return mincore(at, 1, &state) == 0;
}

TEST(a_failed_reservation_leaves_mappings_of_others_alone)
{
    const size_t alignment = (size_t)1 << 20, page = filch_page_bytes();
    void *reserved = NULL;

    /* An address that happens to be aligned needs only one cut. Try another one. */
    do {
        call_count = 0;
        others = NULL;
        reserved = filch_map_aligned(page, page, alignment);
        assert_true(is_mapped(others));
    } while (call_count == 1);

    assert_null(reserved);
    assert_true(is_mapped(others));
    assert_int_equal(*others, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_reservation_leaves_mappings_of_others_alone),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
