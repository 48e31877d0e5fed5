"""More threads than cores, and the shortest switch interval of Python."""

import os
import sys

import pytest

import cygrad

# Set by `make stress`: factor of the amount of work in the ordinary test run.
TIMES = int(os.environ.get("CYGRAD_STRESS", "1"))


@pytest.fixture(autouse=True)
def crowded():
    """Undone after each test."""
    interval, threads = sys.getswitchinterval(), cygrad.get_num_threads()
    sys.setswitchinterval(1e-6)
    cygrad.set_num_threads(4)
    yield
    sys.setswitchinterval(interval)
    cygrad.set_num_threads(threads)
