/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the parts of the driver.
 *
 *     driver.c   the command line and the rounds
 *     works.c    the workloads, their sizes, and the targets
 *     run.c      runs one program once
 *     machine.c  the machine, and its load by other programs
 *     results.c  the measurements; the file for scripts
 *     report.c   the table for people, and the targets reached
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WORKERS_LISTED_MAX = 8, /* worker counts on one command line */
    WORKERS_MAX = 1024,
    ROUNDS_MAX = 100,
    REPEATS_MAX = 5, /* runs in one round */
    RUNS_MAX = ROUNDS_MAX * REPEATS_MAX,
    FIGURES_MAX = 4, /* numbers in a RESULT line */
};

/* ---- works.c ---- */

/* serial and filch, both again with other flags and from another compiler, then the peers. */
typedef enum bench_variant {
    VARIANT_SERIAL,
    VARIANT_FILCH,
    VARIANT_SERIAL_O2,
    VARIANT_FILCH_O2,
    VARIANT_SERIAL_CLANG,
    VARIANT_FILCH_CLANG,
    VARIANT_TBB,
    VARIANT_GOMP,
    VARIANT_LIBOMP,
    VARIANT_RAYON,
    VARIANT_COUNT,
} bench_variant;

extern const char *const variant_names[VARIANT_COUNT];

/* The serial twin that a variant is compared with. For filch it has the same compiler and flags;
 * for the peers it is plain `serial`. A serial variant is its own twin. */
bench_variant variant_twin(bench_variant variant);

bool variant_is_serial(bench_variant variant);
bool variant_is_peer(bench_variant variant); /* another runtime */

typedef enum work_kind {
    WORK_TIMED, /* time, in proportion to the serial twin */
    WORK_IDLE,  /* CPU time of an idle pool */
    WORK_WAKE,  /* a distribution, beside that of the bare futex */
    WORK_POOL,  /* mean time per pool */
} work_kind;

typedef struct bench_work {
    const char *name;
    const char *title;
    const char *unit; /* a run consists of many of these; or NULL */
    work_kind kind;
    unsigned variants; /* bit i: variant i has this work */
    int workers_min;   /* 2 if the work means nothing with one worker; 0 means 1 */
    bool is_coarse;    /* too few tasks to divide among more workers than cores */
    int repeats;       /* runs per round, for works too short for steady figures; 0 means 1 */
    long size[2];      /* full, short */
    long peer_size[2]; /* for slow peers; 0: the same as `size` */
} bench_work;

extern const bench_work works[];
extern const int work_count;

long work_size(const bench_work *work, bench_variant variant, bool is_short);

/* The number of units in a run of this size; 1 for works without units. */
double work_units(const bench_work *work, long size);

/* The targets of filch. */
typedef enum target_kind {
    TARGET_SLOWDOWN_MAX, /* T/Ts */
    TARGET_SPEEDUP_MIN,  /* Ts/T */
    TARGET_UNIT_NS_MAX,  /* time per unit */
    TARGET_CPU_MS_MAX,   /* of an idle pool */
    TARGET_MEDIAN_MAX,   /* wake, times the bare futex */
    TARGET_P99_MAX,
} target_kind;

typedef struct bench_target {
    const char *work;
    int workers;
    target_kind kind;
    double limit;
} bench_target;

extern const bench_target targets[];
extern const int target_count;

/* With more workers than cores, T may be at most this many times T with one worker per core. Coarse
 * works have no such target: the cores share their time among long tasks, in any runtime. */
#define OVERSUBSCRIBED_MAX 1.10

/* The name nearest to a mistyped one, or NULL if none is near. `name(i)` is NULL at the end. */
const char *nearest_name(const char *typed, const char *(*name)(int index));

const char *work_name(int index);    /* NULL at the end */
const char *variant_name(int index); /* NULL at the end */

/* ---- run.c ---- */

typedef enum run_status {
    RUN_NONE, /* not requested */
    RUN_OK,
    RUN_SKIPPED, /* the variant has no such work */
    RUN_MISSING, /* the program was not built */
    RUN_FAILED,
} run_status;

typedef struct run_outcome {
    run_status status;
    char reason[200]; /* unless RUN_OK */
    uint64_t figures[FIGURES_MAX];
    char checksum[32]; /* empty for wake */
} run_outcome;

/* Run `<folder>/filch-bench-<variant> <work> <workers> <size>` and read its RESULT. */
void run_program(const char *folder, bench_variant variant, const bench_work *work, int workers,
                 long size, run_outcome *outcome);

/* ---- machine.c ---- */

int core_count(void);

/* CPU seconds used so far by all processes except the driver and its programs. */
double others_seconds(void);

/* Print one line: processor, cores, kernel. */
void machine_print(void);

/* ---- results.c ---- */

/* All runs of one work by one variant with one number of workers. */
typedef struct bench_cell {
    run_status status;
    char reason[200];
    int run_count;
    uint64_t figures[FIGURES_MAX][RUNS_MAX]; /* the four of wake, or the time alone */
    char checksum[32];
} bench_cell;

typedef struct bench_comparison {
    bool is_short;
    int rounds;
    int workers[WORKERS_LISTED_MAX]; /* ascending */
    unsigned filch_workers;          /* bit i: workers[i] is for the variant filch alone */
    int workers_count;
    unsigned works;      /* bit i: run works[i] */
    unsigned variants;   /* bit i: run variant i */
    double others_share; /* share of the cores that other programs used */
    bench_cell *cells;   /* by work, variant and index in workers */
} bench_comparison;

bench_cell *comparison_cell(const bench_comparison *comparison, int work, bench_variant variant,
                            int workers_index);

/* Whether this combination runs. A serial twin runs once, with one worker. */
bool comparison_has(const bench_comparison *comparison, int work, bench_variant variant,
                    int workers_index);

/* Add the outcome to its cell. Returns false, and marks the cell as failed, if the checksum is
 * wrong. If no right checksum is known, the serial twin's counts as right. */
bool comparison_add(const bench_comparison *comparison, int work, bench_variant variant,
                    int workers_index, const run_outcome *outcome);

/* Over the runs of a cell, which must have at least one. */
double cell_min(const bench_cell *cell, int figure);
double cell_median(const bench_cell *cell, int figure);

/* The shortest time per unit, to compare runs of different sizes; 0 if there is none. */
double unit_ns(const bench_comparison *comparison, int work, bench_variant variant,
               int workers_index);

/* The same for the serial twin of this variant. */
double twin_unit_ns(const bench_comparison *comparison, int work, bench_variant variant);

/* Write one JSON object per cell, each on its line. Returns 0 or -errno. */
int results_write(const bench_comparison *comparison, const char *path);

/* ---- report.c ---- */

void report_print(const bench_comparison *comparison);

#endif
