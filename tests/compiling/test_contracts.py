"""Random functions agree with their compiled form in results, effects, versions and layouts."""

import pytest

from tests.compiling.random_contracts import difference

pytestmark = pytest.mark.filterwarnings("ignore")
CASES, CHUNK = 1000, 50


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_compiled_function_is_told_from_eager_by_nothing(start):
    executions = []
    assert [found for seed in range(start, start + CHUNK) if (found := difference(seed, executions))] == []
    assert sum(count > 0 for count in executions) >= CHUNK // 5     # otherwise nothing was compared
