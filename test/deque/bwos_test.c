/* SPDX-License-Identifier: MIT */
/*
 * Properties of the BWoS deques beyond the contract: order, blocks of any size, room, and that no
 * thief starves or blocks others. deque_test.c tests the contract. Compiled once for each kind,
 * TEST_DEQUE.
 */
#include "watchdog.h"

#include "deque_kind.h"

#define deque_init_blocks NAME(TEST_DEQUE, init_blocks)
#define deque_init_blocks_at NAME(TEST_DEQUE, init_blocks_at)
#define IS_FIFO_bwos_lifo false
#define IS_FIFO_bwos_fifo true
#define IS_FIFO_OF(kind) IS_FIFO_##kind
#define IS_FIFO(kind) IS_FIFO_OF(kind)
static const bool is_fifo = IS_FIFO(TEST_DEQUE);

/* The step of pop that takes back a block in which entries seem to be left. relaxed: one thread. */
#define TAKE_BACK_bwos_lifo(d)                                                                     \
    filch_bwos_lifo_take_back(d, (d)->block, filch_load_relaxed(&(d)->position))
#define TAKE_BACK_bwos_fifo(d) filch_bwos_fifo_take_back(d)
#define TAKE_BACK_OF(kind) TAKE_BACK_##kind
#define TAKE_BACK(kind) TAKE_BACK_OF(kind)

static char entries[4000]; /* entry i is the address of entries[i] */

/* Counters that start here change their sign, or wrap, during a test. */
static const uint64_t starts[] = {0, INT64_MAX, UINT64_MAX, UINT64_MAX - ((uint64_t)3 << 20)};

static void push(deque *d, size_t i)
{
    assert_int_equal(deque_push(d, &entries[i]), 0);
}

/* Returns the number of the popped entry, or -1. */
static int pop(deque *d)
{
    void *entry;
    return deque_pop(d, &entry) ? (int)((char *)entry - entries) : -1;
}

static int steal(deque *d)
{
    void *entry;
    return deque_steal(d, &entry) == FILCH_STEAL_WON ? (int)((char *)entry - entries) : -1;
}

/* ---- a plain deque beside it ----------------------------------------------------------------- */

/* The entries of the deque, oldest first. */
typedef struct plain {
    int entry[4000], number[4000]; /* number: how many were pushed before it */
    size_t count;
    int pushed;
    bool is_asked;    /* a steal found nothing, and the owner has not answered */
    bool is_promised; /* the owner answered; nothing stolen since, and not empty */
} plain;

static void plain_remove(plain *p, int entry)
{
    size_t i = 0;

    while (i < p->count && p->entry[i] != entry)
        i++;
    assert_true(i < p->count);
    p->count--;
    memmove(p->entry + i, p->entry + i + 1, (p->count - i) * sizeof *p->entry);
    memmove(p->number + i, p->number + i + 1, (p->count - i) * sizeof *p->number);
}

static void plain_called(plain *p)
{
    p->is_promised = (p->is_promised || p->is_asked) && p->count > 0;
    p->is_asked &= p->count == 0;
}

static void both_push(deque *d, plain *p, int entry, size_t size, size_t count)
{
    int err = deque_push(d, &entries[entry]);

    if (err) {
        /* A steal from the middle of the FIFO queue makes no room yet. */
        int room = is_fifo ? p->pushed - p->number[0] : (int)p->count;
        assert_int_equal(err, -ENOBUFS);
        assert_in_range(room, (count - 1) * size + 1, count * size);
    } else {
        p->number[p->count] = p->pushed++;
        p->entry[p->count++] = entry;
        assert_in_range(p->count, 1, count * size);
    }
    plain_called(p);
}

static void both_pop(deque *d, plain *p)
{
    int entry = pop(d);

    if (p->count > 0) {
        assert_int_equal(entry, p->entry[is_fifo ? 0 : p->count - 1]);
        plain_remove(p, entry);
    } else {
        assert_int_equal(entry, -1);
    }
    plain_called(p);
}

