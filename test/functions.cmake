# How tests are built and registered. bench/, examples/ and verify/ use filch_check, too.

# The limit of every test, in seconds. It ends a test that hangs, and nothing else: a test that
# takes a minute on an idle machine stays far below it on one with a load of 12.
set(FILCH_TEST_LIMIT_S 3600 CACHE INTERNAL "Seconds after which ctest ends a test")

# filch_check(<name> <label> <command>...): register a test. Exit code 77 means skipped.
function(filch_check name label)
    add_test(NAME ${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS)
    set_tests_properties(${name} PROPERTIES
        LABELS ${label} TIMEOUT ${FILCH_TEST_LIMIT_S} SKIP_RETURN_CODE 77)
endfunction()

# filch_check_with(<setting> <name> <label> <command>...): the same, with a variable of the
# environment.
function(filch_check_with setting name)
    filch_check(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT ${setting})
endfunction()

# The deques that pools run with. Some are so small that they are always full.
set(pool_deques ${FILCH_DEQUE_KINDS} abp:3 chaselev:1 bwos_lifo:8:1 bwos_fifo:8:1)

# Ways of doing I/O. A ring of 4 entries is always full.
set(io_ways uring uring:4 epoll threads)

# filch_test(<name> [FAULTS] [DEQUES all|fast] [IO] [SOURCE <file>] [LABEL <label>])
#
# Build <name>.c, or SOURCE, against the internals of the library and run it.
#
#   FAULTS   link the library in which allocations and system calls can be made to fail
#   DEQUES   run the test again with every deque that a pool can have: the answers are the same.
#            `fast`: not with sanitizers or an emulator, where that takes too long
#   IO       run the test again with every way of doing I/O
#   LABEL    `unit`, unless given; a test labelled `stress` has the machine to itself
function(filch_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "FAULTS;IO" "DEQUES;LABEL;SOURCE" "")
    set(library $<IF:$<BOOL:${arg_FAULTS}>,filch_faults,filch_internal>)
    if(NOT arg_LABEL)
        set(arg_LABEL unit)
    endif()
    if(NOT arg_SOURCE)
        set(arg_SOURCE ${name}.c)
    endif()
    if(arg_DEQUES STREQUAL fast AND (FILCH_SANITIZE OR CMAKE_CROSSCOMPILING))
        unset(arg_DEQUES)
    endif()

    add_executable(${name} ${arg_SOURCE})
    set_target_properties(${name} PROPERTIES C_STANDARD 11)
    target_compile_options(${name} PRIVATE ${FILCH_WARNINGS})
    target_compile_definitions(${name} PRIVATE $<$<BOOL:${CMAKE_CROSSCOMPILING}>:TEST_EMULATED>)
    target_link_libraries(${name} PRIVATE ${library} filch_test_support)

    filch_check(${name} ${arg_LABEL} ${name})
    if(arg_LABEL STREQUAL stress)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
    if(arg_DEQUES)
        foreach(deque IN LISTS pool_deques)
            string(REPLACE : _ suffix ${deque})
            filch_check_with(FILCH_DEQUE=${deque} ${name}_${suffix} kinds ${name})
        endforeach()
    endif()
    if(arg_IO)
        foreach(way IN LISTS io_ways)
            string(REPLACE : _ suffix ${way})
            filch_check_with(FILCH_IO=${way} ${name}_${suffix} unit ${name})
        endforeach()
    endif()
endfunction()
