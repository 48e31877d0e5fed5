"""What several tests of the core share."""

import pytest

import cygrad


@pytest.fixture(params=[1, 3])
def threads(request):
    """The test runs with that many threads: alone, and with company."""
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(request.param)
    yield request.param
    cygrad.set_num_threads(former)
