# Written by `symdpor replay --gdb`: the threads of this execution are contexts in user space, one of which runs at a time.
import gdb
import json
import re
import struct

DATA = json.loads('@DATA@')
NAMES = {int(number): name for number, name in DATA["names"].items()}
LIVES = ["not created", "", "ended"]
# Offsets from the saved stack pointer of a thread that does not run.
SAVED = {"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48, "rip": 56}
AFTER = 64


def table():
    # Whatever language the code is in that the program has stopped in.
    said = gdb.execute("with language c -- output/d (long) &symdpor_debug_table", to_string=True)
    start = int(re.match(r"\d+", said).group())
    inferior = gdb.selected_inferior()
    count, current, step, _ = struct.unpack("<4I", inferior.read_memory(start, 16).tobytes())
    raw = inferior.read_memory(start + 16, 16 * count).tobytes()
    threads = [struct.unpack_from("<2Q", raw, 16 * i) for i in range(count)]
    return current, step, threads


def name(number):
    return NAMES.get(number, "main" if number == 0 else "thread %d" % number)


def describe(step):
    steps = DATA["steps"]
    return steps[step - 1] if 0 < step <= len(steps) else "(not part of the trace)"


def is_runtime(frame):
    return "libsymdpor_rt" in (gdb.solib_name(frame.pc()) or "")


def select_program_frame():
    """The newest frame that is the program's own."""
    frame = gdb.newest_frame()
    while frame is not None and (is_runtime(frame) or frame.type() == gdb.SIGTRAMP_FRAME):
        frame = frame.older()
    if frame is not None and frame.is_valid():
        frame.select()


class Step(gdb.Breakpoint):
    def stop(self):
        _, step, _ = table()
        return step in DATA["at"]


class End(gdb.Breakpoint):
    def stop(self):
        return True


STEP, END = None, None


def loaded(event):
    """The runtime is there: it can be stopped at."""
    global STEP, END
    if STEP is None and "libsymdpor_rt" in (event.new_objfile.filename or ""):
        STEP, END = Step("symdpor_debug_step", internal=True), End("symdpor_debug_end", internal=True)
        STEP.silent = END.silent = True


def stopped(event):
    hit = getattr(event, "breakpoints", [])
    if STEP not in hit and END not in hit:
        return
    current, step, _ = table()
    if END in hit:
        print("symdpor: %s, after step %d" % (DATA["error"], step))
        print("symdpor: %s is here" % name(current))
    else:
        print("symdpor: before step %d, %s: %s" % (step, name(current), describe(step)))
    select_program_frame()
    gdb.execute("frame")


class Threads(gdb.Command):
    """The threads of the program: info symdpor-threads"""

    def __init__(self):
        super().__init__("info symdpor-threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        current, _, threads = table()
        for number, (sp, life) in enumerate(threads):
            mark = "*" if number == current else " "
            print("%s %-4d %-20s %s" % (mark, number, name(number), self.state(number, current, sp, life)))

    def state(self, number, current, sp, life):
        if number == current:
            return "running"
        if life != 1:
            return LIVES[life] if life < len(LIVES) else "unknown"
        with Context(sp):
            select_program_frame()
            frame = gdb.selected_frame()
            where = frame.find_sal()
            place = " at %s:%d" % (where.symtab.filename, where.line) if where.symtab else ""
            return "in %s%s" % (frame.name() or "unknown code", place)


class Backtrace(gdb.Command):
    """The calls that a thread is in: symdpor-backtrace NUMBER"""

    def __init__(self):
        super().__init__("symdpor-backtrace", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if not argument.isdigit():
            raise gdb.GdbError("the number of a thread is expected: see info symdpor-threads")
        current, _, threads = table()
        number = int(argument)
        if number >= len(threads) or (threads[number][1] != 1 and number != current):
            raise gdb.GdbError("there is no such thread now")
        if number == current:
            gdb.execute("backtrace")
            return
        with Context(threads[number][0]):
            gdb.execute("backtrace")


class Context:
    """The registers of a thread that does not run, for a while."""

    def __init__(self, sp):
        self.sp = sp

    def __enter__(self):
        gdb.newest_frame().select()
        frame = gdb.selected_frame()
        self.before = {r: int(frame.read_register(r)) & (1 << 64) - 1 for r in [*SAVED, "rsp"]}
        memory = gdb.selected_inferior()
        words = {r: struct.unpack("<Q", memory.read_memory(self.sp + at, 8).tobytes())[0] for r, at in SAVED.items()}
        self.set({**words, "rsp": self.sp + AFTER})

    def __exit__(self, *_):
        gdb.newest_frame().select()
        self.set(self.before)
        select_program_frame()

    def set(self, registers):
        for register, value in registers.items():
            gdb.execute("set $%s = %d" % (register, value), to_string=True)


for line in [
    "set pagination off",
    "set confirm off",
    "set print thread-events off",
    "set disable-randomization on",
    "handle SIGSYS SIGSEGV SIGPROF nostop noprint pass",
]:
    gdb.execute(line, to_string=True)
Threads()
Backtrace()
gdb.events.new_objfile.connect(loaded)
gdb.events.stop.connect(stopped)
gdb.execute("run")
