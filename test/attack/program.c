/* SPDX-License-Identifier: MIT */
/*
 * One program: pools, threads and surroundings that the seed chooses; then the accounts.
 */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#define THREADS_MAX 4
#define LOOSE_MAX 8
#define CREATE_TRIES 10

world the_world;
board *the_board;

static void enter(const char *stage)
{
    /* relaxed: for reports. */
    filch_store_relaxed(&the_board->stage, stage);
    add(&the_board->progress, 1);
}

/* ---- surroundings ---------------------------------------------------------------------------- */

static const char *const deques[] = {"split",     "split",     "split",         "locked",
                                     "global",    "abp",       "chaselev",      "abp:3",
                                     "bwos_lifo", "bwos_fifo", "chaselev:1",    "locked:2",
                                     "global:2",  "abp:100",   "bwos_lifo:8:1", "bwos_fifo:8:1"};
static const char *const ways[] = {"uring", "uring", "uring:4", "epoll", "threads"};

static void on_alarm(int number)
{
    (void)number;
}

static void send_signals(actor *chooser)
{
    struct sigaction action = {.sa_handler = on_alarm,
                               .sa_flags = one_in(chooser, 2) ? SA_RESTART : 0};
    suseconds_t us =
        (suseconds_t)(200 + below(chooser, 2000)) * (ATTACK_TSAN || ATTACK_ASAN ? 5 : 1);
    struct itimerval often = {.it_interval.tv_usec = us, .it_value.tv_usec = us};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void stay_on_one_core(void)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all))
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

typedef struct plan {
    const char *deque, *io;
    unsigned pool_count, thread_count, loose_count, workers[POOLS_MAX];
    size_t stack_bytes;
    bool has_signals, has_stops, is_on_one_core, is_nice;
} plan;

/* All choices are made whatever the settings leave out: so leaving out one changes no other. */
static plan make_plan(const settings *s, actor *chooser)
{
    static const size_t stacks[] = {0, 0, (size_t)256 << 10, (size_t)1 << 20};
    plan p = {
        .deque = deques[below(chooser, COUNT_OF(deques))],
        .io = ways[below(chooser, COUNT_OF(ways))],
        .pool_count = 1 + below(chooser, 3),
        .thread_count = below(chooser, THREADS_MAX + 1),
        .loose_count = below(chooser, LOOSE_MAX + 1),
        .stack_bytes = stacks[below(chooser, COUNT_OF(stacks))],
        .has_signals = one_in(chooser, 4),
        .has_stops = one_in(chooser, 8),
        .is_on_one_core = one_in(chooser, 6),
        .is_nice = one_in(chooser, 10),
    };
    bool is_many = one_in(chooser, 12) && has_part(s, PART_many);

    for (unsigned i = 0; i < POOLS_MAX; i++) {
        p.workers[i] = 1 + below(chooser, one_in(chooser, 2) ? 2 : 8);
        if (p.workers[i] > s->worker_limit)
            p.workers[i] = s->worker_limit;
    }
    if (is_many) {
        p.workers[0] = 128;
        p.pool_count = 1;
    }
    if (p.pool_count > s->pool_limit)
        p.pool_count = s->pool_limit;
    if (p.thread_count > s->thread_limit)
        p.thread_count = s->thread_limit;
    if (p.loose_count > s->loose_limit)
        p.loose_count = s->loose_limit;
    /* A sanitizer makes frames larger. */
    if (ATTACK_ASAN && p.stack_bytes)
        p.stack_bytes = (size_t)2 << 20;
    p.deque = s->deque ? s->deque : p.deque;
    p.io = s->io ? s->io : p.io;
    p.has_signals &= has_part(s, PART_signals);
    p.has_stops &= has_part(s, PART_stops);
    p.is_on_one_core &= has_part(s, PART_onecore);
    p.is_nice &= has_part(s, PART_nice);
    return p;
}

