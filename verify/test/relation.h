/* SPDX-License-Identifier: MIT */
/*
 * Relations between the events of a small execution, as the axioms of memory models are written.
 */
#ifndef RELATION_H
#define RELATION_H

#include <stdbool.h>
#include <stdint.h>

#define EVENTS_MAX 32

typedef uint32_t set; /* of events */
typedef struct relation {
    set to[EVENTS_MAX];
} relation;

static unsigned event_count;

static bool has(set s, unsigned e)
{
    return s >> e & 1;
}

static relation either(relation a, relation b)
{
    for (unsigned e = 0; e < event_count; e++)
        a.to[e] |= b.to[e];
    return a;
}

static relation both(relation a, relation b)
{
    for (unsigned e = 0; e < event_count; e++)
        a.to[e] &= b.to[e];
    return a;
}

static relation except(relation a, relation b)
{
    for (unsigned e = 0; e < event_count; e++)
        a.to[e] &= ~b.to[e];
    return a;
}

/* [s] */
static relation only(set s)
{
    relation r = {{0}};

    for (unsigned e = 0; e < event_count; e++)
        r.to[e] = s & (set)1 << e;
    return r;
}

/* a? */
static relation maybe(relation a)
{
    return either(a, only(~(set)0));
}

/* a;b */
static relation then(relation a, relation b)
{
    relation r = {{0}};

    for (unsigned e = 0; e < event_count; e++)
        for (unsigned middle = 0; middle < event_count; middle++)
            if (has(a.to[e], middle))
                r.to[e] |= b.to[middle];
    return r;
}

#define THEN3(a, b, c) then(a, then(b, c))

static relation inverse(relation a)
{
    relation r = {{0}};

    for (unsigned e = 0; e < event_count; e++)
        for (unsigned to = 0; to < event_count; to++)
            if (has(a.to[e], to))
                r.to[to] |= (set)1 << e;
    return r;
}

/* a+ */
static relation closure(relation a)
{
    for (unsigned middle = 0; middle < event_count; middle++)
        for (unsigned e = 0; e < event_count; e++)
            if (has(a.to[e], middle))
                a.to[e] |= a.to[middle];
    return a;
}

static bool is_irreflexive(relation a)
{
    for (unsigned e = 0; e < event_count; e++)
        if (has(a.to[e], e))
            return false;
    return true;
}

static bool is_acyclic(relation a)
{
    return is_irreflexive(closure(a));
}

static bool is_empty(relation a)
{
    for (unsigned e = 0; e < event_count; e++)
        if (a.to[e])
            return false;
    return true;
}

#endif
