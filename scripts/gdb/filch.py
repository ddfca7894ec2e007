# SPDX-License-Identifier: MIT
"""Strands of a filch pool, for gdb.

    (gdb) source scripts/gdb/filch.py
    (gdb) filch strands            what each strand does: its task, what it waits for, and the
                                   holder of a mutex
    (gdb) filch strands <pool>     the same for this pool, if no thread works for a pool
    (gdb) filch bt                 backtraces of all waiting strands
    (gdb) filch bt <id>            the backtrace of one strand

The library needs debug information: CMAKE_BUILD_TYPE=RelWithDebInfo, or -g. Without it the commands
say so.

For a backtrace, the selected thread borrows the saved registers of a strand. So backtraces need a
live process.
"""
import re

import gdb

GUARD_BYTES, HEADER_OFFSET = 64 << 10, 2048  # of src/strand/slab.c and filch/strand.h
ADDRESS_BITS = (1 << 56) - 1  # of the state of a task; the marks are above them


# Types of the library, each with a member that these commands read. A program with debug
# information knows the names of some of these types, but not their members.
TYPES = {"filch_pool": "workers", "filch_worker": "strand", "filch_strand": "waits",
         "filch_slab": "low", "filch_visit": "outer"}


def check_debug_information():
    """Raise an error that says so if the debug information of the library is missing."""
    if not gdb.selected_inferior().threads():
        raise gdb.GdbError("the program is not running")
    for name, member in TYPES.items():
        try:
            is_known = any(field.name == member
                           for field in gdb.lookup_type(f"struct {name}").fields())
        except gdb.error:
            is_known = False
        if not is_known:
            raise gdb.GdbError(
                f"no debug information about 'struct {name}' of filch: compile the library with -g "
                "(CMAKE_BUILD_TYPE=RelWithDebInfo), and do not strip it")


def pools(expression):
    """The pool in `expression`, or else the pools that the threads work for."""
    check_debug_information()
    if expression:
        yield gdb.parse_and_eval(f"(struct filch_pool *)({expression})").dereference()
        return
    seen, selected, unread = set(), gdb.selected_thread(), None
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            visit = gdb.parse_and_eval("'worker.c'::self_visit")
        except gdb.error as error:
            unread = error
            continue
        while visit:
            pool = visit["worker"]["pool"]
            if int(pool) not in seen:
                seen.add(int(pool))
                yield pool.dereference()
            visit = visit["outer"]
    selected.switch()
    if not seen and unread:
        raise gdb.GdbError(f"cannot read which pools the threads work for ({unread}); name a pool: "
                           "filch strands <pool>")
    if not seen:
        raise gdb.GdbError("no thread works for a pool; name one: filch strands <pool>")


def strands(pool):
    slabs = pool["strands"]["slabs"]
    pointer, slab, found = gdb.lookup_type("struct filch_strand").pointer(), slabs["all"], []
    while slab:
        # As strand_at in src/strand/slab.c: each header follows a guard, a stack and an offset.
        for i in range(int(slab["used"])):
            address = (int(slab["low"]) + i * int(slabs["span_bytes"]) + GUARD_BYTES +
                       int(slabs["stack_bytes"]) + HEADER_OFFSET)
            found.append(gdb.Value(address).cast(pointer).dereference())
        slab = slab["next_all"]
    return sorted(found, key=lambda s: int(s["id"]))


def running(pool):
    """Maps the address of a strand to the number of the worker that runs it."""
    workers = [pool["workers"][i] for i in range(int(pool["worker_count"]))]
    return {int(w["strand"]["filch_value"]): i for i, w in enumerate(workers)}


def function_name(address):
    """The name of the function at this address, without what FILCH_TASK has added (symbol.c)."""
    text = gdb.execute(f"info symbol {address:#x}", to_string=True)
    if text.startswith("No symbol"):
        return f"{address:#x}"
    name = re.sub(r" (\+ \d+ )?in section .*", "", text.strip())
    name = re.sub(r"\([^()]*\)$", "", name)  # the parameters of a C++ function
    return re.sub(r"_thunk(_run|_future)?$", "", name)


