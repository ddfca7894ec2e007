/* SPDX-License-Identifier: MIT */
/*
 * The life of a ring.
 */
#include "base/descriptor.h"
#include "base/memory.h"
#include "io/uring.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *at(const filch_uring *ring, uint32_t offset)
{
    return (char *)ring->rings + offset;
}

static int map(filch_uring *ring, const struct io_uring_params *params)
{
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

    ring->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    ring->rings = mmap(NULL, ring->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       ring->fd, IORING_OFF_SQ_RING);
    if (ring->rings == MAP_FAILED)
        return -errno;
    ring->sqes_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->sqes = mmap(NULL, ring->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      ring->fd, IORING_OFF_SQES);
    if (ring->sqes == MAP_FAILED) {
        int err = -errno;
        munmap(ring->rings, ring->rings_bytes);
        return err;
    }
    ring->sq = ring->sqes;
    ring->sq_head = at(ring, params->sq_off.head);
    ring->sq_tail = at(ring, params->sq_off.tail);
    ring->sq_flags = at(ring, params->sq_off.flags);
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_head = at(ring, params->cq_off.head);
    ring->cq_tail = at(ring, params->cq_off.tail);
    ring->cq = at(ring, params->cq_off.cqes);
    ring->cq_mask = params->cq_entries - 1;
    uint32_t *array = at(ring, params->sq_off.array);
    for (uint32_t i = 0; i < params->sq_entries; i++)
        array[i] = i;
    return 0;
}

int filch_uring_create(filch_uring **out, filch_io *io)
{
    /* SUBMIT_ALL: an entry that the kernel refuses does not hold up the entries behind it. */
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE |
                 IORING_SETUP_SUBMIT_ALL,
        /* Tests have small rings. The kernel keeps completions that do not fit. */
        .cq_entries = io->ring_entries < 64 ? io->ring_entries : 8 * io->ring_entries};
    filch_uring *ring = filch_calloc(1, sizeof *ring);
    int err = -ENOMEM;

    if (!ring)
        return err;
    filch_kick_prepare();
    ring->io = io;
    ring->thread = (pid_t)syscall(SYS_gettid);
    ring->source = filch_uring_source;
    ring->source.bell = filch_descriptor_of_ours(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    err = -errno;
    if (ring->source.bell < 0)
        goto free_ring;
    ring->fd =
        filch_descriptor_of_ours((int)syscall(SYS_io_uring_setup, io->ring_entries, &params));
    err = -errno;
    if (ring->fd < 0)
        goto close_bell;
    err = -EOPNOTSUPP;
    if (!(params.features & IORING_FEAT_SINGLE_MMAP) || !(params.features & IORING_FEAT_NODROP) ||
        !(params.features & IORING_FEAT_EXT_ARG))
        goto close_ring;
    err = map(ring, &params);
    if (err)
        goto close_ring;
    *out = ring;
    return 0;

close_ring:
    close(ring->fd);
close_bell:
    close(ring->source.bell);
free_ring:
    free(ring);
    return err;
}

void filch_uring_destroy(filch_uring *ring)
{
    munmap(ring->sqes, ring->sqes_bytes);
    munmap(ring->rings, ring->rings_bytes);
    close(ring->fd);
    filch_buffers_fini(&ring->buffers);
    close(ring->source.bell);
    free(ring);
}

bool filch_uring_has_buffers(filch_uring *ring)
{
    /* Tests have small rings, and few buffers. */
    unsigned count = ring->io->ring_entries < 64 ? 4 : 256;

    return ring->buffers.queue || filch_buffers_init(&ring->buffers, ring->fd, count) == 0;
}

filch_buffers *filch_uring_buffers(filch_uring *ring)
{
    return &ring->buffers;
}

filch_uring *filch_uring_before(filch_uring *ring, filch_uring *others)
{
    ring->next = others;
    return ring;
}

filch_uring *filch_uring_next(filch_uring *ring)
{
    return ring->next;
}
