"""
Run cases and classify their outcome.

``python -m tests.fuzz.runner FIRST COUNT`` runs that many cases from FIRST on, in this process, and prints those that
end as none should; ``--show`` prints the lines of case FIRST and runs it.
"""

import argparse
import faulthandler
import gc
import io
import os
import pickle
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings

from tests.fuzz.cases import Case
from tests.fuzz.scope import SCOPE

# What the library raises: what users of tensors expect, and what Python's own protocols raise. OverflowError is for
# integers that do not fit, BufferError for memory that cannot be lent, OSError and PickleError for files.
DOCUMENTED = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
    BufferError,
    OSError,
    pickle.PickleError,
    SCOPE["HostileError"],
)
PYTHON_ALONE = re.compile("/cygrad/(nn|distributions|func|utils|compatibility)/")
TIME = 20  # seconds that one case may take
MEMORY = 2 << 30  # bytes on top of what the process has when it starts


class Slow(BaseException):
    """A case took too long."""


def slow(*_):
    """The alarm."""
    raise Slow


def run_case(number):
    """One case.

    Parameters
    ----------
    number : int

    Returns
    -------
    str or None
        What is wrong, with the lines to see it again; None if nothing is.
    """
    case = Case(number)
    scope = dict(SCOPE)
    name = f"<case {number}>"
    problem = None
    signal.setitimer(signal.ITIMER_REAL, TIME)
    gc.set_threshold(1 if number % 7 == 3 else 700)         # some with a collection at every chance there is
    try:
        for line in case.lines:
            exec(compile(line, name, "exec"), scope)
    except Slow:
        problem = f"it took more than {TIME} seconds"
    except BaseException as error:
        problem = judge(error, name, case)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if problem is None:
        return None
    return f"case {number}: {problem}\n" + "\n".join(f"    {line}" for line in case.lines)


def judge(error, name, case):
    """Return what is wrong with an error, or None if it is documented."""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and frames[-1].name.endswith(("Tensor.__setattr__", "dtype.__getattr__")):
        frames.pop()  # they leave that to Python
    last = frames[-1].filename if frames else ""
    by_case = last == name and not isinstance(error, SystemError)
    if by_case and isinstance(error, (AttributeError, KeyError, ZeroDivisionError)):
        return None  # the line itself: `None.sum()`
    if "1 / 0" in "".join(case.lines) and isinstance(error, ZeroDivisionError):
        return None  # raised by a hook of the case
    if case.lines[0] == "m = t.nn.Linear(2, 2)" and isinstance(error, (AttributeError, KeyError)):
        return None  # the case has overwritten attributes of the module
    if isinstance(error, AttributeError) and error.name and "module 'cygrad'" in str(error):
        return None  # the case accesses a missing name of the module
    if PYTHON_ALONE.search(last) and as_in_torch(error):
        return None
    if isinstance(error, RecursionError) or not isinstance(error, DOCUMENTED):
        return described(error)
    if str(error).strip() or isinstance(error, (SCOPE["HostileError"], MemoryError)):
        return None
    return f"no message: {described(error)}"


def as_in_torch(error):
    """
    What layers, distributions and transforms raise besides, as they do in torch.

    They are Python code, so other objects fail where they are used; and some report with
    an AssertionError which argument is wrong.
    """
    text = str(error)
    if isinstance(error, AttributeError):
        return "has no attribute" in text and not text.startswith("module")
    return isinstance(error, AssertionError) and ": " in text


def described(error):
    """The end of its traceback."""
    return "".join(traceback.format_exception(error)[-3:]).strip()


def limit_memory():
    """Makes requests for a lot of memory fail, also where a sanitizer has reserved terabytes before."""
    with open("/proc/self/statm") as facts:
        now = int(facts.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    faulthandler.enable()
    signal.signal(signal.SIGALRM, slow)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:        # cases may write files under any name
        os.chdir(folder)
        failures = run_cases(options)
        os.chdir("/")
    sys.exit(1 if failures else 0)


def run_cases(options):
    """Run the requested cases; return the number of failures."""
    limit_memory()
    gc.freeze()         # what the library itself consists of: cases collect their own objects, and often
    if options.show:
        print("\n".join(Case(options.first).lines))
    out, sys.stdout = sys.stdout, io.StringIO()  # cases may print
    failures = 0
    for number in range(options.first, options.first + options.count):
        print(number, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(3 * TIME, exit=True)
        problem = run_case(number)
        if problem is not None:
            failures += 1
            print(problem, file=out, flush=True)
    faulthandler.cancel_dump_traceback_later()
    return failures


if __name__ == "__main__":
    main()
