/* SPDX-License-Identifier: MIT */
/* The small parts of src/base: futex, lock, clock, rng, memory, fault. */
#include "watchdog.h"

#include "deadly.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/peek.h"
#include "base/rng.h"
#include "base/topology.h"

#include <errno.h>
#include <filch/error.h>
#include <sys/syscall.h>

#define THREADS 4
#define ROUNDS 20000

TEST(a_futex_wait_returns_at_once_when_the_word_differs)
{
    filch_atomic_u32 word = {1};

    assert_int_equal(filch_futex_wait(&word, 0, NULL), -EAGAIN);
}

TEST(a_futex_wait_ends_at_its_timeout)
{
    filch_atomic_u32 word = {1};
    struct timespec nearly_at_once = {.tv_nsec = 1};

    assert_int_equal(filch_futex_wait(&word, 1, &nearly_at_once), -ETIMEDOUT);
}

TEST(a_futex_call_leaves_errno_alone)
{
    filch_atomic_u32 word = {1};
    errno = ENOTTY;

    assert_int_equal(filch_futex_wait(&word, 0, NULL), -EAGAIN);

    assert_int_equal(errno, ENOTTY);
}

TEST(a_futex_wake_without_sleepers_does_nothing)
{
    filch_atomic_u32 word = {1};

    assert_int_equal(filch_futex_wake(&word, INT32_MAX), 0);
}

static void *sleep_until_told(void *argument)
{
    filch_atomic_u32 *told = argument;

    /* acquire [told] */
    while (filch_load_acquire(told) == 0)
        filch_futex_wait(told, 0, NULL);
    return NULL;
}

TEST(a_futex_wake_reaches_every_sleeper)
{
    filch_atomic_u32 told = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_until_told, &told), 0);

    /* release [told] */
    filch_store_release(&told, 1);
    assert_int_equal(filch_futex_wake(&told, INT32_MAX), 0);

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

TEST(a_lock_goes_back_to_free)
{
    filch_lock lock;
    filch_lock_init(&lock);

    filch_lock_acquire(&lock);
    /* relaxed: one thread. */
    assert_int_equal(filch_load_relaxed(&lock.state), FILCH_LOCK_HELD);
    filch_lock_release(&lock);

    /* relaxed: one thread. */
    assert_int_equal(filch_load_relaxed(&lock.state), FILCH_LOCK_FREE);
}

struct tally {
    filch_lock lock;
    long count;
};

static void *count_under_lock(void *argument)
{
    struct tally *tally = argument;

    for (int i = 0; i < ROUNDS; i++) {
        filch_lock_acquire(&tally->lock);
        tally->count++;
        filch_lock_release(&tally->lock);
    }
    return NULL;
}

TEST(counts_under_a_lock_add_up)
{
    struct tally tally = {.count = 0};
    pthread_t threads[THREADS];
    filch_lock_init(&tally.lock);

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_under_lock, &tally), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(tally.count, (long)THREADS * ROUNDS);
}

static void *count_once(void *argument)
{
    struct tally *tally = argument;

    filch_lock_acquire(&tally->lock);
    tally->count++;
    filch_lock_release(&tally->lock);
    return NULL;
}

TEST(a_release_wakes_the_threads_that_sleep_on_the_lock)
{
    struct tally tally = {.count = 0};
    pthread_t threads[THREADS];
    filch_lock_init(&tally.lock);
    filch_lock_acquire(&tally.lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_once, &tally), 0);

    /* Hold the lock until a thread stops spinning: it sleeps, or is about to. */
    /* relaxed: the lock orders the counts. */
    while (filch_load_relaxed(&tally.lock.state) != FILCH_LOCK_CONTENDED)
        sched_yield();
    assert_int_equal(tally.count, 0);
    filch_lock_release(&tally.lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(tally.count, THREADS);
}

TEST(both_clocks_run_forward)
{
    uint64_t ns = filch_clock_ns(), ticks = filch_clock_ticks();

    while (filch_clock_ns() == ns || filch_clock_ticks() == ticks)
        ;

    assert_true(filch_clock_ns() > ns);
    assert_true(filch_clock_ticks_per_us() > 0);
}

