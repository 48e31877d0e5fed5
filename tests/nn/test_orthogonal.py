"""Orthogonal parametrizations."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from tests.reference import torch

MAPS = ["matrix_exp", "cayley", "householder", None]
SHAPES = [(4, 4), (6, 3), (3, 6), (1, 3), (2, 4, 3), (2, 3, 3)]


def holder(library, shape, dtype="float64", seed=0):
    random = np.random.default_rng(seed)
    value = random.standard_normal(shape)
    if dtype.startswith("complex"):
        value = value + 1j * random.standard_normal(shape)
    made = library.nn.Module()
    made.weight = library.nn.Parameter(library.from_numpy(value.astype(dtype)))
    return made


def error_from_orthogonal(value):
    """How far columns, or rows, are from orthonormal."""
    matrix = value.detach().numpy()
    if matrix.shape[-2] < matrix.shape[-1]:
        matrix = matrix.swapaxes(-1, -2)
    return np.abs(matrix.conj().swapaxes(-1, -2) @ matrix - np.eye(matrix.shape[-1])).max()


@pytest.mark.parametrize("base", [True, False])
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_stays_orthogonal_in_training(shape, kind, base):
    cygrad.manual_seed(0)
    made = nn.utils.parametrizations.orthogonal(holder(cygrad, shape), orthogonal_map=kind, use_trivialization=base)
    assert error_from_orthogonal(made.weight) < 1e-12
    target = cygrad.randn(*shape, dtype=cygrad.float64)
    optimizer = cygrad.optim.SGD(made.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((made.weight - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert error_from_orthogonal(made.weight) < 1e-11
    if shape != (1, 3) or kind in ("matrix_exp", "cayley"):
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("base", [True, False])
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_same_values_and_gradients_as_pytorch(kind, base, dtype):
    if dtype == "complex128" and kind == "householder":
        for library in (cygrad, torch):
            with pytest.raises(ValueError, match="complex"):
                library.nn.utils.parametrizations.orthogonal(holder(library, (3, 3), dtype), orthogonal_map=kind)
        return
    for shape in [(4, 4), (2, 3, 3)] + ([] if base else [(6, 3), (3, 6)]):
        results = []
        for library in (cygrad, torch):
            made = library.nn.utils.parametrizations.orthogonal(holder(library, shape, dtype), orthogonal_map=kind,
                                                                use_trivialization=base)
            first = made.weight
            with library.no_grad():
                original = made.parametrizations.weight.original
                original += library.from_numpy(np.random.default_rng(1).standard_normal(shape) * 0.1).tril(-1)
            value = made.weight
            (value * library.from_numpy(np.arange(float(np.prod(shape))).reshape(shape))).abs().sum().backward()
            results.append([first, value, original.grad])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-10)


def test_orthogonal_values_are_kept_and_can_be_assigned():
    made = nn.utils.parametrizations.orthogonal(holder(cygrad, (5, 5)))
    rotation = cygrad.linalg.qr(cygrad.randn(5, 5, dtype=cygrad.float64))[0]
    made.weight = rotation
    assert cygrad.allclose(made.weight, rotation)
    with pytest.raises(ValueError, match="of shape"):
        made.weight = cygrad.ones(3, 3, dtype=cygrad.float64)
    free = nn.utils.parametrizations.orthogonal(holder(cygrad, (5, 5)), "weight", "cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError):
        free.weight = rotation


def test_wrong_arguments():
    for make in (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias"),
                 lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "nothing"),
                 lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")):
        with pytest.raises(ValueError, match="orthogonal"):
            make()