/* Returns true if an entry was stolen. */
static bool both_steal(deque *d, plain *p, size_t max)
{
    void *batch[8];
    size_t count = 1;
    filch_steal_result result =
        max > 0 ? deque_steal_batch(d, batch, max, &count) : deque_steal(d, batch);

    if (result != FILCH_STEAL_WON) {
        assert_int_equal(result, FILCH_STEAL_EMPTY); /* there is no other thread */
        assert_false(p->is_promised);
        p->is_asked = true;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int entry = (int)((char *)batch[i] - entries);
        if (!is_fifo || p->is_promised) /* the owner holds no older entry */
            assert_int_equal(entry, p->entry[0]);
        plain_remove(p, entry);
    }
    p->is_promised = false;
    return true;
}

TEST(every_call_behaves_like_a_plain_deque)
{
    filch_rng rng = {test_seed()};

    for (unsigned round = 0; round < 6000 / TEST_SLOWNESS; round++) {
        size_t size = 1 + filch_rng_next(&rng) % 5, count = 2 + filch_rng_next(&rng) % 4;
        plain p = {.count = 0};
        deque d;
        assert_int_equal(deque_init_blocks_at(&d, size, count, starts[round % 4]), 0);

        unsigned pushes = 5, steals = 3;
        for (int i = 0; i < 1000; i++) {
            assert_int_equal(deque_size_hint(&d), p.count);
            if (i % 50 == 0) {
                pushes = 1 + (unsigned)(filch_rng_next(&rng) % 9); /* of 10 calls */
                steals = (unsigned)(filch_rng_next(&rng) % 10);    /* of 10 others */
            }
            if (filch_rng_next(&rng) % 10 < pushes)
                both_push(&d, &p, i, size, count);
            else if (filch_rng_next(&rng) % 10 >= steals)
                both_pop(&d, &p);
            else
                both_steal(&d, &p, filch_rng_next(&rng) % 9);
        }
        deque_fini(&d);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

TEST(blocks_have_any_size_and_number)
{
    static const size_t sizes[] = {1, 2, 3, 7, 64, 100}, counts[] = {2, 3, 5, 16, 19};

    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            size_t capacity = sizes[s] * counts[c];
            deque d;
            assert_int_equal(deque_init_blocks(&d, sizes[s], counts[c]), 0);

            for (size_t i = 0; i < capacity; i++)
                push(&d, i);
            assert_int_equal(deque_push(&d, entries), -ENOBUFS);

            for (size_t i = 0; i < capacity; i++)
                assert_int_equal(pop(&d), is_fifo ? i : capacity - 1 - i);
            assert_int_equal(pop(&d), -1);
            deque_fini(&d);
        }
    }
}

TEST(blocks_that_cannot_be_are_refused)
{
    const size_t max = FILCH_BWOS_INDEX_MAX;
    deque d;

    assert_int_equal(deque_init_blocks(&d, 0, 2), -EINVAL);
    assert_int_equal(deque_init_blocks(&d, 1, 0), -EINVAL);
    assert_int_equal(deque_init_blocks(&d, 1, 1), -EINVAL);
    assert_int_equal(deque_init_blocks(&d, max + 1, 2), -EINVAL);
    assert_int_equal(deque_init_blocks(&d, 1, max + 1), -EINVAL);
    assert_int_equal(deque_init_blocks(&d, SIZE_MAX, SIZE_MAX), -EINVAL);
    is_memory_out = true;
    assert_int_equal(deque_init_blocks(&d, 16, 32), -ENOMEM);
    is_memory_out = false;
}

TEST(many_blocks_and_large_ones_work)
{
    static const size_t sizes[] = {1, 100000}, counts[] = {100000, 2};

    for (int k = 0; k < 2; k++) {
        deque d;
        assert_int_equal(deque_init_blocks(&d, sizes[k], counts[k]), 0);

        for (size_t i = 0; i < sizes[k] * counts[k]; i++)
            push(&d, i % 4000);
        assert_int_equal(deque_push(&d, entries), -ENOBUFS);

        assert_int_equal(deque_size_hint(&d), sizes[k] * counts[k]);
        assert_int_equal(pop(&d), is_fifo ? 0 : (sizes[k] * counts[k] - 1) % 4000);
        deque_fini(&d);
    }
}

