/* SPDX-License-Identifier: MIT */
/*
 * The model checker finds each fault, reports none in a correct program, and shows a failure again
 * in a replay.
 *
 * Each program is correct, or wrong in one way, which `finds` names.
 */
#include "base/futex.h"
#include "base/lock.h"
#include "mc/mc.h"

#include <stdio.h>

static filch_atomic_u32 flag, other;
static filch_atomic_u64 wide;
static int data;
static volatile int more; /* the compiler would drop an unused read */
static unsigned char bytes[4];
static filch_lock lock, second;
static void *memory;
static _Thread_local int own = 7;

#define THREAD(name, ...)                                                                          \
    static void name(void)                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* clang-format off */

/* ---- races ----------------------------------------------------------------------------------- */
THREAD(write_data, data = 1;)
THREAD(read_data, more = data;)
THREAD(send_relaxed, data = 1; filch_store_relaxed(&flag, 1);)
THREAD(send_release, data = 1; filch_store_release(&flag, 1);)
THREAD(receive, if (filch_load_acquire(&flag)) more = data;)
THREAD(receive_relaxed, if (filch_load_relaxed(&flag)) more = data;)
THREAD(receive_fence, if (filch_load_relaxed(&flag)) { mc_fence(__ATOMIC_ACQUIRE, MC_SITE("fence")); more = data; })
THREAD(write_after_release, filch_store_release(&flag, 1); data = 1;)
THREAD(locked_add, filch_lock_acquire(&lock); data++; filch_lock_release(&lock);)
THREAD(write_byte_1, bytes[1] = 1;)
THREAD(write_byte_2, bytes[2] = 1;)
THREAD(copy_all, memcpy(memory, bytes, 4);)
THREAD(plain_flag, *(volatile uint32_t *)&flag = 1;)
THREAD(plain_flag_sent, *(volatile uint32_t *)&flag = 5; filch_store_release(&other, 1);)
THREAD(flag_received, if (filch_load_acquire(&other)) mc_check(filch_load_relaxed(&flag) == 5, "the plain store is seen");)
THREAD(load_flag, (void)filch_load_relaxed(&flag);)
THREAD(wrong_size, filch_store_relaxed((filch_atomic_u32 *)&wide, 1);)
THREAD(right_size, filch_store_relaxed(&wide, 1);)
THREAD(bypass, __atomic_store_n((uint32_t *)&flag, 1, __ATOMIC_RELEASE);)

/* ---- memory ---------------------------------------------------------------------------------- */
typedef struct node { int plain; filch_atomic_u32 word; } node;
THREAD(have_node, memory = calloc(1, sizeof(node));)
THREAD(have_unwritten, memory = malloc(sizeof(node));)
THREAD(free_node, free(memory);)
THREAD(touch_word, (void)filch_load_relaxed(&((node *)memory)->word);)
THREAD(touch_plain, more = ((node *)memory)->plain;)
THREAD(free_after, if (filch_load_acquire(&flag)) free(memory);)
THREAD(touch_before, more = ((node *)memory)->plain; (void)filch_load_relaxed(&((node *)memory)->word); filch_store_release(&flag, 1);)
THREAD(touch_behind, ((int *)memory)[2] = 1;)
THREAD(free_twice, free(memory); free(memory);)
THREAD(free_inside, free((char *)memory + 4);)
THREAD(send_then_touch, filch_store_release(&flag, 1); more = ((node *)memory)->plain;)
THREAD(have_mapping, memory = mmap(NULL, 8192, 0, 0, -1, 0);)
THREAD(unmap, munmap(memory, 8192);)
THREAD(null_pointer, *(volatile int *)memory = 1;)

/* ---- waiting --------------------------------------------------------------------------------- */
THREAD(sleep_while_0, while (filch_load_acquire(&flag) == 0) filch_futex_wait(&flag, 0, NULL);)
THREAD(set_and_wake, filch_store_release(&flag, 1); filch_futex_wake(&flag, 1);)
THREAD(set_only, filch_store_release(&flag, 1);)
THREAD(wake_too_early, filch_futex_wake(&flag, 1); filch_store_release(&flag, 1);)
THREAD(wake_all, filch_store_release(&flag, 1); filch_futex_wake(&flag, 2);)
THREAD(sleep_once, filch_futex_wait(&flag, 0, NULL); mc_check(filch_load_acquire(&flag), "woken because of the flag");)
THREAD(sleep_for_other, filch_futex_wait(&flag, 0, NULL); mc_check(filch_fetch_add_relaxed(&other, 0), "woken because of the other");)
THREAD(other_then_wake, filch_fetch_add_relaxed(&other, 1); filch_futex_wake(&flag, 1);)
THREAD(sleep_timed, const struct timespec t = {0}; filch_futex_wait(&flag, 0, &t);)
THREAD(sleep_timed_loop, const struct timespec t = {0}; while (!filch_load_acquire(&flag)) filch_futex_wait(&flag, 0, &t);)
THREAD(spin_while_0, while (filch_load_acquire(&flag) == 0) filch_pause();)
THREAD(spin_while_other_0, while (filch_load_acquire(&other) == 0) filch_pause();)
THREAD(spin_without_pause, while (filch_load_acquire(&flag) == 0);)
THREAD(spin_then_set, while (filch_load_acquire(&flag) == 0) filch_pause(); filch_store_release(&other, 1);)
THREAD(other_then_flag, filch_store_relaxed(&other, 1); filch_store_relaxed(&flag, 1);)
THREAD(spin_on_both, while (filch_load_acquire(&flag) == 0 || filch_load_acquire(&other) == 0) filch_pause();)

