"""Random invalid calls return a result or raise a documented error."""

import os

import pytest

from tests.fuzz.__main__ import run

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("CYGRAD_FUZZ", "4000"))


def test_wrong_calls_are_refused():
    problems = run(0, CASES)
    assert not problems, "\n".join(problems)
