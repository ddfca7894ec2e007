/* SPDX-License-Identifier: MIT */
/*
 * The clients of the two BWoS deques: client/deque.h, with blocks of a given size and number. They
 * also check the promises about thieves that find nothing, or that stop.
 *
 *     #define DEQUE bwos_lifo
 *     #define DEQUE_HEADER <filch/deque/bwos_lifo.h>
 *     #include "client/bwos.h"
 *
 * ASKING: EMPTY is only a question. The first thief begins at `>` of the script. If it finds
 * nothing, it says so, and the owner waits for that at `?`. After the owner's next call the thief
 * tries again. It then finds an entry, unless the deque was empty meanwhile or an entry was stolen.
 * If that call is the last, and the only one since the thief began, the thief gets all entries.
 *
 * A thief that tries twice steals until it finds nothing, and then asks. These scripts test the
 * thief's memory: for example, that a block is past.
 *
 * The thief also finds an entry while the owner goes on popping and pushing. Some facts reach the
 * thief only by [closed] and [went-on]. Testing that takes scripts of a length of which not all can
 * be run. `only` names the ones that are.
 *
 * STOPPED: thieves may stop for ever, anywhere. They keep only the entries that they have stolen.
 * When the owner has popped the rest, the deque has its full capacity.
 */
#ifndef VERIFY_CLIENT_BWOS_H
#define VERIFY_CLIENT_BWOS_H

static unsigned size_of_blocks, number_of_blocks;

#define DEQUE_HAS_BATCH
#define DEQUE_INIT(d, capacity, start)                                                             \
    NAME(DEQUE, init_blocks_at)(d, size_of_blocks, number_of_blocks, start)
#include "client/deque.h"

typedef enum subject_of { PLAIN, ASKING, STOPPED } subject_of;

typedef struct shape {
    subject_of subject;
    unsigned size, count;
    family family;
} shape;

/* The capacity is the number of entries that fit, whatever thieves do. */
#define SHAPE(subject, size, count, ...)                                                           \
    {                                                                                              \
        subject, size, count,                                                                      \
        {                                                                                          \
            __VA_ARGS__, .capacity = (count - 1) * size + 1                                        \
        }                                                                                          \
    }

/* ---- thieves that ask ------------------------------------------------------------------------ */

static filch_atomic_u32 begun, told, answered;
static int least = ENTRIES_MAX; /* the fewest entries left since the thief began; owner */
static bool is_starved;         /* the thief found nothing, after an answer */
static bool is_drained;         /* the thief took all entries after one */

static void await(filch_atomic_u32 *word)
{
    while (filch_load_acquire(word) == 0)
        filch_pause();
}

static void asked_owner(void)
{
    bool is_begun = false, is_asked = false;

    for (const char *c = script; *c; c++) {
        if (*c == '>') {
            filch_store_release(&begun, 1);
            is_begun = true;
            continue;
        }
        if (*c == '?') {
            await(&told);
            is_asked = true;
            continue;
        }
        if (*c == 'p')
            push();
        else
            pop();
        if (is_begun && newest - oldest < least)
            least = newest - oldest;
        if (is_asked)
            filch_store_release(&answered, 1);
        is_asked = false;
    }
}

static void asking_thief(void)
{
    const char *end = script + strlen(script);
    unsigned lost;
    entry *e;

    await(&begun);
    do {
        lost = losses[1];
        e = steal(1, NULL);
    } while (lost != losses[1] || (e && now->tries > 1));
    filch_store_release(&told, 1);
    if (e)
        return;
    await(&answered);
    lost = losses[1];
    e = steal(1, NULL);
    is_starved = !e && lost == losses[1];
    if (end[-2] == '?' && (end[-3] == '>' || now->tries > 1)) {
        while (steal(1, NULL) || lost != losses[1])
            lost = losses[1];
        is_drained = true;
    }
}

