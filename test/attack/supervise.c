/* SPDX-License-Identifier: MIT */
/*
 * Many seeds, one after another.
 */
#include "supervise.h"

#include <time.h>

#define JOBS_MAX 64
#define TELL_NS 30000000000ull
#define SLOW_NS 10000000000ull

static void print_parts_without(const settings *s, uint64_t all, FILE *out)
{
    const char *before = " --without ";
    bool has_faults = s->parts >> FIRST_FAULT;

    if (!has_faults) {
        fprintf(out, "%sfaults", before);
        before = ",";
    }
    for (unsigned i = 0; i < (has_faults ? PART_COUNT : FIRST_FAULT); i++)
        if ((all & ~s->parts) >> i & 1) {
            fprintf(out, "%s%s", before, part_names[i]);
            before = ",";
        }
}

void print_command(const run *r, const settings *s, FILE *out)
{
    uint64_t operations = (1ull << OPERATION_COUNT) - 1, chosen = s->parts & operations;
    bool is_few = __builtin_popcountll(chosen) < (int)OPERATION_COUNT / 2;
    const char *before = " --only ";

    fprintf(out, "%s --seed %llu --count 1", r->program, (unsigned long long)s->seed);
    for (unsigned i = 0; i < OPERATION_COUNT && is_few; i++)
        if (chosen >> i & 1) {
            fprintf(out, "%s%s", before, part_names[i]);
            before = ",";
        }
    if (has_part(s, PART_child) && (ATTACK_TSAN || ATTACK_ASAN))
        fprintf(out, " --with child");
    print_parts_without(s, ((1ull << PART_COUNT) - 1) & ~(is_few ? operations : 0), out);
    if (s->budget != DEFAULT_BUDGET)
        fprintf(out, " --budget %u", s->budget);
    if (s->depth != DEFAULT_DEPTH)
        fprintf(out, " --depth %u", s->depth);
    if (s->worker_limit < 1000)
        fprintf(out, " --workers %u", s->worker_limit);
    if (s->pool_limit < POOLS_MAX)
        fprintf(out, " --pools %u", s->pool_limit);
    if (s->thread_limit < 999)
        fprintf(out, " --threads %u", s->thread_limit + 1);
    if (s->loose_limit < 999)
        fprintf(out, " --submitted %u", s->loose_limit + 1);
    if (s->size_limit < 1000000)
        fprintf(out, " --size %u", s->size_limit);
    if (s->deque)
        fprintf(out, " --deque %s", s->deque);
    if (s->io)
        fprintf(out, " --io %s", s->io);
    for (unsigned i = 0; i < s->only_count; i++)
        fprintf(out, "%s%x", i ? "," : " --ops ", s->only[i]);
    fprintf(out, "\n");
}

/* ---- many seeds ------------------------------------------------------------------------------ */

typedef struct sums {
    uint64_t programs, failures, counts[PART_COUNT], errors;
} sums;

static void add_up(sums *all, const trial *t)
{
    all->programs++;
    for (unsigned i = 0; i < PART_COUNT; i++)
        all->counts[i] += get(&t->b->counts[i]);
    all->errors += get(&t->b->errors);
}

static uint64_t sum_of(const sums *all, unsigned from, unsigned to)
{
    uint64_t sum = 0;

    for (unsigned i = from; i < to; i++)
        sum += all->counts[i];
    return sum;
}

static void print_verdict(const run *r, const sums *all, uint64_t last_seed, double seconds)
{
    printf("attack: %llu programs in %.0f s (seeds %llu to %llu), %llu operations, "
           "%llu calls of the system made to fail, %llu errors returned\n",
           (unsigned long long)all->programs, seconds, (unsigned long long)r->first.seed,
           (unsigned long long)last_seed, (unsigned long long)sum_of(all, 0, OPERATION_COUNT),
           (unsigned long long)sum_of(all, FIRST_FAULT, PART_COUNT),
           (unsigned long long)all->errors);
    printf("attack: each kind:");
    for (unsigned i = 0; i < PART_COUNT; i++)
        if (all->counts[i])
            printf(" %s %llu", part_names[i], (unsigned long long)all->counts[i]);
    printf("\nattack: %s\n", all->failures
                                 ? "SOME WENT WRONG, see above"
                                 : "nothing was lost, doubled or leaked, and nothing hung");
}

static void report(const run *r, const trial *t)
{
    printf("\n");
    trial_print(t, stdout);
    printf("Repeat it by:\n  ");
    print_command(r, &t->s, stdout);
    printf("Make it smaller by --shrink %llu in place of --seed.\n\n",
           (unsigned long long)t->s.seed);
    fflush(stdout);
}

/* A line now and then; and one for each program that takes long. */
static void tell(const sums *all, const trial *trials, unsigned count)
{
    /* Read the clock here: a program may have been started since the caller read it. */
    uint64_t now_ns = filch_now_ns();

    printf("attack: %llu programs, %llu operations, %llu failures\n",
           (unsigned long long)all->programs, (unsigned long long)sum_of(all, 0, OPERATION_COUNT),
           (unsigned long long)all->failures);
    for (unsigned i = 0; i < count; i++)
        if (trials[i].child && now_ns - trials[i].start_ns > SLOW_NS)
            /* relaxed: for the report. */
            printf("attack: seed %llu runs for %llu s already, while %s\n",
                   (unsigned long long)trials[i].s.seed,
                   (unsigned long long)((now_ns - trials[i].start_ns) / 1000000000),
                   filch_load_relaxed(&trials[i].b->stage));
    fflush(stdout);
}

int run_seeds(run *r)
{
    static trial trials[JOBS_MAX];
    const struct timespec moment = {.tv_nsec = 2000000};
    uint64_t start_ns = filch_now_ns(), told_ns = start_ns, next_seed = r->first.seed;
    unsigned jobs = r->jobs < JOBS_MAX ? r->jobs : JOBS_MAX, running = 0;
    bool is_over = false;
    sums all = {0};

    while (!is_over || running > 0) {
        uint64_t now_ns = filch_now_ns();
        is_over |= r->count ? next_seed - r->first.seed >= r->count
                            : now_ns - start_ns > r->seconds * 1000000000ull;
        is_over |= all.failures && !r->keeps_going;
        for (unsigned i = 0; i < jobs; i++) {
            trial *t = &trials[i];
            if (!t->child && !is_over) {
                settings s = r->first;
                s.seed = next_seed++;
                trial_start(t, &s);
                running++;
                is_over |= r->count && next_seed - r->first.seed >= r->count;
            } else if (t->child && trial_poll(t, r->limit_s)) {
                running--;
                add_up(&all, t);
                all.failures += trial_has_failed(t);
                if (trial_has_failed(t))
                    report(r, t);
                if (r->prints)
                    trial_print_program(t, stdout);
                trial_end(t);
            }
        }
        if (now_ns - told_ns > TELL_NS) {
            told_ns = now_ns;
            tell(&all, trials, jobs);
        }
        nanosleep(&moment, NULL);
    }
    print_verdict(r, &all, next_seed - 1, (double)(filch_now_ns() - start_ns) / 1e9);
    return all.failures > 0;
}
