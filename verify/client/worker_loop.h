/* SPDX-License-Identifier: MIT */
/*
 * The loop of a worker (src/worker/steps.h) as a part of the client, which may call its static
 * functions.
 */
#ifndef CLIENT_WORKER_LOOP_H
#define CLIENT_WORKER_LOOP_H

#include "worker/bed.c"
#include "worker/find.c"
#include "worker/look.c"
#include "worker/run.c"
#include "worker/shortage.c"
#include "worker/spare.c"
#include "worker/stolen.c"
#include "worker/thief.c"
#include "worker/worker.c"

#endif