static void asking_finish(void)
{
    bool is_stolen = false;

    for (int i = 0; i < pushed; i++) {
        mc_check(!is_drained || entries[i].taken == entries[i].is_in, "an answer is all there is");
        is_stolen |= entries[i].thief != 0;
    }
    mc_check(!is_starved || least == 0 || is_stolen, "a thief that has asked finds something");
    finish();
}

/* ---- thieves that stop ----------------------------------------------------------------------- */

static void stopping_thief(void)
{
    mc_may_crash();
    thief();
}

static void stopped_finish(void)
{
    unsigned batch = now->batch > 0 ? now->batch : 1, lost = 0, stopped = 0;
    int capacity = (int)(size_of_blocks * number_of_blocks);

    while (pop())
        ;
    for (int i = 0; i < pushed; i++)
        lost += entries[i].taken != entries[i].is_in;
    for (int i = 0; lost > 0 && i < (int)now->thieves; i++)
        stopped += mc_has_crashed(2 + i);
    mc_check(lost <= stopped * batch, "a thief takes no more along than it has stolen");

    for (int i = 0; i <= capacity; i++)
        push();
    mc_check(newest - oldest == capacity, "there is room for all, and no more");
    while (pop())
        capacity--;
    mc_check(capacity == 0, "all of them are there");
    deque_fini(&deque);
}

/* ---- scripts --------------------------------------------------------------------------------- */

static void run_other(subject_of subject, mc_options options, const char *name, mc_result *total)
{
    bool is_asking = subject == ASKING;
    char full_name[80];
    mc_program program = {
        .name = full_name,
        .setup = setup,
        .threads = {is_asking ? asked_owner : owner, is_asking ? asking_thief : stopping_thief},
        .finish = is_asking ? asking_finish : stopped_finish};

    if (now->thieves == 2)
        program.threads[2] = is_asking ? thief : stopping_thief;
    snprintf(full_name, sizeof full_name, "%s %s", name, script);
    mc_run_and_add(total, &program, &options);
}

/* The thief begins before any one of the calls, and up to two calls pass before the owner hears
 * it. */
static void run_questions(const char *calls, mc_options options, const char *name, mc_result *total)
{
    int length = (int)strlen(calls);
    static char text[LENGTH_MAX + 3];

    script = text;
    for (int begin = 0; begin < length; begin++) {
        for (int ask = begin; ask < length && ask <= begin + 2; ask++) {
            snprintf(text, sizeof text, "%.*s>%.*s?%s", begin, calls, ask - begin, calls + begin,
                     calls + ask);
            run_other(ASKING, options, name, total);
        }
    }
}

static int run_shape(const shape *s, mc_options options)
{
    char name[64], calls[LENGTH_MAX + 1] = "";
    mc_result total = {.name = name};
    unsigned length = options.is_long ? now->long_length : now->length;

    snprintf(name, sizeof name, TEXT(DEQUE) " %s %ux%u", now->name, now->thieves, now->tries);
    options.check_leaks = true;
    script = now->only;
    if (now->only)
        run_other(s->subject, options, name, &total);
    for (unsigned bits = 0; !now->only && bits < 1u << length && total.verdict != MC_FAILED;
         bits++) {
        for (unsigned i = 0; i < length; i++)
            calls[i] = bits >> (length - 1 - i) & 1 ? 't' : 'p';
        script = calls;
        if (s->subject == ASKING)
            run_questions(calls, options, name, &total);
        else
            run_other(s->subject, options, name, &total);
    }
    return mc_report(total);
}

static int check_shapes(const deque_promise *kind, const shape *shapes, size_t shape_count,
                        int argc, char **argv)
{
    int code = 0;

    promise = kind;
    for (size_t i = 0; i < shape_count && code == 0; i++) {
        size_of_blocks = shapes[i].size;
        number_of_blocks = shapes[i].count;
        now = &shapes[i].family;
        if (shapes[i].subject == PLAIN)
            code = check_deque(kind, now, 1, argc, argv);
        else
            code = run_shape(&shapes[i], mc_arguments(argc, argv));
    }
    return code;
}

#endif