TEST(a_batch_is_the_rest_of_a_block)
{
    void *batch[10];
    size_t count;
    deque d;
    assert_int_equal(deque_init_blocks(&d, 5, 4), 0);
    for (size_t i = 0; i < 20; i++)
        push(&d, i);

    assert_int_equal(deque_steal_batch(&d, batch, 10, &count), FILCH_STEAL_WON);
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(batch[i], entries + i);
    assert_int_equal(steal(&d), 5);
    assert_int_equal(deque_steal_batch(&d, batch, 2, &count), FILCH_STEAL_WON);
    assert_int_equal(count, 2);
    assert_ptr_equal(batch[0], entries + 6);
    assert_int_equal(deque_steal_batch(&d, batch, 10, &count), FILCH_STEAL_WON);

    assert_int_equal(count, 2);
    assert_ptr_equal(batch[1], entries + 9);
    assert_int_equal(deque_size_hint(&d), 10);
    deque_fini(&d);
}

/* ---- room ------------------------------------------------------------------------------------ */

TEST(an_empty_deque_has_all_its_room)
{
    filch_rng rng = {test_seed()};

    for (unsigned round = 0; round < 2000 / TEST_SLOWNESS; round++) {
        size_t size = 1 + filch_rng_next(&rng) % 5, count = 2 + filch_rng_next(&rng) % 4;
        plain p = {.count = 0};
        deque d;
        assert_int_equal(deque_init_blocks_at(&d, size, count, starts[round % 4]), 0);
        for (uint64_t i = filch_rng_next(&rng) % 100; i > 0; i--) {
            if (filch_rng_next(&rng) % 2)
                both_push(&d, &p, (int)i, size, count);
            else if (filch_rng_next(&rng) % 2)
                both_pop(&d, &p);
            else
                both_steal(&d, &p, 0);
        }

        while (pop(&d) >= 0)
            ;

        for (size_t i = 0; i < size * count; i++)
            push(&d, i);
        assert_int_equal(deque_push(&d, entries), -ENOBUFS);
        deque_fini(&d);
    }
}

/*
 * A thief looks at a block and is stopped there, while the owner goes round the ring several times.
 * Then the thief tries to take the entries it saw. In the paper, the first half of a steal reserves
 * entries, so the FIFO queue would be full and empty at once.
 */
TEST(a_thief_that_is_stopped_blocks_no_other)
{
    for (size_t size = 1; size <= 4; size++) {
        const size_t capacity = 4 * size;
        deque d;
        assert_int_equal(deque_init_blocks(&d, size, 4), 0);
        for (size_t i = 0; i < capacity; i++)
            push(&d, i);
        filch_bwos_block *b = filch_bwos_block_at(&d.ring, is_fifo ? 1 : 0);
        /* relaxed: one thread. */
        uint64_t head = filch_load_relaxed(&b->head);

        for (int round = 0; round < 20; round++) {
            for (size_t i = 0; i < capacity; i++)
                assert_int_equal(pop(&d), is_fifo ? i : capacity - 1 - i);
            assert_int_equal(pop(&d), -1);
            assert_int_equal(steal(&d), -1);
            for (size_t i = 0; i < capacity; i++)
                push(&d, i);
            assert_int_equal(deque_push(&d, entries), -ENOBUFS);
        }

        assert_false(filch_cas_acq_rel(&b->head, &head, head + 1));
        for (size_t i = 0; i < capacity; i++)
            assert_int_equal(pop(&d), is_fifo ? i : capacity - 1 - i);
        deque_fini(&d);
    }
}

/* The owner sees entries left in its block, but takes the block back too late. Thieves have taken
 * them all by then, and remember that no more entries come there. */
TEST(a_block_that_is_past_stays_past)
{
    for (size_t size = 1; size <= 4; size++) {
        deque d;
        assert_int_equal(deque_init_blocks(&d, size, 3), 0);
        for (size_t i = 0; i < size - 1; i++)
            push(&d, i);
        assert_int_equal(steal(&d), -1);
        push(&d, size - 1);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(steal(&d), i);
        assert_int_equal(steal(&d), -1);

        TAKE_BACK(TEST_DEQUE)(&d);

        assert_int_equal(pop(&d), -1);
        for (size_t i = 0; i < 3 * size; i++) {
            push(&d, i);
            assert_int_equal(steal(&d), i);
            assert_int_equal(steal(&d), -1);
            assert_int_equal(pop(&d), -1);
        }
        deque_fini(&d);
    }
}

