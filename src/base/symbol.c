/* SPDX-License-Identifier: MIT */
#include "base/symbol.h"

#include "base/peek.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMBOLS_AT_ONCE 128
#define SYMBOL_BYTES 512

/* A line of /proc/self/maps. */
typedef struct mapping {
    uint64_t low, high, offset, inode;
    char path[PATH_MAX];
} mapping;

static bool read_mapping(FILE *maps, mapping *m)
{
    char line[PATH_MAX + 128];

    if (!fgets(line, sizeof line, maps))
        return false;
    m->path[0] = '\0';
    return sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %4095[^\n]",
                  &m->low, &m->high, &m->offset, &m->inode, m->path) >= 4;
}

static bool find_mapping(uintptr_t address, mapping *m)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    bool is_found = false;

    if (!maps)
        return false;
    while (!is_found && read_mapping(maps, m))
        is_found = address >= m->low && address < m->high;
    fclose(maps);
    return is_found && m->path[0] == '/';
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Is this the file that was mapped, and not another one that has its name by now? In some
 * containers the two inode numbers differ. Then compare the header with that in memory. */
static bool is_mapped(int fd, const Elf64_Ehdr *header, const mapping *m)
{
    struct stat info;
    Elf64_Ehdr mapped;

    return (fstat(fd, &info) == 0 && info.st_ino == m->inode) ||
           (filch_peek((const void *)(uintptr_t)(m->low - m->offset), &mapped, sizeof mapped) &&
            memcmp(&mapped, header, sizeof mapped) == 0);
}

/* Turn an offset in the file into an address, as the symbols of the file have it. */
static bool find_address(int fd, const Elf64_Ehdr *header, uint64_t offset, uint64_t *address)
{
    Elf64_Phdr segment;

    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (!read_at(fd, &segment, sizeof segment, header->e_phoff + i * sizeof segment))
            return false;
        if (segment.p_type == PT_LOAD && offset >= segment.p_offset &&
            offset - segment.p_offset < segment.p_filesz) {
            *address = offset - segment.p_offset + segment.p_vaddr;
            return true;
        }
    }
    return false;
}

static bool has_address(const Elf64_Sym *symbol, uint64_t address)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
           address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

/*
 * Write "ns::fib" for the symbol "_ZN2nsL3fibEi" of C++. False: it is no such symbol, or it has
 * parts that are no plain names, like those of templates and lambdas.
 *
 * __cxa_demangle knows all of them, but may need more memory than a small stack has.
 */
static bool demangle(const char *symbol, char *name, size_t bytes)
{
    static const char unnamed[] = "_GLOBAL__N_1";
    size_t used = 0;

    if (strncmp(symbol, "_Z", 2) != 0)
        return false;
    bool is_nested = symbol[2] == 'N';
    const char *at = symbol + 2 + is_nested;
    do {
        char *part;
        at += *at == 'L'; /* not visible in other files */
        if (*at < '1' || *at > '9')
            return false;
        size_t length = strtoul(at, &part, 10);
        if (length > strlen(part))
            return false;
        bool is_unnamed = length == sizeof unnamed - 1 && memcmp(part, unnamed, length) == 0;
        int added = snprintf(name + used, bytes - used, "%s%.*s", used > 0 ? "::" : "",
                             is_unnamed ? INT_MAX : (int)length,
                             is_unnamed ? "(anonymous namespace)" : part);
        if (added < 0 || (size_t)added >= bytes - used)
            return false;
        used += (size_t)added;
        at = part + length;
    } while (is_nested && *at != 'E');
    return *at != 'I'; /* the arguments of a template */
}

/* Remove what FILCH_TASK has added to the name of a task. */
static void cut_suffix(char *name)
{
    static const char *const suffixes[] = {"_thunk", "_thunk_run", "_thunk_future"};
    size_t length = strlen(name);

    for (unsigned i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t suffix_length = strlen(suffixes[i]);
        if (length > suffix_length && strcmp(name + length - suffix_length, suffixes[i]) == 0)
            name[length - suffix_length] = '\0';
    }
}

/* Read the name, without what was added by the compiler (".constprop.0") and by FILCH_TASK. */
static bool read_name(int fd, uint64_t offset, char *name, size_t bytes)
{
    char symbol[SYMBOL_BYTES];
    ssize_t got = pread(fd, symbol, sizeof symbol - 1, (off_t)offset);

    if (got <= 0)
        return false;
    symbol[got] = '\0';
    symbol[strcspn(symbol, ".")] = '\0';
    if (!demangle(symbol, name, bytes))
        snprintf(name, bytes, "%s", symbol);
    cut_suffix(name);
    return name[0] != '\0';
}

/* Find the function in one symbol table. */
static bool find_symbol(int fd, const Elf64_Ehdr *header, const Elf64_Shdr *table, uint64_t address,
                        char *name, size_t bytes)
{
    Elf64_Sym symbols[SYMBOLS_AT_ONCE];
    Elf64_Shdr names;
    uint64_t count = table->sh_size / sizeof symbols[0];

    if (!read_at(fd, &names, sizeof names, header->e_shoff + table->sh_link * sizeof names))
        return false;
    for (uint64_t first = 0, some; first < count; first += some) {
        some = count - first < SYMBOLS_AT_ONCE ? count - first : SYMBOLS_AT_ONCE;
        if (!read_at(fd, symbols, some * sizeof symbols[0],
                     table->sh_offset + first * sizeof symbols[0]))
            return false;
        for (uint64_t i = 0; i < some; i++)
            if (has_address(&symbols[i], address))
                return read_name(fd, names.sh_offset + symbols[i].st_name, name, bytes);
    }
    return false;
}

/* The full symbol table; a stripped file has only that of the dynamic linker. */
static bool find_name(int fd, const Elf64_Ehdr *header, uint64_t address, char *name, size_t bytes)
{
    static const Elf64_Word types[] = {SHT_SYMTAB, SHT_DYNSYM};
    Elf64_Shdr section;

    for (unsigned k = 0; k < sizeof types / sizeof types[0]; k++)
        for (unsigned i = 0; i < header->e_shnum; i++)
            if (read_at(fd, &section, sizeof section, header->e_shoff + i * sizeof section) &&
                section.sh_type == types[k] &&
                find_symbol(fd, header, &section, address, name, bytes))
                return true;
    return false;
}

void filch_symbol_name(uintptr_t address, char *name, size_t bytes)
{
    mapping m;
    Elf64_Ehdr header;
    bool is_named = false;

    if (!find_mapping(address, &m)) {
        snprintf(name, bytes, "0x%" PRIxPTR, address);
        return;
    }
    uint64_t at = address - m.low + m.offset;
    int fd = open(m.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        is_named = read_at(fd, &header, sizeof header, 0) &&
                   memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && is_mapped(fd, &header, &m) &&
                   find_address(fd, &header, at, &at) && find_name(fd, &header, at, name, bytes);
        close(fd);
    }
    if (!is_named)
        snprintf(name, bytes, "%s+0x%" PRIx64, strrchr(m.path, '/') + 1, at);
}
