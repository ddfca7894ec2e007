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
 *
 * STATES: owner and thieves begin in every state that calls, one after the other, lead to. Two
 * states are the same if they differ only in the numbers of rounds and tags, and in the first block
 * of the ring. So short scripts show what two thieves do anywhere. All threads know the beginning,
 * so reads of values older than that need the scripts that begin with an empty deque. Here EMPTY is
 * checked, too: no steal returns it while a block that was granted as a whole has entries.
 */
#ifndef VERIFY_CLIENT_BWOS_H
#define VERIFY_CLIENT_BWOS_H

static unsigned size_of_blocks, number_of_blocks;

#define DEQUE_HAS_BATCH
#define DEQUE_HAS_TAKE
#define DEQUE_INIT(d, capacity, start)                                                             \
    NAME(DEQUE, init_blocks_at)(d, size_of_blocks, number_of_blocks, start)
#include "client/deque.h"

typedef enum subject_of { PLAIN, ASKING, STOPPED, STATES } subject_of;

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

/* ---- thieves in every state ------------------------------------------------------------------ */

#define STATES_MAX 3000
#define WORDS_MAX 40   /* that describe a state */
#define BEFORE_MAX 31u /* calls that lead to it */

typedef struct state {
    char calls[BEFORE_MAX + 1];
    int64_t words[WORDS_MAX];
    unsigned word_count;
} state;

static MC_KEEP state states[STATES_MAX];
static MC_KEEP unsigned state_count;

/* Each kind defines this: describe the deque, which no thread uses now, by calls of `note`. */
static void describe(void);

/* Each kind defines this: note the owner's positions. Called before the threads start, and after
 * each call of the owner. */
static void note_position(void);

/* Each kind defines this; called after the threads. Before they started, the owner had granted
 * whole blocks. Is there an entry in one of these that the owner has not reclaimed since? */
static bool is_block_granted(void);

static void note(int64_t word)
{
    state *s = &states[state_count];

    mc_check(s->word_count < WORDS_MAX, "there is room for a state");
    s->words[s->word_count++] = word;
}

/* How far `position` is behind `from`; negative: before it. */
static int64_t distance_from(uint64_t from, uint64_t position)
{
    return filch_bwos_is_after(from, position)
               ? -(int64_t)filch_bwos_distance(&deque.ring, position, from)
               : (int64_t)filch_bwos_distance(&deque.ring, from, position);
}

/* The block that `position` uses. */
static void note_block(uint64_t position)
{
    filch_bwos_block *b = filch_bwos_block_at(&deque.ring, position);
    /* relaxed: one thread. */
    uint64_t granted = filch_load_relaxed(&b->granted), head = filch_load_relaxed(&b->head);

    note((int64_t)(filch_bwos_round(granted) - filch_bwos_round(position)) /
         (int64_t)FILCH_BWOS_ONE);
    note((int64_t)filch_bwos_index(granted));
    note((int64_t)filch_bwos_index(head));
    note((int64_t)b->head_seen);
}

static void describe_and_end(void)
{
    describe();
    deque_fini(&deque);
}

/* The state to which these calls lead, unless it is known. */
static void find_state(const char *calls, char last)
{
    state *found = &states[state_count], *s = states;
    const mc_options options = {.mode = MC_FULL};
    const mc_program program = {.name = "state", .setup = setup, .finish = describe_and_end};
    static char text[BEFORE_MAX + 2];
    static family one;

    if (state_count == STATES_MAX || strlen(calls) == BEFORE_MAX) {
        fprintf(stderr,
                "there are more states, or longer ways to them, than the client has room for\n");
        exit(2);
    }
    one = *now;
    one.before = text;
    now = &one;
    snprintf(text, sizeof text, "%s%c", calls, last);
    *found = (state){.word_count = 0};
    if (mc_run(&program, &options).verdict != MC_OK)
        exit(1);
    while (s < found && memcmp(s->words, found->words, sizeof s->words) != 0)
        s++;
    if (s < found)
        return;
    memcpy(found->calls, text, sizeof found->calls);
    state_count++;
}

static void find_states(void)
{
    const family *kept = now;

    state_count = 0;
    find_state("", '\0');
    for (unsigned i = 0; i < state_count; i++)
        for (const char *call = "ptx"; *call; call++) {
            now = kept;
            find_state(states[i].calls, *call);
        }
    now = kept;
}

static bool has_found_nothing[THIEVES_MAX + 1];

static void noted_setup(void)
{
    setup();
    note_position();
}

static void noted_owner(void)
{
    for (const char *c = script; *c; c++) {
        if (*c == 'p')
            push();
        else
            pop();
        note_position();
    }
}

static void noted_thief(void)
{
    const entry *last = NULL;
    int self = mc_self() - 1;

    for (unsigned i = 0; i < now->tries; i++) {
        unsigned lost = losses[self];
        const entry *e = steal(self, last);
        has_found_nothing[self] |= !e && lost == losses[self];
        last = e ? e : last;
    }
}

static void noted_finish(void)
{
    bool is_granted = is_block_granted();

    for (int i = 1; i <= (int)now->thieves; i++)
        mc_check(!is_granted || !has_found_nothing[i], "EMPTY: no block is granted as a whole");
    finish();
}

/* ---- scripts --------------------------------------------------------------------------------- */

static void run_other(subject_of subject, mc_options options, const char *name, mc_result *total)
{
    static const mc_program programs[] = {
        [ASKING] = {.setup = setup, {asked_owner, asking_thief, thief}, asking_finish},
        [STOPPED] = {.setup = setup, {owner, stopping_thief, stopping_thief}, stopped_finish},
        [STATES] = {.setup = noted_setup, {noted_owner, noted_thief, noted_thief}, noted_finish},
    };
    mc_program program = programs[subject];
    char full_name[120];

    program.name = full_name;
    if (now->thieves == 1)
        program.threads[2] = NULL;
    snprintf(full_name, sizeof full_name, "%s %s%s%s", name, subject == STATES ? now->before : "",
             subject == STATES ? "|" : "", script);
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

/* The script, beside two thieves, in every state. */
static void run_states(mc_options options, const char *name, mc_result *total)
{
    static family one;

    one = *now;
    for (unsigned i = 0; i < state_count && total->verdict != MC_FAILED; i++) {
        one.before = states[i].calls;
        now = &one;
        run_other(STATES, options, name, total);
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
    if (s->subject == STATES)
        find_states();
    if (now->only)
        run_other(s->subject, options, name, &total);
    for (unsigned bits = 0; !now->only && bits < 1u << length && total.verdict != MC_FAILED;
         bits++) {
        for (unsigned i = 0; i < length; i++)
            calls[i] = bits >> (length - 1 - i) & 1 ? 't' : 'p';
        script = calls;
        if (s->subject == ASKING)
            run_questions(calls, options, name, &total);
        else if (s->subject == STATES)
            run_states(options, name, &total);
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
