/* SPDX-License-Identifier: MIT */
/*
 * One execution after the other: restore the program's memory, run threads one at a time, judge the
 * end.
 */
#include "mc/engine.h"
#include "mc/libc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <ucontext.h>

#undef abort
#undef malloc
#undef free
#undef memcpy
#undef memset
#undef clock_gettime

MC_KEEP engine mc;

extern char __data_start[], _end[], __start_mc_keep[], __stop_mc_keep[];

void mc_fatal(const char *what, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "mc: %s: %s: ", mc.program ? mc.program->name : "?", what);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

/* ---- failures -------------------------------------------------------------------------------- */

__attribute__((noinline)) void mc_failed(const char *failure)
{
    __asm__ volatile("" : : "r"(failure) : "memory");
}

static void set_failure(const char *format, va_list arguments)
{
    mc.outcome = FAILED;
    vsnprintf(mc.result.failure, sizeof mc.result.failure, format, arguments);
    if (mc.is_traced)
        mc_failed(mc.result.failure);
}

void mc_fail(const char *format, ...)
{
    va_list arguments;

    if (!mc.current)
        mc_fatal("client", "a check that does not hold, outside of an execution: %s", format);
    mc.failure_pc[0] = mc.failure_pc[1] = NULL;
    va_start(arguments, format);
    set_failure(format, arguments);
    va_end(arguments);
    mc_leave();
}

void mc_fail_at(const void *pc, const void *other_pc, const char *format, ...)
{
    va_list arguments;

    mc.failure_pc[0] = pc;
    mc.failure_pc[1] = other_pc;
    va_start(arguments, format);
    set_failure(format, arguments);
    va_end(arguments);
    mc_leave();
}

void mc_abort(const char *file, int line)
{
    mc_fail("%s:%d: T%d calls abort()", file, line, mc_self());
}

/* assert() calls this. */
void __assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
    mc_fail("%s:%u: assertion in %s: %s", file, line, function, text);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;

    if (!mc.current) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    mc_fail_at((void *)(at->uc_mcontext.gregs[REG_RIP] + 1), NULL, "T%d: %s at {0}, address %p",
               mc.current->id, strsignal(number), info->si_addr);
}