/* ---- threads --------------------------------------------------------------------------------- */
static void nothing(void *unused) { (void)unused; }
static void *nothing_either(void *unused) { return unused; }
THREAD(join_twice, int t = mc_spawn(nothing, NULL); mc_join(t); mc_join(t);)
THREAD(lock_both, filch_lock_acquire(&lock); filch_lock_acquire(&second); filch_lock_release(&second); filch_lock_release(&lock);)
THREAD(lock_both_reversed, filch_lock_acquire(&second); filch_lock_acquire(&lock); filch_lock_release(&lock); filch_lock_release(&second);)
THREAD(add_own, own += 1; filch_fetch_add_relaxed(&flag, 1); mc_check(own == 8, "nobody else changes it");)
THREAD(may_die, mc_may_crash(); filch_fetch_add_relaxed(&flag, 1); filch_fetch_add_relaxed(&flag, 1);)
THREAD(all_arrived, mc_check(flag.filch_value == 2, "both were counted");)
THREAD(all_or_dead, mc_check(flag.filch_value == 2 || mc_has_crashed(1), "both were counted, or the thread died");)
THREAD(choose_three, mc_check(mc_choose(3) != 2, "two is never chosen");)
THREAD(static_is_restored, mc_check(data++ == 0, "each execution begins anew");)
THREAD(leak, mc_check(malloc(5) != NULL, "there is memory");)
THREAD(pthreads, pthread_t t; pthread_create(&t, NULL, nothing_either, NULL); pthread_join(t, NULL);)
THREAD(abandon, if (filch_load_relaxed(&flag)) abort();)
/* clang-format on */

typedef struct example {
    const char *finds; /* NULL: nothing is wrong */
    mc_program program;
    mc_options options;
} example;

#define RUN(text, ...)                                                                             \
    {                                                                                              \
        .program = {.name = text, .threads = {__VA_ARGS__} }                                       \
    }
#define FIND(what, text, ...)                                                                      \
    {                                                                                              \
        .finds = what, .program = {.name = text, .threads = {__VA_ARGS__} }                        \
    }

