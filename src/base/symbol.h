/* SPDX-License-Identifier: MIT */
/*
 * The name of a function in this process, from the symbol table of its file.
 *
 * dladdr knows only the symbols that a program exports; most functions are not among them. It also
 * takes the dynamic linker's lock, which a hanging thread may hold.
 */
#ifndef FILCH_BASE_SYMBOL_H
#define FILCH_BASE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/* Write the name of the function at `address` to `name`; for a function that FILCH_TASK has
 * generated, the name of the task. Names of C++ are demangled, but not those of templates and
 * lambdas. Without a symbol, "<file>+0x<address>", as `addr2line -e <file>` reads it. Without a
 * file, the address alone. Not for signal handlers. */
void filch_symbol_name(uintptr_t address, char *name, size_t bytes);

#endif
