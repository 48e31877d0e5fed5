"""Programs are verified after each pass in these tests, as in debug builds."""

import pytest

from cygrad._core.compiler import lowering


@pytest.fixture(autouse=True)
def verified_passes(monkeypatch):
    monkeypatch.setattr(lowering, "VERIFY", True)
