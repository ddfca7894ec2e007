/* SPDX-License-Identifier: MIT */
/*
 * The edge is in README.md.
 */
#include "io/buffers.h"

#include <errno.h>
#include <filch/stream.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The distance between buffers: one cache line more than a buffer, so that their beginnings are in
 * different sets of the cache. */
#define STRIDE (FILCH_STREAM_BYTES + FILCH_CACHE_LINE)

char *filch_buffers_at(const filch_buffers *buffers, unsigned id)
{
    return buffers->memory + (size_t)id * STRIDE;
}

/* Under the lock, or before other threads know the buffers. */
static void add(filch_buffers *buffers, unsigned id)
{
    struct io_uring_buf *entry = &buffers->queue->bufs[buffers->tail & (buffers->count - 1)];

    /* The first entry shares its last field with the tail. */
    entry->addr = (uint64_t)(uintptr_t)filch_buffers_at(buffers, id);
    entry->len = FILCH_STREAM_BYTES;
    entry->bid = (uint16_t)id;
    buffers->tail++;
}

static void publish(filch_buffers *buffers)
{
    /* release [kernel] */
    filch_store_release((FILCH_ATOMIC(uint16_t) *)&buffers->queue->tail, buffers->tail);
}

void filch_buffers_give(filch_buffers *buffers, unsigned id)
{
    filch_lock_acquire(&buffers->lock);
    add(buffers, id);
    publish(buffers);
    filch_lock_release(&buffers->lock);
}

int filch_buffers_init(filch_buffers *buffers, int ring_fd, unsigned count)
{
    size_t queue_bytes = (count * sizeof(struct io_uring_buf) + 4095) & ~(size_t)4095;
    struct io_uring_buf_reg request = {.ring_entries = count};

    buffers->map_bytes = queue_bytes + (size_t)count * STRIDE;
    void *map =
        mmap(NULL, buffers->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -errno;
    request.ring_addr = (uint64_t)(uintptr_t)map;
    if (syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_PBUF_RING, &request, 1)) {
        int err = -errno;
        munmap(map, buffers->map_bytes);
        return err;
    }
    buffers->queue = map;
    buffers->memory = (char *)map + queue_bytes;
    buffers->count = count;
    buffers->tail = 0;
    for (unsigned id = 0; id < count; id++)
        add(buffers, id);
    publish(buffers);
    return 0;
}

void filch_buffers_fini(filch_buffers *buffers)
{
    if (buffers->queue)
        munmap(buffers->queue, buffers->map_bytes);
}
