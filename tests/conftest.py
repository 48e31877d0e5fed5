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
    """As in the background of a script: programs that the test starts inherit it, and Python leaves it as it is."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def keep_number_of_threads():
    import cygrad
    before = cygrad.get_num_threads()
    yield
    cygrad.set_num_threads(before)
