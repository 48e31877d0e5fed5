"""
PyTorch as the oracle of some tests: ``from tests.reference import torch``.

Without PyTorch, a test is skipped when it first uses the oracle; earlier checks, and other tests of its module, run.
"""

import pytest


class _Missing:
    """Placeholder of a missing PyTorch."""

    def __getattr__(self, name):
        if name.startswith("_") or name.startswith("pytest"):  # pytest looks for its marks in every module
            raise AttributeError(name)
        pytest.skip(f"torch.{name}: torch is not installed")


try:
    import torch
except ImportError:
    torch = _Missing()

__all__ = ["as_torch", "torch"]


def as_torch(x):
    """Return a row-major copy of an ndarray as a tensor of PyTorch."""
    return torch.from_numpy(x.copy(order="C"))