static const example examples[] = {
    FIND("data race", "two plain accesses", write_data, read_data),
    FIND("data race", "two plain writes", write_data, write_data),
    RUN("two plain reads", read_data),
    FIND("data race", "relaxed message", send_relaxed, receive),
    FIND("data race", "message received relaxed", send_release, receive_relaxed),
    RUN("message", send_release, receive),
    RUN("message with an acquire fence", send_release, receive_fence),
    FIND("data race", "written after the release", write_after_release, receive),
    RUN("data under a lock", locked_add, locked_add),
    RUN("data under a lock, three threads", locked_add, locked_add, locked_add),
    RUN("neighbouring bytes", write_byte_1, write_byte_2),
    {"data race",
     {"a copy of what another writes", have_node, {copy_all, write_byte_1}, NULL},
     {0}},
    FIND("data race", "an atomic word written plainly", plain_flag, load_flag),
    RUN("an atomic word written plainly before", plain_flag_sent, flag_received),
    FIND("bytes, but was accessed with", "two sizes of one word", right_size, wrong_size),
    FIND("does not go through filch/atomic.h", "an atomic of the compiler's", bypass),

    {"use after free", {"an atomic word is freed", have_node, {free_node, touch_word}, NULL}, {0}},
    {"use after free", {"plain memory is freed", have_node, {free_node, touch_plain}, NULL}, {0}},
    {NULL, {"freed after everybody has gone", have_node, {touch_before, free_after}, NULL}, {0}},
    {"T2 frees",
     {"touched after everybody was told", have_node, {send_then_touch, free_after}, NULL},
     {0}},
    {"nobody has allocated", {"behind a block", have_node, {touch_behind}, NULL}, {0}},
    {"what was freed", {"freed twice", have_node, {free_twice}, NULL}, {0}},
    {"what was not allocated", {"freed inside", have_node, {free_inside}, NULL}, {0}},
    {"nobody has written", {"plain memory not written", have_unwritten, {touch_plain}, NULL}, {0}},
    {"before anybody has written",
     {"an atomic word not written", have_unwritten, {touch_word}, NULL},
     {0}},
    {"use after unmap", {"memory is unmapped", have_mapping, {unmap, touch_plain}, NULL}, {0}},
    {"Segmentation fault", {"no pointer at all", NULL, {null_pointer}, NULL}, {0}},
    {"leak", {"a leak", NULL, {leak}, NULL}, {.check_leaks = true}},

    RUN("sleep and wake", sleep_while_0, set_and_wake),
    FIND("lost wake-up", "a wake is missing", sleep_while_0, set_only),
    FIND("lost wake-up", "a wake too early", sleep_while_0, wake_too_early),
    FIND("lost wake-up", "one wake for two", sleep_while_0, sleep_while_0, set_and_wake),
    RUN("all are woken", sleep_while_0, sleep_while_0, wake_all),
    FIND("does not hold", "a wake carries nothing", sleep_once, wake_all),
    {NULL,
     {"woken for a reason", NULL, {sleep_for_other, other_then_wake}, NULL},
     {.allow_deadlock = true}},
    {"does not hold",
     {"woken for no reason", NULL, {sleep_for_other, other_then_wake}, NULL},
     {.allow_deadlock = true, .spurious = 1}},
    FIND("nothing was checked", "a wait that would time out", sleep_timed),
    {NULL, {"a wait that times out", NULL, {sleep_timed}, NULL}, {.timeouts = 1}},
    {NULL,
     {"a wait that times out, in a loop", NULL, {sleep_timed_loop, set_only}, NULL},
     {.timeouts = 2}},
    RUN("spin", spin_while_0, set_only),
    FIND("livelock", "spin for ever", spin_while_0),
    FIND("livelock", "spin for another", spin_while_0, spin_while_other_0),
    FIND("does a loop spin", "a loop without a pause", spin_without_pause, set_only),
    RUN("spin in a chain", spin_then_set, spin_while_other_0, set_only),
    RUN("spin on two words", spin_on_both, other_then_flag),

    FIND("was joined before", "joined twice", join_twice),
    FIND("deadlock", "two locks in different order", lock_both, lock_both_reversed),
    RUN("two locks in the same order", lock_both, lock_both),
    RUN("thread-local variables", add_own, add_own),
    {"does not hold", {"a thread dies", NULL, {may_die}, all_arrived}, {0}},
    {NULL, {"a thread dies, and that is known", NULL, {may_die}, all_or_dead}, {0}},
    FIND("does not hold", "a choice", choose_three),
    RUN("static variables", static_is_restored, sleep_while_0, set_and_wake),
    RUN("threads of the library", pthreads, send_release),
    FIND("abort", "abort", abandon, set_only),
};

static bool is_as_expected(const example *e, const mc_result *r)
{
    if (!e->finds)
        return r->verdict == MC_OK;
    return r->verdict == MC_FAILED && strstr(r->failure, e->finds);
}

/* Run the example in every mode, then replay the failure from its choices. */
static int check(const example *e, mc_mode mode)
{
    static const char *const modes[] = {"full", "bounded", "random"};
    mc_options options = e->options;
    char again[20000] = "";

    options.quiet = true;
    options.mode = mode;
    options.preemptions = 3;
    options.max_steps = 2000;
    options.spins = e->finds && strcmp(e->finds, "livelock") == 0 ? 0 : 3;
    mc_result result = mc_run(&e->program, &options);
    bool ok = is_as_expected(e, &result);
    if (mode == MC_RANDOM && e->program.threads[0] == spin_without_pause)
        return 0; /* it ends, sooner or later */
    if (ok && result.choices) {
        snprintf(again, sizeof again, "%s:%s", e->program.name, result.choices);
        options.replay = again;
        mc_result replayed = mc_run(&e->program, &options);
        if (strcmp(replayed.failure, result.failure) != 0) {
            printf("%s: the replay found: %s\n", e->program.name, replayed.failure);
            ok = false;
        }
    }
    if (!ok || mode == MC_FULL)
        printf("%-36s %-8s %5llu executions  %-6s %s\n", e->program.name, modes[mode],
               (unsigned long long)result.executions, ok ? "ok" : "WRONG", result.failure);
    return !ok;
}

int main(void)
{
    unsigned count = sizeof examples / sizeof examples[0], wrong = 0;

    for (unsigned i = 0; i < count; i++)
        for (int mode = MC_FULL; mode <= MC_RANDOM; mode++)
            wrong += (unsigned)check(&examples[i], (mc_mode)mode);
    printf("%u programs in three modes, %u wrong\n", count, wrong);
    return wrong > 0;
}
