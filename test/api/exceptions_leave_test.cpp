// SPDX-License-Identifier: MIT
// An exception that leaves a task, or another function that the library calls, ends the program
// with a message: the name of the task, or the function; then that of std::terminate. No handler
// further out gets it, with any number of workers. So does pthread_exit, without std::terminate.
#include <filch/filch.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

static filch_pool *pool;
static volatile bool is_thrown = true;

/* Compilers cannot tell that it does not return, so its callers are ordinary functions. */
[[gnu::noinline]] static void boom()
{
    if (is_thrown)
        throw std::runtime_error("boom");
}

/* ---- the tasks and functions that throw ------------------------------------------------------ */

FILCH_TASK(void, void_thrower)
{
    boom();
}

FILCH_TASK(long, long_thrower, (long, n))
{
    boom();
    return n;
}

/* A parent that would catch it. Its child throws in an ordinary call, in a join that runs it, or on
 * another strand: the parent waits until the child has begun. */
FILCH_TASK(void, caller)
{
    try {
        FILCH_CALL(long_thrower, 1);
    } catch (...) {
    }
}

FILCH_TASK(void, joiner)
{
    try {
        FILCH_FORK(child, long_thrower, 1);
        FILCH_JOIN(child);
    } catch (...) {
    }
}

FILCH_TASK(void, spawner)
{
    try {
        FILCH_SPAWN(void_thrower);
        FILCH_SYNC();
    } catch (...) {
    }
}

FILCH_TASK(void, victim)
{
    filch_event never{};
    try {
        FILCH_FORK(child, void_thrower);
        filch_event_wait(FILCH_HERE, &never);
        FILCH_JOIN(child);
    } catch (...) {
    }
}

#define EXPORTED extern "C" FILCH_API

EXPORTED void plain_thrower(filch_frame *, void *)
{
    boom();
    is_thrown = true; /* no tail call */
}

EXPORTED int scope_thrower(filch_frame *, void *)
{
    boom();
    return 0;
}

EXPORTED int future_thrower(filch_frame *, void *, void **)
{
    boom();
    return 0;
}

EXPORTED int stage_thrower(filch_frame *, void *, void **)
{
    boom();
    return 0;
}

EXPORTED int blocking_thrower(void *)
{
    boom();
    return 0;
}

EXPORTED void hook_thrower(void *, unsigned)
{
    boom();
    is_thrown = true;
}

static void body_thrower(filch_frame *, void *, size_t, size_t)
{
    boom();
    is_thrown = true;
}

static void add_thrower(filch_frame *, void *, void *, size_t, size_t)
{
    boom();
    is_thrown = true;
}

static void merge(void *, const void *, void *)
{
}

static int compare_thrower(const void *, const void *, void *)
{
    boom();
    return 0;
}

/* Names are demangled, also those that other files do not see. */
namespace outer
{
struct inner {
    static int method_thrower(filch_frame *, void *)
    {
        boom();
        return 0;
    }
};

namespace
{
int hidden_thrower(filch_frame *, void *)
{
    boom();
    return 0;
}
} // namespace
} // namespace outer

/* ---- those that end their thread ------------------------------------------------------------- */

[[gnu::noinline]] static void end_thread()
{
    if (is_thrown)
        pthread_exit(nullptr);
}

FILCH_TASK(void, void_exiter)
{
    std::string has_destructor(100, 'x');
    end_thread();
}

FILCH_TASK(long, long_exiter, (long, n))
{
    end_thread();
    return n;
}

FILCH_TASK(void, exit_victim)
{
    filch_event never{};
    FILCH_FORK(child, void_exiter);
    filch_event_wait(FILCH_HERE, &never);
    FILCH_JOIN(child);
}

EXPORTED void plain_exiter(filch_frame *, void *)
{
    std::string has_destructor(100, 'x');
    end_thread();
}

/* ---- the ways to call them ------------------------------------------------------------------- */

/* Run fn in a task, where a catch waits for its exception. */
static void in_task(std::function<void(filch_frame *)> fn)
{
    filch_run(
        pool,
        [](filch_frame *f, void *arg) {
            try {
                (*static_cast<std::function<void(filch_frame *)> *>(arg))(f);
            } catch (...) {
            }
        },
        &fn);
}

