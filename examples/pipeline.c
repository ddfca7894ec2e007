/* SPDX-License-Identifier: MIT */
/* A pipeline: lines are made in order, changed in parallel and printed in order. */
#include <ctype.h>
#include <errno.h>
#include <filch/filch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const text[] = {
    "while the strand of a token waits",
    "its worker goes on with something else",
    "",
    "so a stage is a plain function",
};

struct line {
    unsigned number;
    char text[64];
};

static int read_line(filch_frame *f, void *context, void **item)
{
    unsigned *next = context; /* this stage runs one item at a time */
    (void)f;

    if (*next == sizeof text / sizeof text[0])
        return FILCH_PIPELINE_END;
    struct line *line = malloc(sizeof *line);
    if (!line)
        return -ENOMEM;
    line->number = *next + 1;
    snprintf(line->text, sizeof line->text, "%s", text[(*next)++]);
    *item = line;
    return 0;
}

static int raise_letters(filch_frame *f, void *context, void **item)
{
    struct line *line = *item;
    (void)context;

    if (line->text[0] == '\0') { /* drop the item: no later stage sees it */
        free(line);
        *item = NULL;
        return 0;
    }
    for (char *c = line->text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    /* A stage may wait. Here the first lines wait longest, so later lines overtake them. */
    return filch_sleep_ns(f, 1000000 * (5 - line->number));
}

static int print_line(filch_frame *f, void *context, void **item)
{
    struct line *line = *item;
    (void)f;
    (void)context;

    printf("%u: %s\n", line->number, line->text);
    free(line);
    *item = NULL;
    return 0;
}

/* Frees the items in flight when a stage fails. */
static void free_line(void *context, void *item)
{
    (void)context;
    free(item);
}

int main(void)
{
    unsigned next = 0;
    const filch_stage stages[] = {
        {.fn = read_line, .context = &next, .width = 1},
        {.fn = raise_letters}, /* any number of items at once */
        {.fn = print_line, .width = 1, .is_ordered = true},
    };
    const filch_pipeline_options options = {
        .size = sizeof options, .token_limit = 8, .discard = free_line};
    filch_pool *pool;

    int err = filch_pool_create(&pool, NULL);
    if (err)
        return 1;
    err = filch_pipeline_run(NULL, pool, stages, 3, &options);
    if (err)
        fprintf(stderr, "pipeline: %s\n", filch_strerror(err));
    filch_pool_destroy(pool);
    return err ? 1 : 0;
}
