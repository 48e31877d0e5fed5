"""Fixtures of the tests of the core."""

import pytest

import cygrad


@pytest.fixture(params=[1, 3])
def threads(request):
    """Run the test with that many threads."""
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(request.param)
    yield request.param
    cygrad.set_num_threads(former)
