"""DataParallel over threads equals one pass; thread-local state."""

import threading
from collections import namedtuple

import pytest

import cygrad
from cygrad import nn
from cygrad.autograd.graph import saved_tensors_hooks


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.again = self.first                    # one module by two names
        self.second = nn.Linear(7, 2)
        self.register_buffer("count", cygrad.zeros(()))
        self.threads = set()

    def forward(self, x, scale=1.0):
        self.threads.add(threading.current_thread().name)
        assert self.again is self.first
        self.count += 1
        self.last = x.shape[0]
        return self.second(self.first(x).tanh()) * scale


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_results_and_gradients_are_those_of_one_pass(n, size):
    cygrad.manual_seed(0)
    net = Net().double()
    x = cygrad.randn(size, 5, dtype=cygrad.float64, requires_grad=True)
    out = net(x)
    (out ** 2).sum().backward()
    expected, of_input = gradients(net), x.grad.clone()
    net.zero_grad()
    x.grad = None
    net.threads.clear()
    parallel = nn.DataParallel(net, n)
    again = parallel(x)
    assert cygrad.allclose(again, out)
    (again ** 2).sum().backward()
    for found, wanted in zip(gradients(net), expected, strict=True):
        assert cygrad.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert cygrad.allclose(x.grad, of_input)
    assert net.last == (size if n == 1 or size == 1 else net.last)
    parts = len(x.chunk(n))
    assert len(net.threads) == parts
    assert ("MainThread" in net.threads) == (parts == 1)
    assert net.count.item() == 2               # the first replica works on the module's own buffers, and no other


def test_gradients_of_gradients():
    net = Net().double()
    x = cygrad.randn(6, 5, dtype=cygrad.float64)
    results = []
    for model in net, nn.DataParallel(net, 3):
        grads = cygrad.autograd.grad((model(x) ** 3).sum(), list(net.parameters()), create_graph=True)
        sum((grad ** 2).sum() for grad in grads).backward()
        results.append(gradients(net))
        net.zero_grad()
    for found, wanted in zip(*results, strict=True):
        assert cygrad.allclose(found, wanted, rtol=1e-9)


def test_training_runs_along_the_same_path():
    cygrad.manual_seed(1)
    one, other = Net().double(), Net().double()
    other.load_state_dict(one.state_dict())
    parallel = nn.DataParallel(other, 2)
    assert set(parallel.state_dict()) == {f"module.{name}" for name in one.state_dict()}
    for model, parameters in (one, one.parameters()), (parallel, parallel.parameters()):
        optimizer = cygrad.optim.SGD(parameters, lr=0.1, momentum=0.9)
        generator = cygrad.Generator().manual_seed(2)
        for _ in range(20):
            x = cygrad.randn(8, 5, dtype=cygrad.float64, generator=generator)
            optimizer.zero_grad()
            (model(x, scale=2.0) ** 2).mean().backward()
            optimizer.step()
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert cygrad.allclose(a, b, rtol=1e-10)


def test_hooks_for_saved_tensors_are_local_to_threads():
    """As the note says: set outside, they do not reach the replicas; set inside the module they do."""
    packed = []

    def pack(tensor):
        packed.append(threading.current_thread().name)
        return tensor.clone()

    class Packing(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *args):
            with saved_tensors_hooks(pack, lambda tensor: tensor):
                return self.module(*args)

    net, x = Net(), cygrad.randn(6, 5)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        out = nn.DataParallel(net, 2)(x)
        inside = len(packed)
        net(x)
        assert len(packed) > inside
    assert all(thread == "MainThread" for thread in packed[:inside])     # of `cat` at most
    packed.clear()
    out = nn.DataParallel(Packing(net), 2)(x)
    assert set(packed) == {"replica 0", "replica 1"}
    out.sum().backward()
    assert net.first.weight.grad is not None


def test_grad_modes_reach_the_replicas():
    net, x = nn.DataParallel(Net(), 2), cygrad.randn(4, 5)
    with cygrad.no_grad():
        assert not net(x).requires_grad
    with cygrad.inference_mode():
        assert net(x).is_inference()
    assert net(x).requires_grad


def test_random_numbers_are_reproducible():
    net = nn.DataParallel(nn.Dropout(0.5), 3)
    results = []
    for _ in range(2):
        cygrad.manual_seed(3)
        results.append(net(cygrad.ones(30, 20)))
    assert cygrad.equal(*results)
    assert not cygrad.equal(results[0][:10], results[0][10:20])