static void fork_plain(filch_frame *f)
{
    filch_frame *mark = f;
    f = filch_fork(f, plain_thrower, nullptr);
    filch_join(f, mark);
}

template <filch_task_fn *fn> static void spawn_in_scope(filch_frame *f)
{
    filch_scope scope;
    filch_scope_open(f, &scope, nullptr, nullptr);
    filch_scope_spawn(f, &scope, fn, nullptr);
    filch_scope_close(f, &scope);
}

static void spawn_future(filch_frame *f)
{
    filch_scope scope;
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope_open(f, &scope, nullptr, nullptr);
    filch_future_spawn(f, &scope, &future, future_thrower, nullptr);
    filch_scope_close(f, &scope);
}

static void submit_future()
{
    filch_future future = FILCH_FUTURE_INIT;
    filch_future_submit(pool, &future, future_thrower, nullptr);
    filch_future_get(nullptr, &future, nullptr);
}

static void submit_typed_future()
{
    long_thrower_future future;
    FILCH_FUTURE_SUBMIT(pool, &future, long_thrower, 1);
    filch_future_get(nullptr, &future.future, nullptr);
}

static void submit_task()
{
    FILCH_SUBMIT(pool, void_thrower);
    filch_pool_wait(pool);
}

static void submit_plain()
{
    filch_submit(pool, plain_thrower, nullptr);
    filch_pool_wait(pool);
}

static void reduce(filch_frame *f)
{
    int sum;
    filch_reducer reducer{};
    reducer.size = sizeof sum;
    reducer.add = add_thrower;
    reducer.merge = merge;
    filch_reduce(f, 0, 100, &reducer, nullptr, &sum);
}

static void invoke(filch_frame *f)
{
    filch_call call{};
    call.fn = plain_thrower;
    filch_invoke(f, &call, 1);
}

static void run_once(filch_frame *f)
{
    filch_once once{};
    filch_once_call(f, &once, scope_thrower, nullptr);
}

static void run_pipeline(filch_frame *f)
{
    filch_stage stage{};
    stage.fn = stage_thrower;
    filch_pipeline_run(f, pool, &stage, 1, nullptr);
}

template <class Sort> static void sort(filch_frame *f, Sort *sort_fn)
{
    int numbers[1000];
    for (int i = 0; i < 1000; i++)
        numbers[i] = i * 7 % 1000;
    sort_fn(f, numbers, 1000, sizeof numbers[0], compare_thrower, nullptr);
}

static void block(filch_frame *f)
{
    filch_blocking(f, FILCH_LANE_ANY, blocking_thrower, nullptr);
}

/* Without a pool, the task itself makes the call. */
FILCH_TASK(void, serial_block)
{
    try {
        block(FILCH_HERE);
    } catch (...) {
    }
}

static void start_with_hook()
{
    filch_options options{};
    filch_pool *hooked;
    options.size = sizeof options;
    options.workers = 1;
    options.on_start = hook_thrower;
    if (filch_pool_create(&hooked, &options) == 0) {
        FILCH_SUBMIT(hooked, void_thrower);
        filch_pool_wait(hooked);
    }
}

struct way {
    const char *name, *message;
    void (*run)();
};

