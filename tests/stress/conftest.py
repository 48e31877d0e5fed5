"""More threads than cores, and Python changes threads as often as it can."""

import sys

import pytest

import cygrad


@pytest.fixture(autouse=True)
def crowded():
    """Undone after each test."""
    interval, threads = sys.getswitchinterval(), cygrad.get_num_threads()
    sys.setswitchinterval(1e-6)
    cygrad.set_num_threads(4)
    yield
    sys.setswitchinterval(interval)
    cygrad.set_num_threads(threads)
