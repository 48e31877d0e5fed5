"""
``python -m tests.programs [COUNT]`` compares COUNT random programs (default 10,000) with PyTorch.

A program is its number: it is the same in every run, and ``--first N --show`` prints it. With ``--alone`` there is no
PyTorch, for builds with a sanitizer. Processes of their own run 500 each, so that one that dies takes no other with it.
"""

import argparse
import contextlib
import faulthandler
import gc
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cygrad
from tests.programs.machine import Machine
from tests.programs.writer import WRITERS, write

CHUNK = 500


def drafts(number):
    """What program of that number is made of."""
    generator = random.Random(f"program {number}")
    return [(generator.choice(WRITERS), tuple(generator.randrange(256) for _ in range(6)))
            for _ in range(3 * generator.randint(1, 10))]


def run_one(number, library):
    """
    One program.

    Parameters
    ----------
    number : int
    library : module or None
        PyTorch, to compare with.

    Returns
    -------
    list of str, str or None
        Its lines, and what differs.
    """
    gc.set_threshold(1 if number % 7 == 3 else 700)           # some with a collection at every chance there is
    machine = Machine(cygrad)
    program = write(drafts(number), machine)
    gc.set_threshold(700)
    if library is None:
        return program, None
    from tests.programs.compare import difference
    return program, difference(machine.notes, program, Machine(library))


def run_here(first, count, alone):
    """Run programs in this process and print those with a difference; return their number."""
    library = None
    if not alone:
        from tests.reference import torch as library
    gc.freeze()                       # what the libraries consist of: programs collect their own objects, and often
    wrong = 0
    for number in range(first, first + count):
        print(number, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(120, exit=True)
        program, found = run_one(number, library)
        if found:
            wrong += 1
            print(f"program {number}: {found}", *[f"    {line}" for line in program], sep="\n", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return wrong


def run_chunk(first, count, options):
    """Run programs in separate processes, which continue after a crash; return their output."""
    told, end = [], first + count
    while first < end:
        command = ["-m", "tests.programs", str(end - first), "--first", str(first), "--here", *options]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, errors="replace", check=False)
        told.append(done.stdout)
        if done.returncode in (0, 1):
            break
        reached = [int(line) for line in done.stderr.splitlines() if line.isdigit()]
        last = reached[-1] if reached else first
        told.append(f"program {last}: the process died with {done.returncode}\n{done.stderr[-6000:]}\n")
        first = last + 1
    return "".join(told)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--show", action="store_true", help="print the first one and what differs")
    options = parser.parse_args()
    faulthandler.enable()
    if options.show:
        print(*write(drafts(options.first), Machine(cygrad)), sep="\n")
        options.here, options.count = True, 1
    if options.here:
        sys.exit(1 if run_here(options.first, options.count, options.alone) else 0)
    chunks = [(start, min(CHUNK, options.first + options.count - start))
              for start in range(options.first, options.first + options.count, CHUNK)]
    passed_on = ["--alone"] if options.alone else []
    wrong = 0
    with ThreadPoolExecutor(options.processes) as pool:
        for told in pool.map(lambda chunk: run_chunk(*chunk, passed_on), chunks):
            wrong += sum(line.startswith("program ") for line in told.splitlines())
            print(told, end="", flush=True)
    print(f"{options.count} programs from {options.first} on, {wrong} of them with a problem.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