static const way throws[] = {
    {"FILCH_RUN", "leaves the task void_thrower\n", [] { FILCH_RUN(pool, void_thrower); }},
    {"FILCH_RUN without a pool", "leaves the task long_thrower\n",
     [] { FILCH_RUN((filch_pool *)nullptr, long_thrower, 1); }},
    {"FILCH_CALL", "leaves the task long_thrower\n", [] { FILCH_RUN(pool, caller); }},
    {"FILCH_JOIN", "leaves the task long_thrower\n", [] { FILCH_RUN(pool, joiner); }},
    {"FILCH_SYNC", "leaves the task void_thrower\n", [] { FILCH_RUN(pool, spawner); }},
    {"a theft", "leaves the task void_thrower\n", [] { FILCH_RUN(pool, victim); }},
    {"FILCH_SUBMIT", "leaves the task void_thrower\n", submit_task},
    {"FILCH_FUTURE_SUBMIT", "leaves the task long_thrower\n", submit_typed_future},
    {"filch_run", "leaves the function plain_thrower\n",
     [] { filch_run(pool, plain_thrower, nullptr); }},
    {"filch_submit", "leaves the function plain_thrower\n", submit_plain},
    {"filch_join", "leaves the function plain_thrower\n", [] { in_task(fork_plain); }},
    {"filch_scope_spawn", "leaves the function scope_thrower\n",
     [] { in_task(spawn_in_scope<scope_thrower>); }},
    {"a method", "leaves the function outer::inner::method_thrower\n",
     [] { in_task(spawn_in_scope<outer::inner::method_thrower>); }},
    {"a hidden function", "leaves the function outer::(anonymous namespace)::hidden_thrower\n",
     [] { in_task(spawn_in_scope<outer::hidden_thrower>); }},
    {"filch_future_spawn", "leaves the function future_thrower\n", [] { in_task(spawn_future); }},
    {"filch_future_submit", "leaves the function future_thrower\n", submit_future},
    {"filch_invoke", "leaves the function plain_thrower\n", [] { in_task(invoke); }},
    {"filch_once_call", "leaves the function scope_thrower\n", [] { in_task(run_once); }},
    {"filch_pipeline_run", "leaves the function stage_thrower\n", [] { in_task(run_pipeline); }},
    {"filch_for", "leaves the function body_thrower\n",
     [] { in_task([](filch_frame *f) { filch_for(f, 0, 100, body_thrower, nullptr); }); }},
    {"filch_reduce", "leaves the function add_thrower\n", [] { in_task(reduce); }},
    {"filch_sort", "compare_thrower", [] { in_task([](filch_frame *f) { sort(f, filch_sort); }); }},
    {"filch_sort_stable", "compare_thrower",
     [] { in_task([](filch_frame *f) { sort(f, filch_sort_stable); }); }},
    {"filch_blocking", "leaves the function blocking_thrower\n", [] { in_task(block); }},
    {"filch_blocking without a pool", "leaves the function blocking_thrower\n",
     [] { FILCH_RUN((filch_pool *)nullptr, serial_block); }},
    {"on_start", "leaves the function hook_thrower\n", start_with_hook},
};

static const way exits[] = {
    {"FILCH_RUN", ": void_exiter\n", [] { FILCH_RUN(pool, void_exiter); }},
    {"FILCH_RUN without a pool", ": long_exiter\n",
     [] { FILCH_RUN((filch_pool *)nullptr, long_exiter, 1); }},
    {"a theft", ": void_exiter\n", [] { FILCH_RUN(pool, exit_victim); }},
    {"filch_run", ": plain_exiter\n", [] { filch_run(pool, plain_exiter, nullptr); }},
};

/* Run it in a child process, on a pool of its own. Returns what the child wrote. */
static std::string run_in_child(void (*run)(), unsigned workers, int *status)
{
    int ends[2];
    std::string text;
    if (pipe(ends) != 0)
        return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL); /* a sanitizer may have set a handler */
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        filch_options options{};
        options.size = sizeof options;
        options.workers = workers;
        if (filch_pool_create(&pool, &options) != 0)
            _exit(2);
        try {
            run();
        } catch (...) {
        }
        _exit(0);
    }
    close(ends[1]);
    char bytes[512];
    for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
        text.append(bytes, (size_t)got);
    close(ends[0]);
    waitpid(child, status, 0);
    return text;
}

static int failures;

/* The program is aborted. The message begins so, names the function, and has `rest` after that. */
static void check(const way &w, unsigned workers, const char *begin, const char *rest)
{
    int status = 0;
    std::string text = run_in_child(w.run, workers, &status);
    size_t at = text.find(w.message);

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && text.find(begin) == 0 &&
        at != std::string::npos && text.find(rest, at) != std::string::npos)
        return;
    std::fprintf(stderr, "%s, %u workers: status %#x, expected SIGABRT and \"%s\", got: %s\n",
                 w.name, workers, (unsigned)status, w.message, text.c_str());
    failures++;
}

int main()
{
    for (unsigned workers : {1u, 2u}) {
        for (const way &w : throws)
            check(w, workers, "filch: an exception leaves", "terminat");
#ifndef HAS_TSAN /* which ends the program itself */
        for (const way &w : exits)
            check(w, workers, "filch: a task, a hook or a blocking call ended its thread", "");
#endif
    }
    return failures > 0;
}
