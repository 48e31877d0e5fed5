"""Parameter groups, closures, saving and loading, threads."""

import copy
import math
import pickle
import threading

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.optim import parameter_checks


def parameter(*values):
    return cygrad.tensor(list(values), requires_grad=True)


def train(optimizer, w, n):
    for _ in range(n):
        optimizer.zero_grad()
        ((w - 3) ** 2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.05, momentum=0.5, nesterov=True),
    lambda p: optim.Adam(p, lr=0.3), lambda p: optim.AdamW(p, lr=0.3, weight_decay=0)])
def test_minimum_of_a_parabola_is_found(make):
    w = parameter(0.0, 10.0)
    train(make([w]), w, 200)
    assert w.tolist() == pytest.approx([3, 3], abs=1e-2)


def test_maximize_goes_uphill():
    w = parameter(1.0)
    optimizer = optim.SGD([w], lr=0.1, maximize=True)
    (-(w - 3) ** 2).sum().backward()
    optimizer.step()
    assert w.item() == pytest.approx(1.4)


def test_groups_have_options_of_their_own():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.01}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == pytest.approx((0.9, 0.99))
    optimizer.param_groups[1]["lr"] = 1.0
    optimizer.step()
    assert b.item() == pytest.approx(-0.01)


def test_learning_rate_may_be_a_tensor():
    w = parameter(1.0)
    w.grad = cygrad.ones(1)
    optim.SGD([w], lr=cygrad.tensor(0.25)).step()
    assert w.item() == 0.75


def test_parameters_are_checked():
    w = parameter(1.0)
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
        optim.SGD(w, lr=0.1)
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([], lr=0.1)
    with pytest.raises(TypeError, match="can only optimize Tensors"):
        optim.SGD([1.0], lr=0.1)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([w * 2], lr=0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)
    with pytest.raises(TypeError, match="got a set"):
        optim.SGD([{"params": {w}}], lr=0.1)
    with pytest.raises(TypeError, match="expected a dict"):
        optim.SGD([w], lr=0.1).add_param_group([w])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([w, w], lr=0.1)


@pytest.mark.parametrize(("make", "text"), [
    (lambda p: optim.SGD(p, lr=-1), "Invalid learning rate: "),
    (lambda p: optim.SGD(p, momentum=-1), "Invalid momentum value: "),
    (lambda p: optim.SGD(p, weight_decay=-1), "Invalid weight_decay value: "),
    (lambda p: optim.SGD(p, nesterov=True), "Nesterov momentum requires"),
    (lambda p: optim.SGD(p, nesterov=True, momentum=0.9, dampening=0.1), "Nesterov momentum requires"),
    (lambda p: optim.Adam(p, betas=(1.0, 0.9)), "Invalid beta parameter at index 0"),
    (lambda p: optim.Adam(p, betas=(0.9, -0.1)), "Invalid beta parameter at index 1"),
    (lambda p: optim.Adam(p, eps=-1), "Invalid epsilon value: "),
    (lambda p: optim.AdamW(p, lr=float("nan")), "Invalid learning rate: "),
])
def test_options_are_checked(make, text):
    with pytest.raises(ValueError, match=text):
        make([parameter(1.0)])


def test_zero_grad():
    w, v = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([w, v], lr=0.1)
    w.grad = cygrad.ones(1)
    gradient = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is gradient
    assert gradient.tolist() == [0]
    assert v.grad is None
    optimizer.zero_grad()
    assert w.grad is None


def test_zero_grad_takes_the_gradient_out_of_its_graph():
    w = parameter(3.0)
    (w ** 2).sum().backward(create_graph=True)
    assert w.grad.requires_grad
    optim.SGD([w]).zero_grad(set_to_none=False)
    assert not w.grad.requires_grad
    assert w.grad.tolist() == [0]


def test_closure_runs_with_grad_mode_on_and_its_result_is_returned():
    w = parameter(1.0)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with cygrad.no_grad():
        assert optimizer.step(closure).item() == 1
    assert w.item() == pytest.approx(0.8)
    assert optimizer.step() is None


def test_grad_mode_is_the_same_after_a_step():
    w = parameter(1.0)
    w.grad = cygrad.ones(1)
    optim.Adam([w]).step()
    assert cygrad.is_grad_enabled()
    with pytest.raises(TypeError):
        cygrad._core.optimizers.optimize.sgd([w, "no tensor"], {}, 0.1, 0, 0, 0, False, False)
    assert cygrad.is_grad_enabled()


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.1, amsgrad=True)])
def test_state_goes_through_state_dict_pickle_and_deepcopy(make):
    expected = parameter(0.0, 1.0)
    train(make([expected]), expected, 6)

    w = parameter(0.0, 1.0)
    optimizer = make([w])
    train(optimizer, w, 3)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["params"] == [0]
    assert set(saved["state"]) == {0}
    for how in "state_dict", "pickle", "deepcopy":
        if how == "state_dict":
            v = w.detach().clone().requires_grad_()
            other = make([v])
            other.load_state_dict(copy.deepcopy(saved))
        else:
            v, other = (pickle.loads(pickle.dumps((w, optimizer))) if how == "pickle"
                        else copy.deepcopy((w, optimizer)))
            assert other.param_groups[0]["params"][0] is v
        train(other, v, 3)
        assert v.tolist() == expected.tolist(), how


