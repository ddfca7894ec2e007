/* SPDX-License-Identifier: MIT */
#include "record.h"

#include "attack.h"

/* ---- the program writes ---------------------------------------------------------------------- */

uint32_t record_add(uint32_t above, const char *name, unsigned number, uint32_t id)
{
    record *r = &the_board->record;

    if (above >= ENTRIES_MAX)
        return above;
    /* relaxed: the supervisor reads an entry whenever it is there. */
    uint32_t index = 1 + filch_fetch_add_relaxed(&r->count, 1);
    if (index < ENTRIES_MAX) {
        r->entries[index].above = above;
        r->entries[index].id = id;
        r->entries[index].number = number;
        r->entries[index].name = name;
    }
    return index;
}

void record_set(uint32_t index, enum entry_state state)
{
    if (index < ENTRIES_MAX)
        /* relaxed: as above. */
        filch_store_relaxed(&the_board->record.entries[index].state, state);
}

void record_note(uint32_t index, const char *name, uint64_t value)
{
    if (index >= ENTRIES_MAX)
        return;
    record_entry *e = &the_board->record.entries[index];
    /* relaxed: each note has its own place. */
    uint32_t at = filch_fetch_add_relaxed(&e->note_count, 1);
    if (at < NOTES_MAX)
        e->notes[at] = (struct note){name, value};
}

void name_actor(actor *a, const char *name, unsigned number)
{
    a->at = record_add(a->at, name, number, 0);
    a->is_named = true;
}

void actor_begins(actor *a)
{
    if (a->is_named)
        record_set(a->at, ENTRY_BEGUN);
}

void actor_ends(actor *a)
{
    if (a->is_named)
        record_set(a->at, ENTRY_ENDED);
}

void note(const actor *a, const char *name, uint64_t value)
{
    record_note(a->at, name, value);
}

void note_if(const actor *a, bool is_so, const char *name)
{
    if (is_so)
        record_note(a->at, name, NO_VALUE);
}

/* ---- the supervisor reads -------------------------------------------------------------------- */

typedef struct printer {
    const record *r;
    FILE *out;
    unsigned last, lines, lines_max;
    bool is_unended_only;
    uint32_t last_below[ENTRIES_MAX], next[ENTRIES_MAX], first_below[ENTRIES_MAX];
    bool is_shown[ENTRIES_MAX];
} printer;

static enum entry_state state_of(const record_entry *e)
{
    /* relaxed: the program has ended, or hangs. */
    return (enum entry_state)filch_load_relaxed((filch_atomic_u32 *)&e->state);
}

/* Whether an operation that contains this entry, or is it, has ended: then what it has started has
 * ended, too. An actor need not have run before its operation ends. */
static bool is_over(const record *r, uint32_t index)
{
    for (; index; index = r->entries[index].above)
        if (state_of(&r->entries[index]) == ENTRY_ENDED)
            return true;
    return false;
}

/* How many entries the program wanted. */
static unsigned wanted_of(const record *r)
{
    /* relaxed: as in state_of. */
    return filch_load_relaxed((filch_atomic_u32 *)&r->count);
}

/* Entries 1 to this are there. */
static unsigned last_of(const record *r)
{
    return wanted_of(r) < ENTRIES_MAX ? wanted_of(r) : ENTRIES_MAX - 1;
}

/* An actor that chose no operation is shown only while it has not ended, or if it has arguments. */
static bool is_of_interest(const printer *p, uint32_t index)
{
    const record_entry *e = &p->r->entries[index];
    bool has_ended = is_over(p->r, index);

    if (p->is_unended_only)
        return !has_ended;
    /* relaxed: as in state_of. */
    return e->id || !has_ended || filch_load_relaxed((filch_atomic_u32 *)&e->note_count) > 0;
}

/* Link each entry to those below it, in order. */
static void link_entries(printer *p)
{
    for (uint32_t i = 1; i <= p->last; i++) {
        uint32_t above = p->r->entries[i].above;
        if (!p->r->entries[i].name)
            continue;
        if (p->last_below[above])
            p->next[p->last_below[above]] = i;
        else
            p->first_below[above] = i;
        p->last_below[above] = i;
    }
    for (uint32_t i = p->last; i >= 1; i--)
        if (p->r->entries[i].name && (p->is_shown[i] || is_of_interest(p, i)))
            p->is_shown[i] = p->is_shown[p->r->entries[i].above] = true;
}

static void print_entry(const printer *p, uint32_t index)
{
    const record_entry *e = &p->r->entries[index];
    /* relaxed: as in state_of. */
    uint32_t count = filch_load_relaxed((filch_atomic_u32 *)&e->note_count);
    const char *before = e->id ? "" : " (";

    fprintf(p->out, "%s", e->name);
    if (e->number)
        fprintf(p->out, " %u", e->number);
    fprintf(p->out, "%s", e->id ? "(" : "");
    for (unsigned i = 0; i < count && i < NOTES_MAX; i++) {
        fprintf(p->out, "%s%s", before, e->notes[i].name ? e->notes[i].name : "?");
        before = ", ";
        if (e->notes[i].value != NO_VALUE)
            fprintf(p->out, " %llu", (unsigned long long)e->notes[i].value);
    }
    fprintf(p->out, "%s", e->id || count ? ")" : "");
}

static void print_below(printer *p, uint32_t above, int depth)
{
    for (uint32_t i = p->first_below[above]; i; i = p->next[i]) {
        const record_entry *e = &p->r->entries[i];
        bool is_leaf = true;
        if (!p->is_shown[i] || p->lines >= p->lines_max)
            continue;
        for (uint32_t k = p->first_below[i]; k; k = p->next[k])
            is_leaf &= !p->is_shown[k];
        fprintf(p->out, "%*s", 4 * depth, "");
        print_entry(p, i);
        fprintf(p->out, "%s%s\n", is_leaf ? ";" : " {",
                is_over(p->r, i)              ? ""
                : state_of(e) == ENTRY_CHOSEN ? "   <- did not begin"
                                              : "   <- did not end");
        p->lines++;
        if (is_leaf)
            continue;
        print_below(p, i, depth + 1);
        fprintf(p->out, "%*s}\n", 4 * depth, "");
        p->lines++;
    }
}

unsigned record_print(const record *r, bool is_unended_only, unsigned lines_max, FILE *out)
{
    printer *p = calloc(1, sizeof *p);
    unsigned lines;

    p->r = r;
    p->out = out;
    p->lines_max = lines_max;
    p->is_unended_only = is_unended_only;
    p->last = last_of(r);
    link_entries(p);
    print_below(p, 0, 1);
    if (p->lines >= lines_max)
        fprintf(out, "    ... there is more: only %u lines are shown\n", lines_max);
    if (wanted_of(r) >= ENTRIES_MAX)
        fprintf(out, "    ... the program went on: the record ends after %u entries\n",
                ENTRIES_MAX - 1);
    lines = p->lines;
    free(p);
    return lines;
}

unsigned record_operations(const record *r, bool is_unended_only, uint32_t *ids, unsigned count_max)
{
    unsigned count = 0, last = last_of(r);

    for (uint32_t i = 1; i <= last && count < count_max; i++)
        if (r->entries[i].id && !(is_unended_only && is_over(r, i)))
            ids[count++] = r->entries[i].id;
    return count;
}
