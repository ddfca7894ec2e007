/* SPDX-License-Identifier: MIT */
/*
 * The table of deque kinds, and how FILCH_DEQUE names them.
 */
#include "deque/adapt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFINE(d, ...) const filch_kind filch_##d##_kind = FILCH_KIND_ROW(d, __VA_ARGS__);
FILCH_KIND_ROWS(DEFINE)

/* Every deque of filch/deque.h has a row. */
#define ONE(...) +1
_Static_assert(0 FILCH_KIND_ROWS(ONE) == 0 FILCH_DEQUES(ONE), "one row per deque in adapt.h");

/* The split stack has no row: NULL. */
#define ENTRY(d, enumerator, ...) [enumerator] = &filch_##d##_kind,
static const filch_kind *const kinds[] = {[FILCH_DEQUE_SPLIT] = NULL, FILCH_KIND_ROWS(ENTRY)};

#define NAME(d, ...) ", " #d
const char filch_kind_names[] = "split" FILCH_KIND_ROWS(NAME);

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

bool filch_kind_find(filch_deque_kind which, const filch_kind **kind)
{
    if ((unsigned)which >= KIND_COUNT)
        return false;
    *kind = kinds[which];
    return true;
}

static bool find_name(const char *name, size_t length, const filch_kind **kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const char *known = kinds[i] ? kinds[i]->name : "split";
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return filch_kind_find((filch_deque_kind)i, kind);
    }
    return false;
}

/* ":123" at *text, or nothing. */
static bool parse_size(const char **text, size_t *size)
{
    char *end;

    if (**text == '\0')
        return true;
    if ((*text)[0] != ':' || (*text)[1] < '0' || (*text)[1] > '9')
        return false;
    errno = 0;
    *size = strtoull(*text + 1, &end, 10);
    *text = end;
    return errno == 0;
}

bool filch_kind_parse(const char *text, const filch_kind **kind, size_t *capacity, size_t *block)
{
    size_t length = strcspn(text, ":"), sizes[2] = {0, 0};
    const char *rest = text + length;
    const filch_kind *found;

    if (!find_name(text, length, &found) || !parse_size(&rest, &sizes[0]) ||
        !parse_size(&rest, &sizes[1]) || *rest != '\0')
        return false;
    *kind = found;
    *capacity = sizes[0];
    *block = sizes[1];
    return true;
}
