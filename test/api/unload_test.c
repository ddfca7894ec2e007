/* SPDX-License-Identifier: MIT */
/*
 * Load the library, let a signal dump the pools, unload it: the signal then does no harm.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "filch_dump_on_signal") : NULL;
    int (*dump_on_signal)(int number);

    if (!symbol) {
        fprintf(stderr, "usage: %s <libfilch.so>\n", argv[0]);
        return 2;
    }
    memcpy(&dump_on_signal, &symbol, sizeof symbol);
    if (dump_on_signal(SIGUSR1) != 0 || dlclose(library) != 0)
        return 1;
    return raise(SIGUSR1) != 0;
}
