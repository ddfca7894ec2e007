/* SPDX-License-Identifier: MIT */
/*
 * Guard pages: does a write to them end the program?
 */
#ifndef FILCH_TEST_DEADLY_H
#define FILCH_TEST_DEADLY_H

#include "support.h"

#include <sys/resource.h>
#include <sys/wait.h>

/* Does a write to this address end a process with SIGSEGV? */
static bool is_deadly(volatile char *address)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer may have set a handler */
        *address = 1;
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

#endif
