/* SPDX-License-Identifier: MIT */
/*
 * Output: an execution that failed, event by event, with a column for each thread; one line per
 * client.
 */
#include "mc/engine.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COLUMN 30
#define PLACE 24
#define SHOWN 150 /* events printed of a long execution */

typedef struct event {
    int tid;
    mc_site site;
    char text[200];
} event;

static MC_KEEP event *events;
static MC_KEEP unsigned event_count;

void mc_trace_reset(void)
{
    event_count = 0;
}

void mc_trace(const thread *t, mc_site site, const char *format, ...)
{
    va_list arguments;

    if (!mc.is_traced)
        return;
    if (!events)
        events = mc_reserve(2 * MC_STEPS_MAX * sizeof *events);
    if (event_count == 2 * MC_STEPS_MAX)
        return;
    event *e = &events[event_count++];
    e->tid = t->id;
    e->site = site;
    va_start(arguments, format);
    vsnprintf(e->text, sizeof e->text, format, arguments);
    va_end(arguments);
}

const char *mc_order_name(int order)
{
    static const char *const names[] = {"relaxed", "consume", "acquire",
                                        "release", "acq_rel", "seq_cst"};
    return names[order];
}

/* The text lives for four more calls. */
const char *mc_value_name(uint64_t value, uint32_t size)
{
    static MC_KEEP char texts[4][24];
    static MC_KEEP unsigned next;
    char *text = texts[next++ % 4];
    int64_t sign_extended = (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);

    if (sign_extended > -1000 && sign_extended < 1000000)
        snprintf(text, sizeof texts[0], "%lld", (long long)sign_extended);
    else
        snprintf(text, sizeof texts[0], "0x%llx", (unsigned long long)value);
    return text;
}

/* ---- from instructions to lines -------------------------------------------------------------- */

static int get_load_address(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    *(uintptr_t *)address = info->dlpi_addr;
    return 1;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "file.c:12" of the instruction before a return address, from addr2line. For wrappers around a
 * system call, the place of their caller. */
static void find_line(const void *pc, char *place, size_t size)
{
    uintptr_t base = 0;
    char command[4200], line[1024], exe[3000];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);

    snprintf(place, size, "%p", pc);
    if (!pc || length < 0)
        return;
    exe[length] = '\0';
    dl_iterate_phdr(get_load_address, &base);
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", exe,
             (size_t)((uintptr_t)pc - base - 1));
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return;
    while (fgets(line, sizeof line, pipe)) {
        line[strcspn(line, " \n")] = '\0';
        const char *name = base_name(line);
        if (name[0] == '?')
            continue;
        snprintf(place, size, "%.*s", (int)size - 1, name);
        if (strncmp(name, "futex.h", 7) != 0 && strncmp(name, "memory.h", 8) != 0)
            break;
    }
    pclose(pipe);
}

void mc_resolve_failure(void)
{
    char text[sizeof mc.result.failure], place[256];
    size_t used = 0;

    for (const char *from = mc.result.failure; *from && used < sizeof text - 1;) {
        if (from[0] == '{' && from[1] >= '0' && from[1] < '0' + MC_THREADS_MAX && from[2] == '}') {
            find_line(mc.failure_pc[from[1] - '0'], place, sizeof place);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", place);
            from += 3;
        } else {
            text[used++] = *from++;
        }
    }
    text[used < sizeof text ? used : sizeof text - 1] = '\0';
    memcpy(mc.result.failure, text, sizeof text);
}

/* ---- a failure ------------------------------------------------------------------------------- */

static void print_event(const event *e)
{
    char place[PLACE + 1] = "";

    if (e->site.pc)
        find_line(e->site.pc, place, sizeof place);
    else if (e->site.file)
        snprintf(place, sizeof place, "%s:%d", base_name(e->site.file), e->site.line);
    printf("  %-*s %*s%s\n", PLACE, place, e->tid * COLUMN, "", e->text);
}

void mc_print_trace(void)
{
    printf("\n%s: %s\n\n  %-*s ", mc.program->name,
           mc.outcome == FAILED ? mc.result.failure : "nothing wrong in this execution", PLACE,
           "at");
    for (int i = 0; i < mc.thread_count; i++)
        printf("T%-*d", COLUMN - 1, i);
    putchar('\n');
    unsigned first = event_count > SHOWN && !mc.options.trace_all ? event_count - SHOWN : 0;
    if (first > 0)
        printf("  ... %u events before these (--trace-all shows them)\n", first);
    for (unsigned i = first; i < event_count; i++)
        print_event(&events[i]);
    printf("\nfailed: %s\n", mc.result.failure);
    fflush(stdout);
}

/* ---- summaries ------------------------------------------------------------------------------- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

void mc_add(mc_result *total, mc_result result)
{
    const char *name = total->name;
    mc_result sum = *total;

    if (result.verdict == MC_SKIPPED && sum.programs > 0)
        return;
    if (sum.programs == 0 || result.verdict > sum.verdict)
        sum = result;
    if (total->programs == 0)
        *total = (mc_result){.verdict = result.verdict};
    if (total->programs > 0) {
        const mc_options *a = &total->options, *b = &result.options;
        sum.options.preemptions = least(a->preemptions, b->preemptions);
        /* 0 is any number. */
        sum.options.stale = a->stale && b->stale ? least(a->stale, b->stale) : a->stale + b->stale;
    }
    sum.threads = total->threads > result.threads ? total->threads : result.threads;
    sum.name = name;
    sum.programs = total->programs + (result.verdict != MC_SKIPPED);
    sum.executions = total->executions + result.executions;
    sum.blocked = total->blocked + result.blocked;
    sum.events = total->events + result.events;
    sum.seconds = total->seconds + result.seconds;
    *total = sum;
}

