/* SPDX-License-Identifier: MIT */
/*
 * uts: count the nodes of an unbalanced tree (Olivier et al., LCPC 2006; the binomial kind). The
 * root has `size` children. Each subtree below it is one leaf or has up to tens of thousands of
 * nodes, unpredictably: only repeated stealing keeps all workers busy.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#if BENCH_FILCH

FILCH_TASK(long, visit, (uint64_t, node))
{
    visit_forked children[UTS_CHILDREN];
    long count = uts_child_count(node);
    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(children[i], visit, uts_child(node, i));

    long sum = 1;
    for (long i = count; i-- > 0;)
        sum += FILCH_JOIN_FROM(children[i], visit);
    return sum;
}

FILCH_TASK(long, visit_root, (long, count), (visit_forked *, children))
{
    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(children[i], visit, uts_child(UTS_SEED, i));

    long sum = 1;
    for (long i = count; i-- > 0;)
        sum += FILCH_JOIN_FROM(children[i], visit);
    return sum;
}

/* The handles of the root's children do not fit on its stack. */
static int compute(bench_run *run)
{
    visit_forked *children = malloc((size_t)run->size * sizeof *children);
    if (!children)
        return -ENOMEM;
    run->checksum = FILCH_RUN(run->pool, visit_root, run->size, children);
    free(children);
    return 0;
}

#else

static long visit(uint64_t node, long count)
{
    long sum = 1;
    for (long i = 0; i < count; i++) {
        uint64_t child = uts_child(node, i);
        sum += visit(child, uts_child_count(child));
    }
    return sum;
}

static int compute(bench_run *run)
{
    run->checksum = visit(UTS_SEED, run->size);
    return 0;
}

#endif

int bench_uts(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    int err = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;
    return err;
}