static void describe(const plan *p, const char *faults)
{
    char *text = the_board->config;
    size_t bytes = sizeof the_board->config;
    int at = snprintf(text, bytes, "deque %s, I/O %s, workers", p->deque, p->io);

    for (unsigned i = 0; i < p->pool_count; i++)
        at += snprintf(text + at, bytes - (size_t)at, " %u", p->workers[i]);
    if (p->stack_bytes)
        at += snprintf(text + at, bytes - (size_t)at, ", stacks of %zu KiB", p->stack_bytes >> 10);
    snprintf(text + at, bytes - (size_t)at, ", %u threads, %u submitted%s%s%s%s; faults:%s",
             p->thread_count, p->loose_count, p->has_signals ? ", signals" : "",
             p->has_stops ? ", stops" : "", p->is_on_one_core ? ", one core" : "",
             p->is_nice ? ", nice" : "", *faults ? faults : " none");
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void open_folder(void)
{
    snprintf(the_world.folder, sizeof the_world.folder, "/tmp/attack.XXXXXX");
    if (!mkdtemp(the_world.folder))
        FAIL("no folder: %s", strerror(errno));
    the_world.folder_fd = open(the_world.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(the_world.folder_fd >= 0);
}

static void close_folder(void)
{
    close(the_world.folder_fd);
    if (rmdir(the_world.folder))
        FAIL("%s is not empty: %s", the_world.folder, strerror(errno));
}

/* ---- what a process has ---------------------------------------------------------------------- */

static unsigned count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned count = 0;

    if (!dir)
        FAIL("%s: %s", folder, strerror(errno));
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* A thread that was joined may be in the list for a moment longer. */
static void wait_for_threads(unsigned count)
{
    while (count_entries("/proc/self/task") > count)
        usleep(1000);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void create_pool(const plan *p, unsigned index)
{
    filch_options options = {.size = sizeof options,
                             .workers = p->workers[index],
                             .stack_bytes = p->stack_bytes,
                             .name = "attack"};
    filch_pool *pool;
    int err;

    for (unsigned i = 0; (err = filch_pool_create(&pool, &options)) != 0; i++) {
        if (!(err == -EAGAIN && fault_is_on(PART_threads)))
            ok(NULL, &(actor){0}, err, 0);
        /* With failures at a high rate there would never be a pool to try. */
        if (i == CREATE_TRIES)
            faults_pause();
    }
    the_world.pools[index] = pool;
}

static void act_loose(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
    free(arg);
}

static void submit_loose(actor *a, unsigned number)
{
    actor *loose = malloc(sizeof *loose);

    *loose = part_of(a, LOOSE_MAX);
    name_actor(loose, "submitted", number);
    if (ok(NULL, a, filch_submit(some_pool(a), act_loose, loose), 0))
        promise();
    else
        free(loose);
}

static void act_root(filch_frame *f, void *arg)
{
    keep();
    act(f, arg);
}

static void run_all(const plan *p, actor *root)
{
    helper helpers[THREADS_MAX];
    actor actors[THREADS_MAX], loose = part_of(root, 4);

    enter("running");
    for (unsigned i = 0; i < p->loose_count; i++)
        submit_loose(&loose, i + 1);
    for (unsigned i = 0; i < p->thread_count; i++) {
        actors[i] = part_of(root, p->thread_count + 1 - i);
        name_actor(&actors[i], "thread", i + 1);
        promise();
        helper_start(&helpers[i], act_root, &actors[i]);
    }
    promise();
    name_actor(root, "run on pool", 1);
    CHECK_EQUAL(filch_run(the_world.pools[0], act_root, root), 0);
    enter("joining the threads");
    for (unsigned i = 0; i < p->thread_count; i++)
        helper_join(NULL, &helpers[i]);
    enter("waiting for the pools");
    for (unsigned i = 0; i < p->pool_count; i++)
        CHECK_EQUAL(filch_pool_wait(the_world.pools[i]), 0);
    enter("destroying the pools");
    for (unsigned i = 0; i < p->pool_count; i++) {
        filch_pool *pool = the_world.pools[i];
        CHECK_EQUAL(filch_pool_destroy(pool), 0);
        the_world.pools[i] = NULL;
    }
}

void program_dump(void)
{
    for (unsigned i = 0; i < POOLS_MAX; i++)
        if (the_world.pools[i]) {
            fprintf(stderr, "pool %u:\n", i);
            filch_pool_dump(the_world.pools[i], stderr);
        }
}

/* Prints a dump for each SIGUSR2, until the program ends. */
static filch_atomic_u32 is_over;
static void *dump_main(void *arg)
{
    sigset_t *wanted = arg;
    int number;

    for (;;) {
        sigwait(wanted, &number);
        /* relaxed: the signal was sent after it was set. */
        if (filch_load_relaxed(&is_over))
            return NULL;
        program_dump();
    }
}

/* ---- accounts -------------------------------------------------------------------------------- */

static void open_accounts(void)
{
    filch_sem_init(&the_world.sem, the_world.units);
    for (unsigned i = 0; i < CHANNELS; i++)
        CHECK_EQUAL(filch_channel_create(&the_world.channels[i], sizeof(uint64_t), 2 * i), 0);
}

static void close_accounts(void)
{
    uint64_t entry;

    CHECK(get(&the_world.kept) >= get(&the_world.promised));
    CHECK(get(&the_world.kept) <= get(&the_world.promised) + get(&the_world.unsure));
    for (unsigned i = 0; i < CHANNELS; i++) {
        while (filch_channel_try_receive(the_world.channels[i], &entry) == 0)
            add(&the_world.received, entry);
        filch_channel_destroy(the_world.channels[i]);
    }
    CHECK_EQUAL(get(&the_world.sent), get(&the_world.received));
    CHECK(filch_mutex_try_lock(&the_world.mutex));
    filch_mutex_unlock(&the_world.mutex);
    CHECK_EQUAL(the_world.locked, the_world.unlocked);
    CHECK(filch_rwlock_try_write_lock(&the_world.rwlock));
    filch_rwlock_unlock(&the_world.rwlock);
    CHECK_EQUAL(the_world.left, the_world.right);
    CHECK_EQUAL(get(&the_world.inside), 0);
    for (unsigned i = 0; i < the_world.units; i++)
        CHECK(filch_sem_try_acquire(&the_world.sem));
    CHECK(!filch_sem_try_acquire(&the_world.sem));
}

void program_run(const settings *s)
{
    actor chooser = {.state = s->seed ^ 0x9a}, root = {.state = s->seed};
    char faults[300];
    sigset_t dumps;
    pthread_t dumper;

    /* With one unit, tasks often wait for it. */
    the_world = (world){.settings = s, .units = 1 + (unsigned)(s->seed % 3)};
    enter("starting");
    plan p = make_plan(s, &chooser);
    signal(SIGPIPE, SIG_IGN);
    setenv("FILCH_DEQUE", p.deque, 1);
    setenv("FILCH_IO", p.io, 1);
    if (p.is_on_one_core)
        stay_on_one_core();
    if (p.is_nice)
        setpriority(PRIO_PROCESS, 0, 19);
    the_world.pool_count = p.pool_count;
    root.budget = s->budget;
    root.depth = s->depth;
    open_folder();

    sigemptyset(&dumps);
    sigaddset(&dumps, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &dumps, NULL);
    CHECK(pthread_create(&dumper, NULL, dump_main, &dumps) == 0);
    balance before = faults_balance();
    open_accounts();
    unsigned fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    faults_start(s, faults, sizeof faults);
    describe(&p, faults);
    if (p.has_signals)
        send_signals(&chooser);
    /* relaxed: for the supervisor. */
    filch_store_relaxed(&the_board->is_stopped, p.has_stops);

    enter("creating the pools");
    for (unsigned i = 0; i < p.pool_count; i++)
        create_pool(&p, i);
    run_all(&p, &root);

    enter("checking the accounts");
    faults_stop();
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    close_accounts();
    balance after = faults_balance();
    CHECK_EQUAL(after.blocks, before.blocks);
    CHECK_EQUAL(after.mapped_bytes, before.mapped_bytes);
    enter("counting the threads");
    wait_for_threads(threads);
    CHECK_EQUAL(count_entries("/proc/self/fd"), fds);
    close_folder();
    /* relaxed: as in dump_main. */
    filch_store_relaxed(&is_over, 1);
    pthread_kill(dumper, SIGUSR2);
    pthread_join(dumper, NULL);
    enter("over");
}
