// SPDX-License-Identifier: MIT
//
// pingpong of filch-bench-wait with Boost.Fiber, in one thread: two fibers, two unbuffered
// channels.
#include <boost/fiber/all.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { EXIT_USAGE = 2, EXIT_SKIP = 77 };

namespace fibers = boost::fibers;

static long number(int argc, char **argv, const char *name, long otherwise)
{
    size_t length = std::strlen(name);
    for (int i = 3; i < argc; i++)
        if (std::strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return std::atol(argv[i] + length + 1);
    return otherwise;
}

static long play(fibers::unbuffered_channel<long> &there, fibers::unbuffered_channel<long> &back,
                 long trips)
{
    long value = 0;
    for (long i = 0; i < trips; i++) {
        there.push(value);
        value = back.value_pop();
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr,
                     "usage: filch-bench-wait-fiber <work> <workers> [<setting>=<value>...]\n");
        return EXIT_USAGE;
    }
    /* The fibers of a channel stay in one thread, so there is one worker. */
    if (std::strcmp(argv[1], "pingpong") != 0 || std::atoi(argv[2]) != 1 ||
        number(argc, argv, "capacity", 0) != 0)
        return EXIT_SKIP;
    long trips = number(argc, argv, "trips", 200000);
    fibers::unbuffered_channel<long> there, back;
    long result = 0;
    double ns = 0;

    fibers::fiber other([&] {
        long value;
        while (there.pop(value) == fibers::channel_op_status::success)
            back.push(value + 1);
    });
    fibers::fiber one([&] {
        play(there, back, trips / 10);
        auto start = std::chrono::steady_clock::now();
        result = play(there, back, trips);
        ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                 .count();
        there.close();
    });
    one.join();
    other.join();
    if (result != trips) {
        std::fprintf(stderr, "filch-bench-wait-fiber: %ld trips, not %ld\n", result, trips);
        return EXIT_FAILURE;
    }
    std::printf("RESULT fiber pingpong 1 ns=%.0f per_trip_ns=%.2f\n", ns, ns / double(trips));
    return EXIT_SUCCESS;
}
