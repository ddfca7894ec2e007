/* SPDX-License-Identifier: MIT */
/*
 * A wire: bytes with a pattern that go through a pipe, a socket pair or a connection. Each byte
 * that was sent arrives once and in order, or is still in the kernel.
 */
#ifndef FILCH_TEST_ATTACK_WIRE_H
#define FILCH_TEST_ATTACK_WIRE_H

#include "attack.h"

typedef struct wire {
    int in, out; /* the ends to read from and to write to; -1: closed */
    bool is_socket;
    uint64_t seed;
    uint64_t sent, received; /* each is written by one side */
    bool is_unsure;          /* a call that transfers all bytes has failed in the middle */
} wire;

/* Make a pipe or a socket pair, blocking or not. */
void wire_open(wire *w, actor *a);

/* Send `bytes` bytes by calls of all kinds, until that is done or a call fails. Then close the
 * end. */
void wire_send(filch_frame *f, actor *a, wire *w, size_t bytes);

/* Receive by calls of all kinds until the end of the bytes. False: given up before, after a
 * cancellation or too many errors. */
bool wire_receive(filch_frame *f, actor *a, wire *w);

/* Read what is left, until the sender has closed its end. */
void wire_finish(filch_frame *f, wire *w);

/* Close the wire, and check the counts. Both sides have ended. */
void wire_close(wire *w);

/* Check bytes that were received, and count them. */
void wire_check(wire *w, const unsigned char *bytes, size_t count);

/* Fill a buffer with the bytes from `at` on. */
void wire_fill(const wire *w, uint64_t at, unsigned char *bytes, size_t count);

#endif
