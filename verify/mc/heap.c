/* SPDX-License-Identifier: MIT */
/*
 * The program's memory: stacks of its threads, a heap, mappings. Its static variables lie
 * elsewhere.
 *
 *     arena   | stack T0 | stack T1 | ... | heap  -->       | mappings  -->          |
 *             0                           STACKS            HEAP_END                 ARENA_BYTES
 *
 * No memory is reused within one execution, so the checker finds every touch of freed memory. A gap
 * between two blocks of the heap belongs to neither. The arena has the same address in every run,
 * if the system allows it.
 */
#include "mc/engine.h"
#include "mc/libc.h"

#include <stdio.h>
#include <sys/mman.h>

#undef malloc
#undef free
#undef calloc
#undef memset
#undef memcpy
#undef memmove
#undef mmap
#undef munmap
#undef madvise

#define STACK_BYTES ((size_t)256 << 10)
#define STACKS (STACK_BYTES * MC_THREADS_MAX)
#define HEAP_END ((size_t)16 << 20)
#define ARENA_BYTES ((size_t)128 << 20)
#define ARENA_AT ((void *)((uintptr_t)1 << 40))
#define PAGE_BYTES ((size_t)4096)
#define GAP_BYTES ((size_t)16)
#define SCRATCH_BYTES ((size_t)1 << 30)
#define BLOCKS_MAX 65536

/* The state of each byte of the heap. */
enum { BYTE_NOBODYS, BYTE_UNWRITTEN, BYTE_WRITTEN, BYTE_FREED };

/* The state of each page of the mappings. */
enum { PAGE_UNTOUCHED, PAGE_TOUCHED, PAGE_UNMAPPED };

typedef struct block {
    uintptr_t address;
    size_t bytes;
    bool is_freed;
    const void *pc;
} block;

static MC_KEEP struct {
    uintptr_t base;
    uint8_t *heap_state, *page_state;
    size_t heap_top, map_top;
    block *blocks;
    unsigned block_count;
    char *scratch;
    size_t scratch_top;
} arena;

/* From the linker: the program's static variables, and among them those to leave alone. */
extern char __data_start[], _end[], __start_mc_keep[], __stop_mc_keep[];

void *mc_reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        mc_fatal("limit", "no address space for %zu MB", bytes >> 20);
    return memory;
}

void *mc_scratch(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (arena.scratch_top + bytes > SCRATCH_BYTES)
        mc_fatal("limit", "an execution that needs more than %zu MB", SCRATCH_BYTES >> 20);
    void *memory = arena.scratch + arena.scratch_top;
    arena.scratch_top += bytes;
    return memset(memory, 0, bytes);
}