void mc_run_and_add(mc_result *total, const mc_program *program, const mc_options *options)
{
    mc_result result = mc_run(program, options);

    if (options->each_line && result.verdict != MC_SKIPPED)
        mc_report(result);
    mc_add(total, result);
}

mc_options mc_bounded(mc_options options, unsigned preemptions, unsigned stale)
{
    if (options.mode == MC_FULL && !options.replay) {
        options.mode = MC_BOUNDED;
        options.preemptions = preemptions + options.is_long;
        options.stale = stale ? stale + options.is_long : 0;
    }
    return options;
}

static void describe_bounds(const mc_options *o, char *text, size_t size)
{
    if (o->replay)
        snprintf(text, size, "replay");
    else if (o->mode == MC_BOUNDED)
        snprintf(text, size, o->stale ? "<= %u preempt., %u stale" : "<= %u preemptions",
                 o->preemptions, o->stale);
    else if (o->mode == MC_RANDOM)
        snprintf(text, size, "random, seed %llu", (unsigned long long)o->seed);
    else
        snprintf(text, size, o->no_reduction ? "all, unreduced" : "all");
}

int mc_report(mc_result r)
{
    static const char *const verdicts[] = {
        [MC_OK] = "ok", [MC_STOPPED] = "stopped: nothing found so far", [MC_FAILED] = "FAILED"};
    char bounds[40];

    if (r.verdict == MC_SKIPPED)
        return 0;
    describe_bounds(&r.options, bounds, sizeof bounds);
    printf("%-24s %5llu programs, %u threads, %-16s %9llu executions, %8llu blocked, %10llu "
           "events, %7.2f s  "
           "%s%s%s\n",
           r.name, (unsigned long long)r.programs, r.threads, bounds,
           (unsigned long long)r.executions, (unsigned long long)r.blocked,
           (unsigned long long)r.events, r.seconds, verdicts[r.verdict], r.failure[0] ? ": " : "",
           r.failure);
    fflush(stdout);
    return r.verdict == MC_FAILED;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char usage[] =
    "usage: %s [options]\n"
    "Run the programs of this client in every way that the memory model allows.\n\n"
    "      --mode <mode>        full, bounded or random\n"
    "      --preemptions <n>    bounded: 0, then 1, up to n preemptions\n"
    "      --stale <n>          bounded: at most n loads that do not read the newest store\n"
    "      --runs <n>           random: executions\n"
    "      --seed <n>           random: which ones\n"
    "      --no-reduction       full: every order of operations\n"
    "      --long               more programs and larger bounds: hours instead of seconds\n"
    "      --each               a line for each program\n"
    "      --part <i>/<n>       only every n-th program, from the i-th\n"
    "      --seconds <n>        stop after this time, per program\n"
    "      --executions <n>     stop after this many, per program\n"
    "      --trace-all          print also the beginning of a long execution\n"
    "      --replay <string>    only this execution, with its trace; also MC_REPLAY=<string>\n";

static bool take(int argc, char **argv, int *i, const char *name, const char **value)
{
    if (strcmp(argv[*i], name) != 0)
        return false;
    if (*i + 1 >= argc) {
        fprintf(stderr, "%s: %s needs a value\n", argv[0], name);
        exit(2);
    }
    *value = argv[++*i];
    return true;
}

static void parse_part(mc_options *o, const char *name, const char *value)
{
    if (sscanf(value, "%u/%u", &o->part, &o->parts) != 2 || o->part < 1 || o->part > o->parts) {
        fprintf(stderr, "%s: --part is <i>/<n>, with i from 1 to n\n", name);
        exit(2);
    }
}

mc_options mc_arguments(int argc, char **argv)
{
    mc_options o = {.replay = getenv("MC_REPLAY")};
    const char *value;

    for (int i = 1; i < argc; i++) {
        if (take(argc, argv, &i, "--mode", &value))
            o.mode = value[0] == 'b' ? MC_BOUNDED : value[0] == 'r' ? MC_RANDOM : MC_FULL;
        else if (take(argc, argv, &i, "--stale", &value))
            o.stale = (unsigned)strtoul(value, NULL, 0);
        else if (take(argc, argv, &i, "--preemptions", &value))
            o.preemptions = (unsigned)strtoul(value, NULL, 0);
        else if (take(argc, argv, &i, "--runs", &value))
            o.runs = strtoull(value, NULL, 0);
        else if (take(argc, argv, &i, "--seed", &value))
            o.seed = strtoull(value, NULL, 0);
        else if (take(argc, argv, &i, "--seconds", &value))
            o.max_seconds = strtod(value, NULL);
        else if (take(argc, argv, &i, "--executions", &value))
            o.max_executions = strtoull(value, NULL, 0);
        else if (take(argc, argv, &i, "--part", &value))
            parse_part(&o, argv[0], value);
        else if (take(argc, argv, &i, "--replay", &value))
            o.replay = value;
        else if (strcmp(argv[i], "--no-reduction") == 0)
            o.no_reduction = true;
        else if (strcmp(argv[i], "--each") == 0)
            o.each_line = true;
        else if (strcmp(argv[i], "--long") == 0)
            o.is_long = true;
        else if (strcmp(argv[i], "--trace-all") == 0)
            o.trace_all = true;
        else {
            fprintf(stderr, usage, argv[0]);
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
    return o;
}
