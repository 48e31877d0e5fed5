"""``compile(verify=True)`` raises an error if a program differs from its function."""

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.compiling import CompileError, explain
from tests.compiling import random_contracts


def test_results_and_effects_are_those_of_one_call():
    def training(verify):
        cygrad.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return model, cygrad.compile(step, verify=True) if verify else step

    outcomes = []
    for verify in (False, True):
        model, step = training(verify)
        x = cygrad.linspace(-1, 1, 15).view(5, 3)
        losses = [step(x).item() for _ in range(5)]
        outcomes.append((losses, [p.tolist() for p in model.parameters()], [b.tolist() for b in model.buffers()],
                         [p._version for p in model.parameters()], cygrad.get_rng_state().tolist()))
    assert outcomes[0] == outcomes[1]
    assert explain(step).executions == 3


def test_difference_is_an_error(monkeypatch):
    compiled = cygrad.compile(lambda x: x * 2, verify=True)
    assert compiled(cygrad.ones(2)).tolist() == compiled(cygrad.ones(2)).tolist() == [2, 2]
    monkeypatch.setattr(compiled, "function", lambda x: x * 3)
    with pytest.raises(CompileError, match="differs from the function in result 0"):
        compiled(cygrad.ones(2))
    written = cygrad.compile(lambda x: x.add_(1), verify=True)
    written(cygrad.ones(2)), written(cygrad.ones(2))
    monkeypatch.setattr(written, "function", lambda x: x)
    with pytest.raises(CompileError, match="differs from the function"):
        written(cygrad.ones(2))


def test_gradients_are_compared():
    w = cygrad.ones(2, requires_grad=True)
    compiled = cygrad.compile(lambda x: w * x, verify=True)
    for number in range(3):
        compiled(cygrad.ones(2) * number).sum().backward()
    assert w.grad.tolist() == [3, 3] and explain(compiled).executions == 2


@pytest.mark.filterwarnings("ignore")
def test_random_functions(monkeypatch):
    compile = cygrad.compile
    monkeypatch.setattr(cygrad, "compile", lambda function, **options: compile(function, verify=True))
    assert [found for seed in range(5000, 5100) if (found := random_contracts.difference(seed))] == []
