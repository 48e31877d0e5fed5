"""Warnings point at the caller's line."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn, optim

CALLS = {
    "grad": lambda: (cygrad.ones(2, requires_grad=True) * 2).grad,
    "uint8": lambda: cygrad.arange(3)[cygrad.tensor([1, 0, 1], dtype=cygrad.uint8)],
    "list": lambda: cygrad.ones(2, 3)[[[0], [1]]], "T": lambda: cygrad.ones(2, 3, 4).T,
    "tensor": lambda: cygrad.tensor(cygrad.ones(2)),
    "read-only": lambda: cygrad.from_numpy(np.broadcast_to([1.0, 2.0], (2, 2))),
    "mse_loss": lambda: F.mse_loss(cygrad.ones(2), cygrad.ones(1, 2)), "softmax": lambda: F.softmax(cygrad.ones(2)),
    "module": lambda: nn.Softmax()(cygrad.ones(2)), "nested": lambda: nn.Sequential(nn.Softmax())(cygrad.ones(2)),
    "size_average": lambda: F.l1_loss(cygrad.ones(2), cygrad.ones(2), size_average=True),
    "duplicates": lambda: optim.SGD([cygrad.ones(2, requires_grad=True)] * 2), "rnn": lambda: nn.RNN(2, 2, dropout=0.5),
    "grid": lambda: F.affine_grid(cygrad.zeros(1, 2, 3), (1, 1, 2, 2)),
    "out": lambda: cygrad.add(cygrad.ones(2), 1, out=cygrad.zeros(3)),
    "gradcheck": lambda: cygrad.autograd.gradcheck(cygrad.exp, cygrad.ones(1, requires_grad=True), eps=1e-2, atol=1e-2),
}


@pytest.mark.parametrize("name", CALLS)
def test_where_warnings_point(name):
    call = CALLS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    for warning in caught:
        assert Path(warning.filename) == Path(__file__)
        assert name in Path(__file__).read_text().splitlines()[warning.lineno - 1]