def test_loaded_state_gets_the_dtype_of_its_parameter_and_is_a_copy():
    w = parameter(0.0)
    optimizer = optim.Adam([w])
    train(optimizer, w, 1)
    v = cygrad.zeros(1, dtype=cygrad.float64, requires_grad=True)
    other = optim.Adam([v])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[v]["exp_avg"].dtype == cygrad.float64
    assert other.state[v]["step"].dtype == cygrad.float32
    train(optimizer, w, 1)
    assert other.state[v]["step"].item() == 1


def test_state_dicts_that_do_not_fit_are_refused():
    a, b = parameter(1.0), parameter(1.0)
    with pytest.raises(ValueError, match="a different number of parameter groups"):
        optim.SGD([a]).load_state_dict(optim.SGD([{"params": a}, {"params": b}]).state_dict())
    with pytest.raises(ValueError, match="match the size"):
        optim.SGD([a]).load_state_dict(optim.SGD([a, b]).state_dict())


def test_repr():
    text = repr(optim.SGD([parameter(1.0)], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")


def test_hogwild_threads_share_parameters_safely():
    """Values may race; nothing may crash, and the parabola's minimum is found all the same."""
    model = nn.Linear(50, 20)
    errors = []

    def work(shared_optimizer):
        try:
            optimizer = shared_optimizer or optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
            x = cygrad.ones(8, 50)
            for _ in range(100):
                optimizer.zero_grad()
                try:
                    (model(x) ** 2).mean().backward()
                except RuntimeError as error:      # the other thread has changed a saved weight: autograd says so
                    if "changed in place" not in str(error):
                        raise
                optimizer.step()
        except BaseException as error:
            errors.append(error)

    for shared in None, optim.Adam(model.parameters(), lr=0.01):
        threads = [threading.Thread(target=work, args=(shared,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert all(cygrad.isfinite(p).all() for p in model.parameters())


OPTIMIZERS = [name for name in dir(optim) if isinstance(getattr(optim, name), type)
              and issubclass(getattr(optim, name), optim.Optimizer) and name not in ("Optimizer", "LBFGS")]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_assigned_sparse_gradient_changes_the_parameter_or_raises(name):
    parameter_checks.sparse_tensors.clear()
    w = nn.Parameter(cygrad.ones(2, 2))
    w.grad = cygrad.eye(2).to_sparse()
    optimizer = getattr(optim, name)([w], lr=0.1)
    if name in ("SGD", "Adagrad", "SparseAdam"):
        optimizer.step()
        cygrad.testing.assert_close(w.detach(), cygrad.ones(2, 2) - 0.1 * cygrad.eye(2))
    else:
        with pytest.raises(RuntimeError, match="sparse gradients are not supported"):
            optimizer.step()


def test_a_gradient_without_data_is_refused():
    w = nn.Parameter(cygrad.ones(2, 2))
    w.grad = cygrad.eye(2).to_sparse()
    parameter_checks.sparse_tensors.clear()
    with pytest.raises(RuntimeError, match="gradient without data"):
        optim.SGD([w], lr=0.1).step()
    assert w.tolist() == [[1, 1], [1, 1]]


def test_names_of_parameters_survive_a_state_without_names():
    layer = nn.Linear(2, 1)
    state = optim.SGD(layer.parameters(), lr=0.1).state_dict()
    optimizer = optim.SGD(layer.named_parameters(), lr=0.2)
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_adafactor_continues_from_a_state_whose_step_is_a_number():
    found = []
    for number in (False, True):
        w = nn.Parameter(cygrad.ones(3))
        optimizer = optim.Adafactor([w], lr=0.1)
        for _ in range(3):
            w.grad = cygrad.tensor([1.0, 2.0, 3.0])
            optimizer.step()
            if number:
                state = optimizer.state_dict()
                state["state"][0]["step"] = float(state["state"][0]["step"])
                optimizer.load_state_dict(state)
        found.append(w.tolist())
    assert found[0] == found[1]


def test_lbfgs_scalers_and_conversions_accept_sparse_gradients():
    layer = nn.Embedding(2, 2, sparse=True)
    with cygrad.no_grad():
        layer.weight.fill_(1.0)

    def closure():
        layer.zero_grad()
        loss = layer(cygrad.tensor([1])).sum()
        loss.backward()
        return loss

    optim.LBFGS(layer.parameters(), lr=0.1, max_iter=1).step(closure)
    assert layer.weight[0].tolist() == [1, 1] and (layer.weight[1] < 1).all()
    layer.double()
    assert layer.weight.grad.is_sparse and layer.weight.grad.dtype is cygrad.float64
    optimizer, before = optim.SGD(layer.parameters(), lr=1.0), layer.weight.detach().clone()
    scaler = cygrad.GradScaler("cpu", init_scale=1.0)
    scaler.scale(cygrad.ones(()))
    scaler.step(optimizer)
    scaler.update()
    assert layer.weight.detach().equal(before - layer.weight.grad.to_dense())
    layer.weight.grad = layer.weight.grad * math.inf
    scaler.step(optimizer)
    assert layer.weight.isfinite().all()


@pytest.mark.parametrize("name", ["SGD", "Adam", "LBFGS", "Rprop", "Adafactor"])
def test_options_are_checked_before_parameters(name):
    with pytest.raises(ValueError, match=r"lr|learning rate"):
        getattr(optim, name)(None, lr=-1.0)
    with pytest.raises(TypeError, match="params argument"):
        getattr(optim, name)(None)