static void catch_signals(void)
{
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    stack_t stack = {.ss_size = 256 << 10, .ss_sp = mc_reserve(256 << 10)};
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

    sigaltstack(&stack, NULL);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- static variables ------------------------------------------------------------------------ */

static MC_KEEP char *snapshot;

static void save_statics(void)
{
    memcpy(snapshot, __data_start, (size_t)(_end - __data_start));
}

static void restore_statics(void)
{
    size_t below = (size_t)(__start_mc_keep - __data_start),
           above = (size_t)(_end - __stop_mc_keep);

    memcpy(__data_start, snapshot, below);
    memcpy(__stop_mc_keep, snapshot + (__stop_mc_keep - __data_start), above);
}

/* ---- one execution --------------------------------------------------------------------------- */

static void run_thread(void *fn)
{
    ((void (*)(void))(uintptr_t)fn)();
}

static void run_program(void *unused)
{
    const mc_program *program = mc.program;
    int ids[MC_THREADS_MAX], count = 0;

    (void)unused;
    if (program->setup)
        program->setup();
    while (count < MC_THREADS_MAX && program->threads[count]) {
        ids[count] = mc_spawn(run_thread, (void *)(uintptr_t)program->threads[count]);
        count++;
    }
    for (int i = 0; i < count; i++)
        mc_join(ids[i]);
    if (program->finish)
        program->finish();
}

static void reset(void)
{
    size_t offset;

    for (int i = 0; i < mc.thread_count; i++)
        if (mc.threads[i].now.hb[i] > mc.base_clock)
            mc.base_clock = mc.threads[i].now.hb[i];
    mc_shadow_reset_clocks();
    for (unsigned i = 1; i <= mc.location_count; i++)
        if (mc_offset(mc.locations[i].address, &offset))
            memset(mc_location_ids(offset), 0, mc.locations[i].size * sizeof(uint16_t));
    mc.location_count = 0;
    restore_statics();
    mc_heap_reset();
    mc_explore_rewind();
    mc_trace_reset();
    mc.thread_count = 0;
    mc.step_count = 0;
    mc.sc = NULL;
    mc.has_sc_fence = false;
    mc.asleep = 0;
    mc.fingerprint = 0;
    mc.result.failure[0] = '\0';
    mc.outcome = RUNNING;
}

/* Let every thread run up to its next operation. */
static void settle(void)
{
    for (int i = 0; i < mc.thread_count && mc.outcome == RUNNING; i++) {
        if (mc.threads[i].state != THREAD_LOCAL)
            continue;
        mc_thread_resume(&mc.threads[i]);
        i = -1;
    }
}

static void crash(thread *t)
{
    t->state = THREAD_CRASHED;
    mc_trace(t, t->op.site, "dies");
    mc_commit(t, &(deed){.kind = OP_CRASH, .effects = WRITES});
}

/* Write ", T1 sleeps at ..." for each thread that has not ended. */
static void describe_waiting(char *text, size_t size)
{
    char *const end = text + size;

    *text = '\0';
    for (int i = 0; i < mc.thread_count && text < end; i++) {
        const thread *t = &mc.threads[i];
        const mc_site *site = &t->op.site;
        if (t->state >= THREAD_ENDED)
            continue;
        mc.failure_pc[i] = site->pc;
        if (t->op.kind == OP_JOIN)
            text += snprintf(text, (size_t)(end - text), ", T%d joins T%d", i, t->op.target);
        else if (site->pc)
            text += snprintf(text, (size_t)(end - text), ", T%d sleeps at {%d}", i, i);
        else
            text += snprintf(text, (size_t)(end - text), ", T%d spins at %s:%d", i, site->file,
                             site->line);
    }
}

__attribute__((format(printf, 1, 2))) static void fail_at_end(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set_failure(format, arguments);
    va_end(arguments);
}

/* No thread can go on. */
static void judge_end(void)
{
    bool has_ended = true, may_time_out = false, is_spinning = false, is_asleep = false;
    char text[240];

    for (int i = 0; i < mc.thread_count; i++) {
        const thread *t = &mc.threads[i];
        has_ended &= t->state >= THREAD_ENDED;
        is_asleep |= t->state == THREAD_BLOCKED;
        may_time_out |= t->state == THREAD_BLOCKED && t->has_timeout;
        is_spinning |= t->state == THREAD_AT_OPERATION && t->op.kind == OP_PAUSE;
    }
    mc.outcome = may_time_out ? BLOCKED : COMPLETE;
    mc.failure_pc[0] = mc.failure_pc[1] = NULL;
    if (has_ended && mc.options.check_leaks && mc_heap_leaks(text, sizeof text))
        fail_at_end("%s", text);
    if (has_ended || may_time_out || mc.options.allow_deadlock)
        return;
    if (is_asleep && !is_spinning && mc.options.may_rest && mc.options.may_rest())
        return;
    describe_waiting(text, sizeof text);
    if (is_asleep || !is_spinning)
        fail_at_end("deadlock or lost wake-up%s, and nobody else is left", text);
    else
        fail_at_end("livelock%s, and nobody else is left", text);
}

static void run_execution(void)
{
    reset();
    mc_thread_start(run_program, NULL);
    for (;;) {
        unsigned enabled = 0;
        settle();
        if (mc.outcome != RUNNING)
            return;
        for (int i = 0; i < mc.thread_count; i++)
            enabled |= (unsigned)mc_is_enabled(&mc.threads[i]) << i;
        if (!enabled) {
            judge_end();
            return;
        }
        int t = mc_pick_thread(enabled);
        if (t < 0) {
            mc.outcome = BLOCKED;
            return;
        }
        if (mc.threads[t].may_crash && mc_pick(2) == 1)
            crash(&mc.threads[t]);
        else
            mc_thread_resume(&mc.threads[t]);
    }
}

/* ---- all executions
 * ---------------------------------------------------------------------------- */

static void init(void)
{
    static MC_KEEP bool is_done;

    if (is_done)
        return;
    is_done = true;
    mc_heap_init();
    mc_threads_init();
    catch_signals();
    mc.locations = mc_reserve((UINT16_MAX + 1) * sizeof *mc.locations);
    mc.steps = mc_reserve(MC_STEPS_MAX * sizeof *mc.steps);
    snapshot = mc_reserve((size_t)(_end - __data_start) + 1);
}

/* CPU time: the machine may be busy with other work. */
static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_limit_reached(double since)
{
    const mc_options *o = &mc.options;
    uint64_t count = mc.result.executions + mc.result.blocked;

    return (o->max_executions && count >= o->max_executions) ||
           (o->max_seconds > 0 && count % 64 == 0 && seconds() - since >= o->max_seconds);
}

/* Returns false when the search is over. */
static bool count_execution(double since)
{
    mc.result.events += mc.step_count;
    if (mc.result.threads < (unsigned)mc.thread_count - 1)
        mc.result.threads = (unsigned)mc.thread_count - 1;
    if (mc.outcome == BLOCKED)
        mc.result.blocked++;
    else
        mc.result.executions++;
    if (mc.outcome == FAILED) {
        mc.result.verdict = MC_FAILED;
        return false;
    }
    if (mc.outcome == COMPLETE && mc.options.each)
        mc.options.each(mc_fingerprint());
    if (is_limit_reached(since)) {
        mc.result.verdict = MC_STOPPED;
        return false;
    }
    return true;
}

/* Returns false if bounded search has met an unknown shared word, and must begin again. */
static bool explore(unsigned preemptions)
{
    const unsigned known_count = mc_share_count();
    const bool is_last = mc.options.mode == MC_BOUNDED && preemptions == mc.options.preemptions;
    bool is_complete = true;
    double since = seconds() - mc.result.seconds;
    uint64_t runs = mc.options.runs ? mc.options.runs : 1000;
    bool has_more;

    mc_explore_begin(preemptions);
    do {
        run_execution();
        has_more = count_execution(since);
        is_complete = !is_last || mc.result.verdict != MC_OK || mc_share_count() == known_count;
        if (has_more && is_complete)
            has_more = mc.options.mode == MC_RANDOM ? --runs > 0 : mc_explore_next();
    } while (has_more && is_complete);
    mc.result.seconds = seconds() - since;
    return is_complete;
}

/* Few preemptions first: they find most failures. The last search must know all shared words from
 * its start. */
static void explore_bounded(void)
{
    mc_share_begin();
    for (unsigned p = 0; p <= mc.options.preemptions && mc.result.verdict == MC_OK; p++)
        while (!explore(p))
            ;
}

/* Run one execution again, with its trace. */
static void show(const char *choices)
{
    bool is_reduced = mc.is_reduced;

    mc.is_reduced = false;
    mc.is_traced = !mc.options.quiet;
    mc_explore_begin(0);
    mc_replay(choices);
    run_execution();
    if (mc.is_traced) {
        mc_resolve_failure();
        mc_print_trace();
    }
    mc.is_traced = false;
    mc.is_reduced = is_reduced;
}

static void repeat_failure(void)
{
    char failure[sizeof mc.result.failure];

    memcpy(failure, mc.result.failure, sizeof failure);
    mc.result.choices = mc_choices();
    if (mc.options.quiet)
        return;
    show(mc.result.choices);
    if (mc.outcome != FAILED)
        mc_fatal("client", "the program is not deterministic: a failure (%s) cannot be repeated",
                 failure);
    printf("found:  %s, execution %llu\n", mc.program->name,
           (unsigned long long)(mc.result.executions + mc.result.blocked));
    printf("again:  MC_REPLAY='%s:%s'\n\n", mc.program->name, mc.result.choices);
    fflush(stdout);
}

/* False: the replay is of another program. */
static bool replay(void)
{
    size_t length = strlen(mc.program->name);

    mc.result.verdict = MC_SKIPPED;
    if (strncmp(mc.options.replay, mc.program->name, length) != 0 ||
        mc.options.replay[length] != ':')
        return false;
    show(mc.options.replay + length + 1);
    mc.result.executions = 1;
    mc.result.verdict = mc.outcome == FAILED ? MC_FAILED : MC_OK;
    return true;
}

/* Programs are dealt out by their number, so that each is in exactly one part. */
static bool is_in_other_part(const mc_options *options)
{
    static MC_KEEP uint64_t count;
    uint64_t number = count++;

    return options->parts && number % options->parts != options->part - 1;
}

mc_result mc_run(const mc_program *program, const mc_options *options)
{
    if (is_in_other_part(options))
        return (mc_result){.name = program->name, .options = *options, .verdict = MC_SKIPPED};
    init();
    free(mc.result.choices);
    mc.program = program;
    mc.options = *options;
    mc.result = (mc_result){.name = program->name, .options = *options, .programs = 1};
    mc.is_reduced = options->mode == MC_FULL && !options->no_reduction && !options->replay;
    mc.has_places = options->mode == MC_FULL;
    save_statics();
    if (options->replay)
        replay();
    else if (options->mode == MC_BOUNDED)
        explore_bounded();
    else
        explore(0);
    if (mc.result.verdict == MC_FAILED && !options->replay)
        repeat_failure();
    restore_statics();
    if (mc.result.verdict == MC_OK && mc.result.executions == 0) {
        mc.result.verdict = MC_FAILED;
        snprintf(mc.result.failure, sizeof mc.result.failure,
                 "nothing was checked: no execution came to its end (are time-outs missing?)");
    }
    return mc.result;
}

/* ---- calls of the library to the system ------------------------------------------------------ */

bool mc_may_fault(unsigned what)
{
    thread *t = mc.current;

    if (!t || t->faults == 0 || (mc.options.fault_kinds && !(mc.options.fault_kinds >> what & 1)) ||
        (t->id == 0 && mc.options.is_setup_sound))
        return false;
    if (t->faults != MC_ALWAYS) {
        /* Faults are rare in random walks: otherwise the walks would not come far. */
        if (mc_pick(mc.options.mode == MC_RANDOM ? 12 : 2) != 1)
            return false;
        t->faults--;
    }
    mc_trace(t, (mc_site){0}, "the next call fails");
    return true;
}

typedef struct start {
    void *(*main)(void *);
    void *argument;
} start;

static void run_start(void *argument)
{
    const start *s = argument;
    s->main(s->argument);
}

int mc_thread_create(pthread_t *id, void *(*main)(void *), void *argument)
{
    start *s = mc_scratch(sizeof *s);

    *s = (start){main, argument};
    mc_plain((uintptr_t)id, sizeof *id, PLAIN_WRITE, __builtin_return_address(0));
    *id = (pthread_t)mc_spawn(run_start, s);
    return 0;
}

int mc_thread_join(pthread_t id)
{
    mc_join((int)id);
    return 0;
}

/* Each thread has its own clock: a common one would order events that are independent. */
uint64_t mc_clock(void)
{
    thread *t = mc.current;

    if (!t)
        return 0;
    t->clock_ns += mc.options.clock_step_ns ? mc.options.clock_step_ns : 25000;
    return t->clock_ns;
}

int mc_clock_gettime(struct timespec *now)
{
    uint64_t ns = mc_clock();

    mc_plain((uintptr_t)now, sizeof *now, PLAIN_WRITE, __builtin_return_address(0));
    *now = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    return 0;
}
