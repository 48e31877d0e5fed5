"""Random calls with arguments that are wrong in every way end in a result or in an error as documented."""

import os

import pytest

from tests.fuzz.__main__ import run

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("CYGRAD_FUZZ", "4000"))


def test_wrong_calls_are_refused():
    problems = run(0, CASES)
    assert not problems, "\n".join(problems)
