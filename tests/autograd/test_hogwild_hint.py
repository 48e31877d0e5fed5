"""The error for a weight modified in place by another thread suggests share_weights."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import cygrad
from cygrad import nn

HINT = r"see nn\.parallel\.share_weights"


def modified_in_a_thread(tensor):
    def modify():
        with cygrad.no_grad():
            tensor.mul_(2)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(modify).result()


def test_a_modified_weight_names_share_weights():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    loss = model(cygrad.randn(2, 3)).square().mean()
    modified_in_a_thread(model[2].weight)
    with pytest.raises(RuntimeError, match=HINT):
        loss.backward()


def test_a_modified_result_does_not():
    x = cygrad.ones(2, requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    modified_in_a_thread(y)
    with pytest.raises(RuntimeError, match=r"clone\(\) before modifying it\.$"):
        z.backward()


def test_shared_weights_raise_no_error():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    own = nn.parallel.share_weights(model)
    loss = own(cygrad.randn(2, 3)).square().mean()
    modified_in_a_thread(model[2].weight)
    loss.backward()
    assert own[0].weight.grad.shape == (4, 3)
    assert model[0].weight.grad is None
