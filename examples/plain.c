/* SPDX-License-Identifier: MIT */
/* The same runtime without macros: fork, join, run, submit with functions and void pointers. */
#include <filch/filch.h>
#include <stdio.h>

/* A perfect binary tree in an array: node i has the children 2i + 1 and 2i + 2. */
enum { NODES = 1023 };
static int weight[NODES];

struct sum {
    int node;
    long result;
};

static void sum_tree(filch_frame *f, void *arg)
{
    struct sum *sum = arg;
    struct sum left = {2 * sum->node + 1, 0}, right = {2 * sum->node + 2, 0};

    if (right.node < NODES) {
        filch_frame *mark = f;
        f = filch_fork(f, sum_tree, &left); /* another worker may run it */
        sum_tree(f, &right);
        filch_join(f, mark); /* now left.result is valid */
    }
    sum->result = weight[sum->node] + left.result + right.result;
}

static void print(filch_frame *f, void *arg)
{
    (void)f;
    printf("submitted: %s\n", (const char *)arg);
}

int main(void)
{
    filch_pool *pool;
    int err = filch_pool_create(&pool, NULL);
    if (err) {
        fprintf(stderr, "no pool: %s\n", filch_strerror(err));
        return 1;
    }
    for (int i = 0; i < NODES; i++)
        weight[i] = i;

    struct sum whole = {0, 0};
    err = filch_run(pool, sum_tree, &whole); /* returns when the task is complete */
    printf("sum: %ld\n", whole.result);

    if (!err)
        err = filch_submit(pool, print, "hello"); /* returns at once */
    if (!err)
        err = filch_pool_destroy(pool); /* waits for submitted tasks */
    return err ? 1 : 0;
}
