/* SPDX-License-Identifier: MIT */
/*
 * Model threads: coroutines on one thread of the system, each stopped before its next operation.
 *
 *     scheduler (run.c)                     a thread of the program
 *       mc_thread_resume  ------------->      does the operation it was stopped at,
 *                         <-------------      runs on, stops before the next: mc_announce
 *
 * The program may switch stacks while it runs: a thread goes on wherever its stack pointer was. The
 * engine swaps thread-local variables with the thread. Those of the program lie in one block below
 * the thread pointer; the engine has none.
 */
#include "mc/engine.h"

#include <link.h>
#include <stdlib.h>

/* Save the callee-saved registers and the stack pointer, continue with another. */
void mc_switch(void **save_sp, void *load_sp);
__asm__(".pushsection .text\n"
        ".type mc_switch, @function\n"
        "mc_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size mc_switch, . - mc_switch\n"
        ".popsection\n");

static MC_KEEP struct {
    char *block; /* where the compiler looks for thread-local variables */
    const void *image;
    size_t image_bytes, bytes;
    thread *loaded; /* the thread whose variables are there */
} tls;

/* The first object is the program itself. */
static int find_tls(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_TLS)
            continue;
        tls.image = (const char *)info->dlpi_addr + p->p_vaddr;
        tls.image_bytes = p->p_filesz;
        tls.bytes = p->p_memsz;
        size_t below = (p->p_memsz + p->p_align - 1) & -p->p_align;
        tls.block = (char *)__builtin_thread_pointer() - below;
    }
    return 1;
}

void mc_threads_init(void)
{
    dl_iterate_phdr(find_tls, NULL);
    for (int i = 0; i < MC_THREADS_MAX; i++)
        mc.threads[i].tls = mc_reserve(tls.bytes + 1);
}

static void load_tls(thread *t)
{
    if (tls.bytes == 0 || tls.loaded == t)
        return;
    if (tls.loaded)
        memcpy(tls.loaded->tls, tls.block, tls.bytes);
    memcpy(tls.block, t->tls, tls.bytes);
    tls.loaded = t;
}

static void thread_main(void)
{
    thread *t = mc.current;

    t->fn(t->argument);
    t = mc.current;
    t->state = THREAD_ENDED;
    mc_leave();
}

static void prepare_stack(thread *t)
{
    size_t bytes;
    char *low = mc_stack_of(t->id, &bytes);
    /* Six registers, where to start, and a return address that ends a backtrace. */
    void **sp = (void **)(low + bytes) - 8;

    memset(sp, 0, 8 * sizeof *sp);
    sp[6] = (void *)(uintptr_t)thread_main;
    t->sp = sp;
}

thread *mc_thread_start(void (*fn)(void *), void *argument)
{
    if (mc.thread_count == MC_THREADS_MAX)
        mc_fatal("limit", "more than %d threads", MC_THREADS_MAX);
    const thread *parent = mc.current;
    thread *t = &mc.threads[mc.thread_count];
    char *own_tls = t->tls;

    memset(t, 0, sizeof *t);
    *t = (thread){.id = mc.thread_count++, .tls = own_tls, .fn = fn, .argument = argument};
    t->spins = mc.options.spins;
    t->faults = mc.options.faults;
    t->spurious = mc.options.spurious;
    t->timeouts = mc.options.timeouts;
    t->round = 1;
    if (tls.bytes > 0) {
        memset(t->tls, 0, tls.bytes);
        memcpy(t->tls, tls.image, tls.image_bytes);
        if (tls.loaded == t)
            tls.loaded = NULL;
    }
    if (parent) {
        t->now = t->acquired = parent->now;
        memcpy(t->past, parent->past, sizeof t->past);
    } else {
        for (int i = 0; i < MC_THREADS_MAX; i++)
            t->now.hb[i] = mc.base_clock;
    }
    t->now.hb[t->id] = mc.base_clock + 1;
    prepare_stack(t);
    return t;
}

void mc_thread_resume(thread *t)
{
    load_tls(t);
    mc.current = t;
    t->state = THREAD_LOCAL;
    mc_switch(&mc.scheduler_sp, t->sp);
    mc.current = NULL;
}

void mc_announce(const operation *op)
{
    thread *t = mc.current;

    if (!t)
        mc_fatal("client", "%s:%d: an operation outside of an execution", op->site.file,
                 op->site.line);
    t->op = *op;
    t->state = THREAD_AT_OPERATION;
    mc_switch(&t->sp, mc.scheduler_sp);
}

void mc_leave(void)
{
    void *never;

    mc_switch(&never, mc.scheduler_sp);
    abort();
}

void mc_block(void)
{
    thread *t = mc.current;

    t->state = THREAD_BLOCKED;
    mc_switch(&t->sp, mc.scheduler_sp);
}

bool mc_is_enabled(const thread *t)
{
    if (t->state != THREAD_AT_OPERATION)
        return false;
    switch (t->op.kind) {
    case OP_JOIN:
        return mc.threads[t->op.target].state >= THREAD_ENDED;
    case OP_PAUSE:
        return mc_has_news(t->spinning, t->spin_count);
    default:
        return true;
    }
}

/* ---- calls by programs ----------------------------------------------------------------------- */

int mc_self(void)
{
    return mc.current ? mc.current->id : -1;
}

int mc_spawn(void (*fn)(void *), void *argument)
{
    thread *t = mc_thread_start(fn, argument);

    mc_trace(mc.current, (mc_site){0}, "starts T%d", t->id);
    mc_stay(mc.current, NULL);
    /* The child does not know the parent's operations from here on. */
    mc_tick(mc.current);
    return t->id;
}

void mc_join(int id)
{
    thread *me = mc.current, *t = &mc.threads[id];

    if (id < 0 || id >= mc.thread_count || t == me)
        mc_fail("T%d joins T%d, which is no other thread", me->id, id);
    if (t->is_joined)
        mc_fail("T%d joins T%d, which was joined before", me->id, id);
    t->is_joined = true;
    mc_announce(&(operation){.kind = OP_JOIN, .target = id});
    mc_stay(me, NULL);
    join_view(&me->now, &t->now);
    for (int i = 0; i < MC_THREADS_MAX; i++)
        me->past[i] = t->past[i] > me->past[i] ? t->past[i] : me->past[i];
    mc_trace(me, (mc_site){0}, "joins T%d", id);
    mc_commit(me, &(deed){.kind = OP_JOIN});
}

void mc_may_crash(void)
{
    mc.current->may_crash = true;
}

bool mc_has_crashed(int id)
{
    thread *me = mc.current;
    uintptr_t address = (uintptr_t)&mc.threads[id];

    mc_announce(&(operation){.kind = OP_ALIVE, .effects = READS, .address = address});
    bool has_crashed = mc.threads[id].state == THREAD_CRASHED;
    mc_trace(me, (mc_site){0}, "sees T%d %s", id, has_crashed ? "dead" : "alive");
    mc_commit(me, &(deed){.kind = OP_ALIVE, .effects = READS});
    return has_crashed;
}
