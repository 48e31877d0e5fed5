"""Fixtures of all tests."""

import gc
import signal

import pytest


def pytest_collection_finish(session):
    """Freeze existing objects, because many tests collect garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def interrupts_ignored():
    """Ignore SIGINT, as in the background of a script; child programs inherit it."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def keep_number_of_threads():
    import cygrad

    before = cygrad.get_num_threads()
    yield
    cygrad.set_num_threads(before)
