/* SPDX-License-Identifier: MIT */
/* Sort words by length, stably, so equal lengths keep their order; then sort a million numbers. */
#include <filch/filch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_length(const void *a, const void *b, void *context)
{
    size_t x = strlen(*(const char *const *)a), y = strlen(*(const char *const *)b);
    (void)context;
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b, void *context)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    (void)context;
    return (x > y) - (x < y);
}

FILCH_TASK(void, sort_words, (const char **, words), (size_t, count))
{
    filch_sort_stable(FILCH_HERE, words, count, sizeof *words, by_length, NULL);
}

int main(void)
{
    enum { COUNT = 1000000 };
    const char *words[] = {"he",  "who",  "steals", "work", "from",
                           "the", "busy", "is",     "a",    "friend"};
    unsigned *numbers = malloc(COUNT * sizeof *numbers);
    filch_pool *pool;
    if (!numbers || filch_pool_create(&pool, NULL))
        return 1;

    FILCH_RUN(pool, sort_words, words, sizeof words / sizeof *words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        printf("%s ", words[i]);
    puts("");

    numbers[0] = 1;
    for (size_t i = 1; i < COUNT; i++)
        numbers[i] = numbers[i - 1] * 1664525u + 1013904223u;
    filch_pool_sort(pool, numbers, COUNT, sizeof *numbers, by_value, NULL);
    size_t inversions = 0;
    for (size_t i = 1; i < COUNT; i++)
        inversions += numbers[i - 1] > numbers[i];
    printf("%d numbers, %zu out of order\n", COUNT, inversions);

    free(numbers);
    return filch_pool_destroy(pool);
}