def task_of(strand):
    """The task that runs on the strand, in brackets, as filch_pool_dump prints it."""
    if not strand["body"]:
        return "[a new task]"
    if function_name(int(strand["body"])) == "run_job":
        job = strand["argument"].cast(gdb.lookup_type("filch_job").pointer())
        return f"[{function_name(int(job['named']) or int(job['fn']))}]"
    slot = strand["argument"].cast(gdb.lookup_type("filch_slot").pointer())
    thunk = int(slot["state"]["filch_value"]) & ADDRESS_BITS
    if function_name(thunk).startswith("filch_plain_run"):
        thunk = int(slot["room"].address.cast(gdb.lookup_type("filch_plain").pointer())["fn"])
    return f"[{function_name(thunk)}, stolen]"


def holder_of(address):
    """The strand that holds the mutex at this address, as the end of a line."""
    mutex = gdb.Value(address).cast(gdb.lookup_type("filch_mutex").pointer())
    holder = mutex["holder"]["filch_value"]
    if not holder:
        return ""
    strand = holder.cast(gdb.lookup_type("struct filch_strand").pointer()).dereference()
    return f", held by strand {int(strand['id'])} {task_of(strand)}"


def waits_at(strand):
    """What the strand waits for, as filch_pool_dump prints it. Of holders only that of a mutex."""
    kind, value = int(strand["waits"]["filch_value"]), int(strand["waits_for"]["filch_value"])
    if kind == 0:
        return None
    row = gdb.parse_and_eval("'dump.c'::filch_waits_rows")[kind]
    name, form = row["name"].string(), str(row["form"])
    if form == "ADDRESS":
        is_mutex = kind == int(gdb.parse_and_eval("(int)FILCH_WAITS_MUTEX"))
        return f"{name} at {value:#x}{holder_of(value) if is_mutex else ''}"
    if form == "COUNT":
        return f"{name} among {value}"
    if form == "OPERATION":
        code, fd = value >> 32, value & 0xffffffff
        if not name:
            name = gdb.parse_and_eval("'dump.c'::op_names")[code].string()
        return f"{name} of descriptor {fd}" if fd < 1 << 31 else name
    return name


class Lent:
    """Lends the saved registers of a strand to the selected thread, inside a `with`."""

    X86_64 = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]
    AARCH64 = [f"x{i}" for i in range(19, 31)]

    def __init__(self, strand):
        sp = int(strand["context"]["sp"])
        word = gdb.lookup_type("unsigned long")
        load = lambda address: int(gdb.Value(address).cast(word.pointer()).dereference())
        if "x86-64" in gdb.selected_frame().architecture().name():
            self.registers = {name: load(sp + 8 + 8 * i) for i, name in enumerate(self.X86_64)}
            self.registers["rsp"] = sp + 64
        else:
            self.registers = {name: load(sp + 8 * i) for i, name in enumerate(self.AARCH64)}
            self.registers["pc"] = self.registers["x30"]
            self.registers["sp"] = sp + 176

    def __enter__(self):
        gdb.newest_frame().select()
        self.saved = {name: int(gdb.parse_and_eval(f"(unsigned long)${name}"))
                      for name in self.registers}
        for name, value in self.registers.items():
            gdb.execute(f"set var ${name} = {value}")

    def __exit__(self, *_):
        for name, value in self.saved.items():
            gdb.execute(f"set var ${name} = {value}")


class Filch(gdb.Command):
    """What the strands of a filch pool do: filch strands, filch bt."""

    def __init__(self):
        super().__init__("filch", gdb.COMMAND_STACK, prefix=True)


class FilchStrands(gdb.Command):
    """filch strands [<pool>]: what each strand does."""

    def __init__(self):
        super().__init__("filch strands", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for pool in pools(argument):
            runs = running(pool)
            print(f"pool '{pool['options']['name'].string()}', {int(pool['worker_count'])} workers")
            for strand in strands(pool):
                worker, at = runs.get(int(strand.address)), waits_at(strand)
                if worker is not None:
                    print(f"  strand {int(strand['id'])} {task_of(strand)} runs on worker {worker}")
                elif at:
                    print(f"  strand {int(strand['id'])} {task_of(strand)} waits for {at}")


class FilchBacktrace(gdb.Command):
    """filch bt [<id>]: backtraces of waiting strands."""

    def __init__(self):
        super().__init__("filch bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for pool in list(pools(None)):
            runs = running(pool)
            for strand in strands(pool):
                at = waits_at(strand)
                is_wanted = int(strand["id"]) == int(argument) if argument else at
                if not is_wanted or int(strand.address) in runs:
                    continue
                print(f"strand {int(strand['id'])} {task_of(strand)} waits for {at}")
                with Lent(strand):
                    gdb.execute("backtrace")


Filch()
FilchStrands()
FilchBacktrace()
