"""What tests of several folders share: leaves, threads that start together, programs of their own."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import cygrad

FLOAT = cygrad.float64
needs_openmp = pytest.mark.skipif(not cygrad.show_config("dicts")["openmp"]["enabled"], reason="built without OpenMP")


def leaf(*values, dtype=FLOAT):
    """A tensor that requires grad: of the numbers, or of the one number or list that is given."""
    return cygrad.tensor(values[0] if len(values) == 1 else values, dtype=dtype, requires_grad=True)


def in_threads(count, function):
    """What function(i) gives for each i below `count`, in threads that start together; raises what one raises."""
    start = threading.Barrier(count)

    def run(i):
        start.wait()
        return function(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def run_program(text, *options, timeout=300, **environment):
    """Run it in a process of its own, which must end well and say nothing on stderr; -> what it printed."""
    result = subprocess.run([sys.executable, *options, "-c", text], timeout=timeout, capture_output=True, text=True,
                            env={**os.environ, **environment}, check=False)
    assert (result.returncode, result.stderr) == (0, ""), f"exit code {result.returncode}: {result.stderr}"
    return result.stdout.split()