/* ---- work for thieves ------------------------------------------------------------------------ */

TEST(a_thief_that_asks_gets_all)
{
    for (size_t size = 1; size <= 20; size++) {
        for (size_t count = 1; count <= 2 * size; count++) {
            for (int is_push = 0; is_push < 2; is_push++) {
                size_t stolen = 0;
                deque d;
                assert_int_equal(deque_init_blocks(&d, size, 3), 0);
                for (size_t i = 0; i < count; i++)
                    push(&d, i);

                while (steal(&d) >= 0)
                    stolen++;
                assert_true(stolen < count);
                if (is_push)
                    push(&d, count);
                else
                    assert_true(pop(&d) >= 0);
                while (steal(&d) >= 0)
                    stolen++;

                assert_int_equal(stolen, is_push ? count + 1 : count - 1);
                deque_fini(&d);
            }
        }
    }
}

/* A thief has asked, and the owner has granted everything. If the owner then pops it all, the entry
 * that it pushes next is its own until a thief asks again. */
TEST(an_answer_ends_when_the_deque_is_empty)
{
    for (int is_empty_between = 0; is_empty_between < 2; is_empty_between++) {
        deque d;
        assert_int_equal(deque_init_blocks(&d, 4, 2), 0);
        push(&d, 0);
        assert_int_equal(steal(&d), -1); /* asks */
        push(&d, 1);                     /* grants both */
        assert_int_equal(pop(&d), is_fifo ? 0 : 1);
        if (is_empty_between)
            assert_int_equal(pop(&d), is_fifo ? 1 : 0);
        push(&d, 2);

        int first = steal(&d); /* asks again, if it finds nothing */
        push(&d, 3);
        int second = steal(&d);

        assert_int_equal(first, is_empty_between ? -1 : is_fifo ? 1 : 0);
        assert_int_equal(second, is_empty_between ? 2 : -1);
        deque_fini(&d);
    }
}

/* A push that continues in the next block grants the full one, too. */
TEST(a_full_block_is_granted)
{
    deque d;
    assert_int_equal(deque_init_blocks(&d, 4, 2), 0);
    for (int i = 0; i < 8; i++)
        push(&d, (size_t)i);
    for (int i = 0; i < 4; i++)
        assert_int_equal(steal(&d), i);
    assert_int_equal(steal(&d), -1);

    push(&d, 8);

    for (int i = 4; i < 9; i++)
        assert_int_equal(steal(&d), i);
    assert_int_equal(steal(&d), -1);
    deque_fini(&d);
}

/* The owner pops many entries before the thief looks again. */
TEST(the_owner_leaves_an_entry_for_a_thief_that_asked)
{
    for (size_t size = 1; size <= 33; size += 4) {
        deque d;
        assert_int_equal(deque_init_blocks(&d, size, 4), 0);
        for (size_t i = 0; i < size; i++)
            push(&d, i);
        assert_int_equal(steal(&d), -1);
        push(&d, size);

        for (size_t left = size + 1; left > 1; left--)
            assert_true(pop(&d) >= 0);

        assert_int_equal(steal(&d), is_fifo ? (int)size : 0);
        assert_int_equal(steal(&d), -1);
        deque_fini(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_behaves_like_a_plain_deque),
        cmocka_unit_test(blocks_have_any_size_and_number),
        cmocka_unit_test(blocks_that_cannot_be_are_refused),
        cmocka_unit_test(many_blocks_and_large_ones_work),
        cmocka_unit_test(a_batch_is_the_rest_of_a_block),
        cmocka_unit_test(an_empty_deque_has_all_its_room),
        cmocka_unit_test(a_thief_that_is_stopped_blocks_no_other),
        cmocka_unit_test(a_block_that_is_past_stays_past),
        cmocka_unit_test(a_thief_that_asks_gets_all),
        cmocka_unit_test(an_answer_ends_when_the_deque_is_empty),
        cmocka_unit_test(a_full_block_is_granted),
        cmocka_unit_test(the_owner_leaves_an_entry_for_a_thief_that_asked),
    };
    return cmocka_run_group_tests_name("bwos", tests, watchdog_start, watchdog_stop);
}