def test_errors_come_from_the_replica():
    class Failing(nn.Module):
        def forward(self, x):
            if x[0, 0].item() == 2:
                raise ValueError("not this one")
            return x

    x = cygrad.arange(4).reshape(4, 1)
    with pytest.raises(ValueError, match="not this one") as caught:
        nn.DataParallel(Failing(), 4)(x)
    assert any("replica 2 of 4" in note for note in caught.value.__notes__)


def test_structures_of_arguments_and_results():
    Pair = namedtuple("Pair", "a b")

    class Structured(nn.Module):
        def forward(self, pair, options, plain, *, factor):
            assert plain == "text"
            return {"sum": pair.a + options["b"][0] * factor, "rest": [(pair.b, None)], "pair": Pair(pair.a, pair.b)}

    a, b = cygrad.arange(5.0), cygrad.arange(5.0) * 10
    out = nn.DataParallel(Structured(), [0, 1])(Pair(a, b), {"b": [b]}, "text", factor=2)
    assert out["sum"].tolist() == (a + b * 2).tolist()
    assert out["rest"][0][0].tolist() == b.tolist()
    assert out["rest"][0][1] is None
    assert out["pair"].b.tolist() == b.tolist()


def test_losses_in_the_module_become_a_vector():
    class Loss(nn.Module):
        def forward(self, x):
            return x.sum()

    with pytest.warns(UserWarning, match="stacked to a vector"):
        assert nn.DataParallel(Loss(), 2)(cygrad.ones(4)).tolist() == [2, 2]
    assert nn.DataParallel(Loss(), 1)(cygrad.ones(4)).item() == 4


def test_another_dimension_and_other_forms():
    net = nn.DataParallel(nn.Tanh(), 2, dim=1)
    x = cygrad.randn(3, 4)
    assert cygrad.equal(net(x), x.tanh())
    assert cygrad.equal(nn.parallel.data_parallel(nn.Tanh(), x, [0, 1, 2]), x.tanh())
    assert nn.DataParallel(nn.Tanh())(x).shape == (3, 4)
    assert nn.DataParallel(nn.Tanh(), 3)(cygrad.ones(0, 2)).shape == (0, 2)
    assert "DataParallel" in repr(net)
    for wrong in 0, [], True, "cpu":
        with pytest.raises(ValueError, match="device_ids"):
            nn.DataParallel(nn.Tanh(), wrong)
    with pytest.raises(ValueError, match="same keys"):
        nn.parallel.gather([{"a": x}, {"b": x}])
    with pytest.raises(TypeError, match="results must be"):
        nn.parallel.gather([1, 2])
    with pytest.raises(ValueError, match="arguments for each"):
        nn.parallel.parallel_apply([net], [])


def test_parametrized_modules():
    net = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    x = cygrad.randn(6, 4)
    net(x).sum().backward()
    expected = gradients(net)
    net.zero_grad()
    nn.DataParallel(net, 3)(x).sum().backward()
    for found, wanted in zip(gradients(net), expected, strict=True):
        assert cygrad.allclose(found, wanted, atol=1e-5)


def test_shared_weights_have_gradients_of_their_own():
    model = Net()
    twins = [nn.parallel.share_weights(model) for _ in range(3)]
    errors = []

    def train(twin, seed):
        try:
            optimizer = cygrad.optim.SGD(twin.parameters(), lr=0.01)
            generator = cygrad.Generator().manual_seed(seed)
            for _ in range(60):
                optimizer.zero_grad()
                (twin(cygrad.randn(16, 5, generator=generator)) ** 2).mean().backward()
                optimizer.step()
        except BaseException as error:
            errors.append(error)

    x = cygrad.randn(200, 5)
    before = (model(x) ** 2).mean().item()
    threads = [threading.Thread(target=train, args=(twin, seed)) for seed, twin in enumerate(twins)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert (model(x) ** 2).mean().item() < before
    assert all(parameter.grad is None for parameter in model.parameters())
    for twin in twins:
        assert cygrad.equal(twin.first.weight, model.first.weight)


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match="only a Module can be copied"):
        nn.DataParallel(len, device_ids=2)(cygrad.ones(4, 3))