void mc_heap_init(void)
{
    void *memory = mmap(ARENA_AT, ARENA_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    arena.base = (uintptr_t)(memory == MAP_FAILED ? mc_reserve(ARENA_BYTES) : memory);
    arena.heap_state = mc_reserve(HEAP_END);
    arena.page_state = mc_reserve(ARENA_BYTES / PAGE_BYTES);
    arena.blocks = mc_reserve(BLOCKS_MAX * sizeof *arena.blocks);
    arena.scratch = mc_reserve(SCRATCH_BYTES);
    arena.heap_top = STACKS;
    arena.map_top = HEAP_END;
    mc_shadow_init(ARENA_BYTES + (size_t)(_end - __data_start));
}

void mc_heap_reset(void)
{
    memset(arena.heap_state + STACKS, BYTE_NOBODYS, arena.heap_top - STACKS);
    if (arena.map_top > HEAP_END) {
        madvise((void *)(arena.base + HEAP_END), arena.map_top - HEAP_END, MADV_DONTNEED);
        memset(arena.page_state, PAGE_UNTOUCHED, arena.map_top / PAGE_BYTES);
    }
    arena.heap_top = STACKS;
    arena.map_top = HEAP_END;
    arena.block_count = 0;
    arena.scratch_top = 0;
}

char *mc_stack_of(int id, size_t *bytes)
{
    *bytes = STACK_BYTES;
    return (char *)arena.base + (size_t)id * STACK_BYTES;
}

bool mc_offset(uintptr_t address, size_t *offset)
{
    *offset = address - arena.base;
    if (*offset < ARENA_BYTES)
        return true;
    *offset = ARENA_BYTES + (address - (uintptr_t)__data_start);
    return address >= (uintptr_t)__data_start && address < (uintptr_t)_end &&
           !(address >= (uintptr_t)__start_mc_keep && address < (uintptr_t)__stop_mc_keep);
}

/* ---- which memory may be touched ------------------------------------------------------------- */

static const block *find_block(uintptr_t address)
{
    for (unsigned i = 0; i < arena.block_count; i++) {
        const block *b = &arena.blocks[i];
        if (address >= b->address && address < b->address + b->bytes)
            return b;
    }
    return NULL;
}

static void fail_dead(uintptr_t address, const void *pc)
{
    const block *b = find_block(address);

    if (b && b->is_freed)
        mc_fail_at(pc, b->pc, "use after free: T%d touches, at {0}, memory that was freed at {1}",
                   mc.current->id);
    mc_fail_at(pc, NULL, "T%d touches, at {0}, memory that nobody has allocated", mc.current->id);
}

void mc_check_live(uintptr_t address, size_t size, const void *pc)
{
    size_t offset = address - arena.base;

    if (offset >= ARENA_BYTES || offset < STACKS)
        return;
    if (offset < HEAP_END) {
        for (size_t i = 0; i < size; i++)
            if (arena.heap_state[offset + i] == BYTE_NOBODYS ||
                arena.heap_state[offset + i] == BYTE_FREED)
                fail_dead(address + i, pc);
        return;
    }
    for (size_t page = offset / PAGE_BYTES; page <= (offset + size - 1) / PAGE_BYTES; page++) {
        if (arena.page_state[page] == PAGE_UNMAPPED)
            mc_fail_at(pc, NULL, "use after unmap: T%d touches, at {0}, memory that was unmapped",
                       mc.current->id);
        arena.page_state[page] = PAGE_TOUCHED;
    }
}

bool mc_is_initialised(uintptr_t address, size_t size)
{
    size_t offset = address - arena.base;

    if (offset >= HEAP_END || offset < STACKS)
        return true;
    for (size_t i = 0; i < size; i++)
        if (arena.heap_state[offset + i] == BYTE_UNWRITTEN)
            return false;
    return true;
}

void mc_mark_written(size_t offset, size_t size)
{
    if (offset >= STACKS && offset < HEAP_END)
        memset(arena.heap_state + offset, BYTE_WRITTEN, size);
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void *allocate(size_t alignment, size_t bytes, int state, const void *pc)
{
    size_t start = (arena.heap_top + GAP_BYTES + alignment - 1) & -alignment;

    if (start + bytes > HEAP_END || arena.block_count == BLOCKS_MAX)
        mc_fatal("limit", "a program that allocates more than %zu MB", HEAP_END >> 20);
    arena.heap_top = start + bytes;
    arena.blocks[arena.block_count++] = (block){arena.base + start, bytes, false, pc};
    memset(arena.heap_state + start, state, bytes);
    memset((void *)(arena.base + start), state == BYTE_WRITTEN ? 0 : 0xa5, bytes);
    return (void *)(arena.base + start);
}

#define CALLER __builtin_return_address(0)

void *mc_malloc(size_t bytes)
{
    return mc.current ? allocate(16, bytes, BYTE_UNWRITTEN, CALLER) : malloc(bytes);
}

void *mc_calloc(size_t count, size_t bytes)
{
    return mc.current ? allocate(16, count * bytes, BYTE_WRITTEN, CALLER) : calloc(count, bytes);
}

void *mc_aligned_alloc(size_t alignment, size_t bytes)
{
    return allocate(alignment, bytes, BYTE_UNWRITTEN, CALLER);
}

char *mc_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(allocate(1, bytes, BYTE_WRITTEN, CALLER), text, bytes);
}

void mc_free(void *memory)
{
    uintptr_t address = (uintptr_t)memory;

    if (!memory)
        return;
    if (address - arena.base >= ARENA_BYTES) {
        free(memory);
        return;
    }
    block *b = (block *)(uintptr_t)find_block(address);
    if (!b || b->address != address)
        mc_fail_at(CALLER, NULL, "T%d frees, at {0}, what was not allocated", mc.current->id);
    if (b->is_freed)
        mc_fail_at(CALLER, b->pc, "T%d frees, at {0}, what was freed at {1}", mc.current->id);
    /* Every access must happen before the free. */
    mc_plain(address, b->bytes, PLAIN_FREE, CALLER);
    b->is_freed = true;
    b->pc = CALLER;
    memset(arena.heap_state + (address - arena.base), BYTE_FREED, b->bytes);
}

bool mc_heap_leaks(char *text, size_t size)
{
    for (unsigned i = 0; i < arena.block_count; i++) {
        if (arena.blocks[i].is_freed)
            continue;
        mc.failure_pc[0] = arena.blocks[i].pc;
        snprintf(text, size, "leak: %zu bytes, allocated at {0}, are left", arena.blocks[i].bytes);
        return true;
    }
    return false;
}

/* ---- mappings -------------------------------------------------------------------------------- */

void *mc_mmap(size_t bytes)
{
    bytes = (bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
    if (arena.map_top + bytes > ARENA_BYTES)
        mc_fatal("limit", "a program that maps more than %zu MB", (ARENA_BYTES - HEAP_END) >> 20);
    void *memory = (void *)(arena.base + arena.map_top);
    arena.map_top += bytes;
    return memory;
}

int mc_munmap(void *memory, size_t bytes)
{
    size_t first = ((uintptr_t)memory - arena.base) / PAGE_BYTES;

    for (size_t page = first; page < first + bytes / PAGE_BYTES; page++) {
        if (arena.page_state[page] == PAGE_TOUCHED)
            mc_plain(arena.base + page * PAGE_BYTES, PAGE_BYTES, PLAIN_FREE, CALLER);
        arena.page_state[page] = PAGE_UNMAPPED;
    }
    return 0;
}

/* Guards and huge pages are accepted, nonsense is not. */
int mc_madvise(const void *memory, size_t bytes, int advice)
{
    (void)memory, (void)bytes;
    return advice < 0 ? -1 : 0;
}

/* ---- calls that the compiler does not instrument --------------------------------------------- */

void *mc_memset(void *to, int value, size_t bytes)
{
    mc_plain((uintptr_t)to, bytes, PLAIN_WRITE, CALLER);
    return memset(to, value, bytes);
}

void *mc_memcpy(void *to, const void *from, size_t bytes)
{
    mc_plain((uintptr_t)from, bytes, PLAIN_COPY, CALLER);
    mc_plain((uintptr_t)to, bytes, PLAIN_WRITE, CALLER);
    return memmove(to, from, bytes);
}
