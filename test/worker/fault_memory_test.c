/* SPDX-License-Identifier: MIT */
/*
 * Allocations fail: the call returns an error or does with less memory, and nothing is lost.
 */
#include "fault_support.h"

#include <filch/channel.h>
#include <filch/pipeline.h>
#include <filch/stream.h>

#include <arpa/inet.h>
#include <malloc.h>
#include <unistd.h>

TEST(a_pool_for_which_memory_is_missing_is_not_created)
{
    filch_options options = {.size = sizeof options, .workers = 3, .report_overflow = true};
    filch_pool *pool = NULL;
    uint32_t needed;

    fail_from(FILCH_FAULT_MALLOC, NEVER);
    assert_int_equal(filch_pool_create(&pool, &options), 0);
    needed = times_asked(FILCH_FAULT_MALLOC);
    assert_int_equal(filch_pool_destroy(pool), 0);
    pool = NULL;
    assert_true(needed >= 3);

    for (uint32_t i = 0; i < needed; i++) {
        fail_between(FILCH_FAULT_MALLOC, i, i);
        assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
        assert_null(pool);
    }
    fail_never();
}

TEST(a_task_for_which_memory_is_missing_is_not_submitted)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        fail_from(FILCH_FAULT_MALLOC, 0);
        assert_int_equal(filch_submit(pool, count_one, &c), -ENOMEM);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&c), 0);

        /* filch_run needs no memory. */
        assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
        assert_int_equal(counter_get(&c), TREE_8);
        fail_never();
        assert_int_equal(filch_submit(pool, count_one, &c), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&c), TREE_8 + 1);
        watched_pool_destroy(pool);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* More datagrams arrive than there is memory for: no datagram is missing before the error. */
static void receive_too_many(filch_frame *f, void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    filch_stream stream;
    char number = 0, next = 0;
    ssize_t got;
    (void)arg;

    CHECK(bind(to, (struct sockaddr *)&address, length) == 0);
    CHECK(getsockname(to, (struct sockaddr *)&address, &length) == 0);
    CHECK(connect(from, (struct sockaddr *)&address, length) == 0);
    filch_stream_recv(&stream, to, 0);
    CHECK(filch_stream_next(f, &stream, filch_after_ms(1)) == -ETIMEDOUT);
    for (; number < 8; number++)
        CHECK(send(from, &number, 1, 0) == 1);
    fail_from(FILCH_FAULT_MALLOC, 0);
    while (next < 16 && (got = filch_stream_next(f, &stream, FILCH_NO_DEADLINE)) == 1) {
        CHECK(*(const char *)stream.data == next++);
        fail_never();
        if (number < 16)
            CHECK(send(from, &number, 1, 0) == 1);
        number++;
    }
    CHECK(next == 16 || got == -ENOMEM);
    CHECK(next == 16 || filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == -ENOMEM);
    filch_stream_close(f, &stream);
    close(from);
    close(to);
}

TEST(a_stream_that_has_lost_something_has_no_gap)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, receive_too_many, NULL), 0);
        watched_pool_destroy(pool);
    }
}

/* ---- channels and pipelines ------------------------------------------------------------------ */

/* 0 with sanitizers, whose malloc does not count here. They report leaks at the end. */
static size_t bytes_in_use(void)
{
    return TEST_SLOWNESS > 1 ? 0 : mallinfo2().uordblks;
}

TEST(a_channel_for_which_memory_is_missing_is_not_created)
{
    filch_channel *channel = NULL;
    int value = 1;

    /* malloc caches the memory of a freed channel, and counts it as in use: fill the cache
     * first. */
    assert_int_equal(filch_channel_create(&channel, sizeof value, 1), 0);
    filch_channel_destroy(channel);
    channel = NULL;
    size_t before = bytes_in_use();

    fail_from(FILCH_FAULT_MALLOC, 0);
    for (size_t capacity = 0; capacity < 3; capacity++) {
        assert_int_equal(filch_channel_create(&channel, sizeof value, capacity), -ENOMEM);
        assert_null(channel);
    }
    assert_int_equal(bytes_in_use(), before);

    /* An existing channel needs no more memory. */
    fail_never();
    assert_int_equal(filch_channel_create(&channel, sizeof value, 1), 0);
    fail_from(FILCH_FAULT_MALLOC, 0);
    assert_int_equal(filch_channel_send(NULL, channel, &value), 0);
    assert_int_equal(filch_channel_send_until(NULL, channel, &value, filch_now_ns()), -ETIMEDOUT);
    assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
    filch_channel_destroy(channel);
    assert_int_equal(bytes_in_use(), before);
    fail_never();
}

#define ITEMS 50

static int make_item(filch_frame *f, void *made, void **item)
{
    (void)f;
    *item = made;
    counter_add(made, 1);
    return counter_get(made) < ITEMS ? 0 : FILCH_PIPELINE_END;
}

static int use_item(filch_frame *f, void *used, void **item)
{
    (void)f;
    (void)item;
    counter_add(used, 1);
    return 0;
}

TEST(a_pipeline_without_memory_calls_no_stage_and_with_little_it_has_fewer_tokens)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        counter made = {0}, used = {0};
        const filch_stage stages[] = {{make_item, &made, 1, false}, {use_item, &used, 0, true}};
        size_t before = 0;

        /* The failing allocation: the pipeline itself, or its first token. malloc counts cached
         * memory as in use, so the check allows for a little. */
        for (uint32_t i = 0; i < 100; i++) {
            if (i == 20)
                before = bytes_in_use();
            fail_from(FILCH_FAULT_MALLOC, i % 2);
            assert_int_equal(filch_pipeline_run(NULL, pool, stages, 2, NULL), -ENOMEM);
            assert_int_equal(counter_get(&made), 0);
        }
        assert_true(bytes_in_use() < before + 4096);
        for (uint32_t i = 2; i < 6; i++) {
            counter_set(&made, 0);
            counter_set(&used, 0);
            fail_from(FILCH_FAULT_MALLOC, i);
            int err = filch_pipeline_run(NULL, pool, stages, 2, NULL);
            /* New threads and strands allocate, too, and a token without a strand is an error. */
            assert_true(err == 0 || err == -ENOMEM);
            assert_true(err || counter_get(&made) == ITEMS);
            assert_true(err || counter_get(&used) == ITEMS);
        }
        fail_never();
        watched_pool_destroy(pool);
    }
}

TEST(a_pool_works_without_memory_for_signal_stacks)
{
    filch_options options = {.size = sizeof options, .workers = 3, .report_overflow = true};
    filch_pool *pool = watched_pool_create(&options);
    counter c = {0};

    fail_from(FILCH_FAULT_MALLOC, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
    fail_never();

    assert_int_equal(counter_get(&c), 10 * TREE_8);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_for_which_memory_is_missing_is_not_created),
        cmocka_unit_test(a_task_for_which_memory_is_missing_is_not_submitted),
        cmocka_unit_test(a_stream_that_has_lost_something_has_no_gap),
        cmocka_unit_test(a_channel_for_which_memory_is_missing_is_not_created),
        cmocka_unit_test(
            a_pipeline_without_memory_calls_no_stage_and_with_little_it_has_fewer_tokens),
        cmocka_unit_test(a_pool_works_without_memory_for_signal_stacks),
    };
    fail_never();
    return cmocka_run_group_tests_name("fault_memory", tests, watchdog_start, watchdog_stop);
}