TEST(equal_seeds_give_equal_numbers)
{
    filch_rng a, b, other;
    filch_rng_seed(&a, 0);
    filch_rng_seed(&b, 0);
    filch_rng_seed(&other, 1);

    for (int i = 0; i < 1000; i++) {
        uint64_t number = filch_rng_next(&a);
        assert_true(number == filch_rng_next(&b));
        assert_true(number != filch_rng_next(&other));
    }
}

TEST(random_numbers_stay_below_their_bound_and_reach_all_under_it)
{
    filch_rng rng;
    filch_rng_seed(&rng, 42);

    for (uint32_t n = 1; n <= 64; n++) {
        uint64_t seen = 0;
        for (int i = 0; i < 2000; i++) {
            uint32_t number = filch_rng_below(&rng, n);
            assert_true(number < n);
            seen |= UINT64_C(1) << number;
        }
        assert_true(seen == UINT64_MAX >> (64 - n));
    }
    for (int i = 0; i < 1000; i++)
        assert_true(filch_rng_below(&rng, UINT32_MAX) < UINT32_MAX);
}

TEST(a_mapped_header_is_aligned_and_all_around_it_is_usable)
{
    size_t page = filch_page_bytes();

    for (size_t region = page; region <= 64 * page; region *= 4) {
        for (size_t below = 0; below <= 9 * page; below += 3 * page) {
            char *header = filch_map_aligned(below, region, region);
            assert_non_null(header);

            assert_int_equal((uintptr_t)header % region, 0);
            for (size_t i = 0; i < below + region; i++)
                assert_int_equal((header - below)[i], 0);
            memset(header - below, 1, below + region);

            filch_unmap_aligned(header, below, region);
        }
    }
}

TEST(many_regions_do_not_overlap)
{
    size_t page = filch_page_bytes();
    unsigned *headers[100];

    for (unsigned i = 0; i < 100; i++) {
        headers[i] = filch_map_aligned(2 * page, 4 * page, 4 * page);
        assert_non_null(headers[i]);
        for (size_t word = 0; word < 6 * page / sizeof(unsigned); word++)
            (headers[i] - 2 * page / sizeof(unsigned))[word] = i;
    }

    for (unsigned i = 0; i < 100; i++) {
        for (size_t word = 0; word < 6 * page / sizeof(unsigned); word++)
            assert_int_equal((headers[i] - 2 * page / sizeof(unsigned))[word], i);
        filch_unmap_aligned(headers[i], 2 * page, 4 * page);
    }
}

TEST(a_region_too_large_for_the_address_space_is_null)
{
    size_t half = SIZE_MAX / 2 + 1;

    size_t page = filch_page_bytes();

    assert_null(filch_map_aligned(0, half, half));
    assert_null(filch_map_aligned(half, half, half));
    assert_null(filch_map_aligned(SIZE_MAX - page + 1, page, page));
    assert_null(filch_map_aligned(0, half / 2, half / 2));
}

TEST(both_guards_of_a_region_are_deadly_and_the_pages_between_are_not)
{
    size_t page = filch_page_bytes();
    char *header = filch_map_aligned(4 * page, 4 * page, 4 * page);
    assert_non_null(header);
    char *low = header - 4 * page, *high = header + 4 * page;

    assert_int_equal(filch_guard_install(low, page, 7 * page, 2), 0);

    assert_true(is_deadly(low));
    assert_true(is_deadly(low + page - 1));
    assert_false(is_deadly(low + page));
    assert_false(is_deadly(high - page - 1));
    assert_true(is_deadly(high - page));
    assert_true(is_deadly(high - 1));
    filch_unmap_aligned(header, 4 * page, 4 * page);
}

TEST(a_guard_on_nothing_is_an_error)
{
    size_t page = filch_page_bytes();
    char *header = filch_map_aligned(0, page, page);
    filch_unmap_aligned(header, 0, page);

    assert_int_equal(filch_guard_install(header, page, page, 1), -ENOMEM);
}

TEST(discarded_pages_are_zero_and_guards_stay)
{
    size_t page = filch_page_bytes();
    char *low = filch_map_aligned(0, 8 * page, 8 * page);
    assert_non_null(low);
    memset(low, 1, 8 * page);
    assert_int_equal(filch_guard_install(low, page, 4 * page, 2), 0);

    assert_true(filch_discard(low, 8 * page));

    for (size_t i = 0; i < 8 * page; i++)
        assert_true(i % (4 * page) < page || low[i] == 0);
    assert_true(is_deadly(low));
    assert_true(is_deadly(low + 4 * page));
    assert_false(is_deadly(low + page));
    filch_unmap_aligned(low, 0, 8 * page);
}

