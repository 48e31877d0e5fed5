"""Typical uses, for type checkers; only `test_typing` reads this file."""

from typing import assert_type

import numpy as np

import cygrad
from cygrad import Tensor, nn, optim


def loss(model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(inputs), labels)


x = cygrad.randn(4, 3, requires_grad=True)
assert_type(x.shape, tuple[int, ...])
assert_type(x.requires_grad, bool)
assert_type(x.grad, Tensor | None)
assert_type(x * 2 + np.ones(3), Tensor)
assert_type(-x[0, ::2], Tensor)
assert_type(x.ndim, int)
rows, columns = x.shape
count: int = x.numel()
summed: Tensor = (x @ x.t()).sum(dim=0)
summed.exp().sum().backward()
numbers: np.ndarray = x.detach().numpy()
shared = np.from_dlpack(x.detach())
sizes: list[int] = list(x.shape)
flags: dict[str, object] = x.__array_interface__
xp = x.__array_namespace__()

model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
with cygrad.no_grad():
    value: Tensor = loss(model, x, cygrad.tensor([0, 1, 1, 0]))
optimizer.zero_grad()
for row in x:
    assert_type(row, Tensor)
