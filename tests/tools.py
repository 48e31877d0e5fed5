"""Helpers of all tests: leaves, concurrent threads, programs in processes."""

import io
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cygrad

FLOAT = cygrad.float64
needs_openmp = pytest.mark.skipif(not cygrad.show_config("dicts")["openmp"]["enabled"], reason="built without OpenMP")


def leaf(*values, dtype=FLOAT):
    """Return a tensor that requires grad, from numbers, a number or a list."""
    return cygrad.tensor(values[0] if len(values) == 1 else values, dtype=dtype, requires_grad=True)


def in_threads(count, function):
    """Return function(i) for each i below `count`, run in threads that start together; raise their exceptions."""
    start = threading.Barrier(count)

    def run(i):
        start.wait()
        return function(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def run_program(text, *options, timeout=300, **environment):
    """Run a program in a process, which must succeed without output on stderr; return its output."""
    result = subprocess.run(
        [sys.executable, *options, "-c", text],
        timeout=timeout,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, ""), f"exit code {result.returncode}: {result.stderr}"
    return result.stdout.split()


def error_of(attempt):
    """Return the name of the class of the raised error, or None."""
    try:
        attempt()
    except Exception as error:
        return type(error).__name__
    return None


def random_array(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def layouts(x):
    """Yield the array, its transpose, reversed, and broadcast."""
    yield x
    yield x.T
    if x.ndim:
        yield x[::-1]
        yield np.broadcast_to(x[:1], x.shape)


def try_load(raw):
    """Load a file from bytes; return the value, or None if `load` refuses it."""
    try:
        return cygrad.load(io.BytesIO(raw))
    except RuntimeError as error:
        if not str(error).startswith("load: "):
            raise
        return None