TEST(locked_pages_are_not_discarded)
{
    size_t page = filch_page_bytes();
    char *low = filch_map_aligned(0, page, page);
    assert_non_null(low);
    *low = 1;
    /* A system call, because sanitizers make mlock() do nothing. */
    if (syscall(SYS_mlock, low, page)) {
        print_message("not allowed to lock a page: skipped\n");
        filch_unmap_aligned(low, 0, page);
        skip();
    }

    assert_false(filch_discard(low, page));

    assert_int_equal(*low, 1);
    filch_unmap_aligned(low, 0, page);
}

TEST(the_text_of_EAGAIN_names_threads_and_limits)
{
    const char *text = filch_strerror(-EAGAIN);

    assert_non_null(strstr(text, "thread"));
    assert_non_null(strstr(text, "limit"));
}

TEST(small_memory_is_zero)
{
    char *memory = filch_calloc(3, 5);

    assert_non_null(memory);
    for (int i = 0; i < 15; i++)
        assert_int_equal(memory[i], 0);
    free(memory);
}

#ifdef FILCH_FAULTS
static int failing = -1; /* the kind that fails now */

bool filch_fault(enum filch_fault_kind kind)
{
    return (int)kind == failing;
}

TEST(a_peek_copies_memory_and_notices_that_there_is_none)
{
    const char text[] = "filch";
    char copy[sizeof text] = "";

    assert_true(filch_peek(text, copy, sizeof copy));
    assert_string_equal(copy, text);
    assert_false(filch_peek((const void *)8, copy, sizeof copy));

    memset(copy, 0, sizeof copy);
    assert_true(filch_peek_by_pipe(text, copy, sizeof copy));
    assert_string_equal(copy, text);
    assert_false(filch_peek_by_pipe((const void *)8, copy, sizeof copy));
}

TEST(an_injected_fault_looks_like_the_real_one)
{
    failing = FILCH_FAULT_MAP;
    assert_null(filch_map_aligned(0, filch_page_bytes(), filch_page_bytes()));

    failing = FILCH_FAULT_MALLOC;
    assert_null(filch_calloc(1, 1));
    filch_topology topology;
    assert_int_equal(filch_topology_init(&topology), -ENOMEM);

    failing = -1;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_futex_wait_returns_at_once_when_the_word_differs),
        cmocka_unit_test(a_futex_wait_ends_at_its_timeout),
        cmocka_unit_test(a_futex_call_leaves_errno_alone),
        cmocka_unit_test(a_futex_wake_without_sleepers_does_nothing),
        cmocka_unit_test(a_futex_wake_reaches_every_sleeper),
        cmocka_unit_test(a_lock_goes_back_to_free),
        cmocka_unit_test(counts_under_a_lock_add_up),
        cmocka_unit_test(a_release_wakes_the_threads_that_sleep_on_the_lock),
        cmocka_unit_test(both_clocks_run_forward),
        cmocka_unit_test(equal_seeds_give_equal_numbers),
        cmocka_unit_test(random_numbers_stay_below_their_bound_and_reach_all_under_it),
        cmocka_unit_test(a_mapped_header_is_aligned_and_all_around_it_is_usable),
        cmocka_unit_test(many_regions_do_not_overlap),
        cmocka_unit_test(a_region_too_large_for_the_address_space_is_null),
        cmocka_unit_test(both_guards_of_a_region_are_deadly_and_the_pages_between_are_not),
        cmocka_unit_test(a_guard_on_nothing_is_an_error),
        cmocka_unit_test(discarded_pages_are_zero_and_guards_stay),
        cmocka_unit_test(locked_pages_are_not_discarded),
        cmocka_unit_test(the_text_of_EAGAIN_names_threads_and_limits),
        cmocka_unit_test(small_memory_is_zero),
#ifdef FILCH_FAULTS
        cmocka_unit_test(a_peek_copies_memory_and_notices_that_there_is_none),
        cmocka_unit_test(an_injected_fault_looks_like_the_real_one),
#endif
    };
    return cmocka_run_group_tests_name("base", tests, watchdog_start, watchdog_stop);
}
