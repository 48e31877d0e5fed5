"""DistributedDataParallel gives the gradients of one process on the whole batch, in all modes."""

import copy

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn, optim
from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, orthogonalize, powerSGD_hook
from cygrad.distributed.algorithms.join import Join
from cygrad.distributed.optim import ZeroRedundancyOptimizer
from cygrad.nn.parallel import DistributedDataParallel
from cygrad.utils.checkpoint import checkpoint

from .ranks import ranks

pytestmark = pytest.mark.slow

dist = torch.distributed


def perceptron():
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))


def convolutional(norm=nn.BatchNorm2d):
    return nn.Sequential(nn.Conv2d(2, 4, 3), norm(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 8, num_layers=2, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.block(x).mean(1))


MODELS = {"perceptron": (perceptron, (6,)), "convolutional": (lambda: convolutional(nn.SyncBatchNorm), (2, 6, 6)),
          "recurrent": (Recurrent, (7, 5)), "attention": (Attention, (5, 8))}


def batch(shape, size=8, seed=0):
    random = np.random.default_rng(seed)
    return (torch.from_numpy(random.standard_normal((size, *shape))),
            torch.from_numpy(random.standard_normal((size, 4))))


def own(*tensors):
    """This rank's part of a batch."""
    return [tensor.chunk(dist.get_world_size())[dist.get_rank()] for tensor in tensors]


def double(make):
    """The same model on all ranks, in double precision."""
    torch.manual_seed(3)
    return make().to(torch.float64)


def train(model, steps, shape, parts, optimizer=None):
    """Losses of some steps; `parts` cuts each batch."""
    optimizer = optimizer or optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        x, y = parts(*batch(shape, seed=step))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def close(model, other, tolerance=1e-10):
    for (name, mine), theirs in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance,
                                   err_msg=name)


def alike_everywhere(model):
    for tensor in model.state_dict().values():
        found = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(found, tensor.detach())
        assert all(torch.equal(found[0], one) for one in found)


def everything(*tensors):
    return tensors


@ranks(2, 4)
def test_as_one_process_on_the_whole_batch():
    for name, (make, shape) in MODELS.items():
        alone = double(make)
        if name == "convolutional":
            alone[1] = nn.BatchNorm2d(4).to(torch.float64)
        start = copy.deepcopy(alone)
        expected = train(alone, 4, shape, everything)
        for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}, {"find_unused_parameters": True},
                        {"deterministic": True}, {"bucket_cap_mb": 1e-4},
                        {"static_graph": True, "bucket_cap_mb": 1e-4}):
            model = double(make)
            if dist.get_rank():
                for parameter in model.parameters():
                    parameter.data.add_(1)                     # those of rank 0 hold
            model = DistributedDataParallel(model, **options)
            close(model.module, start)
            losses = torch.tensor(train(model, 4, shape, own), dtype=torch.float64)
            close(model.module, alone)
            alike_everywhere(model)
            dist.all_reduce(losses, dist.ReduceOp.AVG)
            np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-9, err_msg=f"{name} {options}")


@ranks(2)
def test_batch_norm_of_several_ranks():
    """Also with batches of different sizes, without affine parameters, and with a large mean in float32."""
    rank = dist.get_rank()
    for shape, cut in (((6, 3), 2), ((6, 3, 4), 5), ((6, 3, 4, 2), 3)):
        x = torch.from_numpy(np.random.default_rng(1).standard_normal(shape)) * 3 + 1
        for affine, momentum in ((True, 0.1), (False, None)):
            alone = [nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d][x.ndim - 2](3, affine=affine, momentum=momentum)
            both = nn.SyncBatchNorm.convert_sync_batchnorm(alone.to(torch.float64))
            alone = copy.deepcopy(alone)
            whole = x.clone().requires_grad_()
            part = (x[:cut] if rank == 0 else x[cut:]).clone().requires_grad_()
            expected, found = alone(whole), both(part)
            expected.sin().sum().backward()
            found.sin().sum().backward()
            side = slice(0, cut) if rank == 0 else slice(cut, None)
            np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy()[side], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(part.grad.numpy(), whole.grad.numpy()[side], rtol=1e-9, atol=1e-12)
            close(both, alone)
            if affine:
                dist.all_reduce(both.weight.grad)
                np.testing.assert_allclose(both.weight.grad.numpy(), alone.weight.grad.numpy(), rtol=1e-9)
            np.testing.assert_allclose(both.eval()(part).detach().numpy(), alone.eval()(x).detach().numpy()[side],
                                       rtol=1e-9)
    far = torch.from_numpy(np.random.default_rng(2).standard_normal((64, 2)).astype(np.float32)) + 10_000
    layer = nn.SyncBatchNorm(2)
    np.testing.assert_allclose(layer(far).detach().numpy(), nn.BatchNorm1d(2)(far).detach().numpy(), atol=1e-2)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.SyncBatchNorm(3)(torch.ones(1 if rank else 0, 3))
    with pytest.raises(RuntimeError, match="expected 3 channels"):
        nn.SyncBatchNorm(3)(torch.ones(2, 4))


@ranks(2, 4)
def test_the_same_bits_each_time():
    """With the fixed tree: bits depend neither on buckets nor on how gradients travel."""
    def run(**options):
        torch.manual_seed(5)
        model = DistributedDataParallel(perceptron(), deterministic=True, **options)
        optimizer = optim.Adam(model.parameters())
        for step in range(5):
            x, y = (tensor.float() for tensor in own(*batch((6,), seed=step)))
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        return b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    first = run()
    assert first == run() == run(bucket_cap_mb=1e-4) == run(gradient_as_bucket_view=True, static_graph=True)


class Branches(nn.Module):
    """Each rank may use other parameters."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.never = (nn.Linear(3, 1) for _ in range(3))

    def forward(self, x, which):
        return {"out": [(self.first if which == 0 else self.second)(x), "text"]}


@ranks(2)
def test_unused_parameters():
    rank = dist.get_rank()
    for static in (False, True):
        model = DistributedDataParallel(double(Branches), find_unused_parameters=True, static_graph=static,
                                        bucket_cap_mb=1e-5)
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(2, 3, dtype=torch.float64), rank)["out"][0].sum().backward()
            assert model.module.never.weight.grad is None
            assert model.module.first.weight.grad.tolist() == [[1] * 3] == model.module.second.weight.grad.tolist()
    # Used on one rank only; and on none.
    model = DistributedDataParallel(double(Branches), find_unused_parameters=True)
    model(torch.ones(2, 3, dtype=torch.float64), 0)["out"][0].sum().backward()
    assert model.module.first.bias.grad.item() == 2 and model.module.second.bias.grad is None
    # Without the search the next forward says which are missing.
    model = DistributedDataParallel(double(Branches), bucket_cap_mb=1e-5)
    model(torch.ones(2, 3, dtype=torch.float64), 0)["out"][0].sum().backward()
    with pytest.raises(RuntimeError, match=r"were reduced.*second\.weight.*find_unused_parameters"):
        model(torch.ones(2, 3, dtype=torch.float64), 0)


@ranks(2)
def test_gradients_that_add_up():
    """no_sync, several backwards, forwards without backward, frozen parameters, buffers."""
    shape = (6,)
    for options in ({}, {"gradient_as_bucket_view": True}, {"deterministic": True}):
        alone, model = double(perceptron), DistributedDataParallel(double(perceptron), **options)
        for turn in range(3):
            for step in range(3):
                x, y = batch(shape, seed=10 * turn + step)
                nn.functional.mse_loss(alone(x), y).backward()
                x, y = own(x, y)
                if step < 2:
                    with model.no_sync():
                        nn.functional.mse_loss(model(x), y).backward()
                else:
                    model(x)                                       # without a backward
                    with torch.no_grad():
                        model(x)
                    nn.functional.mse_loss(model(x), y).backward()
            for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
                np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-9, atol=1e-12)
            for one in (model, alone):
                one.zero_grad(set_to_none=turn != 1)
    model = double(perceptron)
    model[0].requires_grad_(False)
    wrapped = DistributedDataParallel(model)
    wrapped(torch.ones(1, 6, dtype=torch.float64)).sum().backward()
    assert model[0].weight.grad is None and model[2].weight.grad is not None
    # The buffers of rank 0 hold in each forward.
    model = DistributedDataParallel(nn.BatchNorm1d(2))
    model.module.running_mean.fill_(dist.get_rank() + 5.0)
    with torch.no_grad():
        model.eval()(torch.ones(2, 2))
    assert model.module.running_mean.tolist() == [5, 5]
    model = DistributedDataParallel(nn.BatchNorm1d(2), broadcast_buffers=False)
    model.module.running_mean.fill_(float(dist.get_rank()))
    model(torch.ones(2, 2))
    assert model.module.running_mean[0].item() == pytest.approx(0.9 * dist.get_rank() + 0.1)


class Twice(nn.Module):
    """A checkpoint within a checkpointed model: its parameters get gradients in several backwards."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(3):
            x = checkpoint(self.layer, x, use_reentrant=True)
        return x


@ranks(2)
def test_static_graph_with_checkpoints():
    alone, model = double(Twice), DistributedDataParallel(double(Twice), static_graph=True)
    for seed in range(3):
        x = batch((3,), seed=seed)[0].requires_grad_()
        alone(x).sum().backward()
        part = own(x.detach())[0].requires_grad_()
        (model(part).sum() * 2).backward()
        np.testing.assert_allclose(model.module.layer.weight.grad.numpy(), alone.layer.weight.grad.numpy(), rtol=1e-9)
    model = DistributedDataParallel(double(Twice))
    with pytest.raises(RuntimeError, match=r"one gradient of each parameter.*layer\.(weight|bias).*static_graph"):
        model(part).sum().backward()


@ranks(2, 4)
def test_communication_hooks():
    n = dist.get_world_size()
    alone = double(perceptron).float()
    x, y = (tensor.float() for tensor in batch((6,)))
    nn.functional.mse_loss(alone(x), y).backward()
    tolerances = {default_hooks.allreduce_hook: 1e-6, default_hooks.bf16_compress_hook: 2 ** -7,
                  default_hooks.fp16_compress_hook: 2 ** -10,
                  default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook): 2 ** -7}
    for hook, tolerance in tolerances.items():
        for views in (False, True):
            model = DistributedDataParallel(double(perceptron).float(), gradient_as_bucket_view=views,
                                            bucket_cap_mb=1e-3)
            model.register_comm_hook(None, hook)
            for _ in range(2):
                model.zero_grad()
                nn.functional.mse_loss(model(own(x)[0]), own(y)[0]).backward()
            for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
                biggest = theirs.grad.abs().max().item()
                np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=tolerance * biggest)
    seen = []

    def counting(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), tuple(bucket.buffer().shape), len(bucket.parameters())))
        assert [part.shape for part in bucket.gradients()] == [part.shape for part in bucket.parameters()]
        future = dist.Future()
        future.set_result(torch.full_like(bucket.buffer(), 7.0))
        return future
    model = DistributedDataParallel(double(perceptron), bucket_cap_mb=1e-3)
    model.register_comm_hook("state", counting)
    model(torch.ones(1, 6, dtype=torch.float64)).sum().backward()
    assert all((parameter.grad == 7).all() for parameter in model.parameters())
    assert [one[1] for one in seen] == list(range(len(seen))) and [one[2] for one in seen].index(True) == len(seen) - 1
    with pytest.raises(RuntimeError, match="only be called once"):
        model.register_comm_hook(None, counting)
    complex_one = DistributedDataParallel(nn.Linear(2, 1, dtype=torch.complex64))
    complex_one.register_comm_hook(None, default_hooks.bf16_compress_hook)
    complex_one(torch.ones(1, 2, dtype=torch.complex64) * dist.get_rank()).abs().sum().backward()
    assert n > 1


@ranks(2)
def test_power_sgd():
    """Matrices of low rank lose nothing; errors of others are added to later steps."""
    def gradient_sum(rank, rounds, **options):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(20, 30, bias=True))
        state = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2, **options)
        model.register_comm_hook(state, powerSGD_hook)
        total = torch.zeros(30, 20)
        for _ in range(rounds):
            model.zero_grad()
            x = torch.from_numpy(np.random.default_rng(dist.get_rank()).standard_normal((2, 20)).astype(np.float32))
            model(x).square().sum().backward()
            total += model.module.weight.grad
        return total / rounds, model, state
    exact = gradient_sum(4, 2)[0]                         # not yet compressed
    _, model, state = gradient_sum(4, 3)              # two samples on each of two ranks: rank four
    np.testing.assert_allclose(model.module.weight.grad.numpy(), exact.numpy(), rtol=1e-3, atol=1e-3)
    assert state.compression_stats()[0] > 2
    alike_everywhere(model)
    one_step = gradient_sum(1, 3)[1].module.weight.grad
    missed = (one_step - exact).norm().item()
    average = gradient_sum(1, 60)[0]
    assert (average - exact).norm().item() < 0.2 * missed
    q = torch.randn(10, 4)
    orthogonalize(q)
    np.testing.assert_allclose((q.t() @ q).numpy(), np.eye(4), atol=1e-5)
    q = torch.randn(10, 1) @ torch.ones(1, 4)             # columns that depend on each other
    orthogonalize(q)
    np.testing.assert_allclose((q.t() @ q).numpy(), np.eye(4), atol=1e-5)
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        PowerSGDState(None, start_powerSGD_iter=1)


@ranks(2, 4)
def test_inputs_of_different_lengths():
    rank, n = dist.get_rank(), dist.get_world_size()
    for by_initial in (True, False):
        for norm in (nn.BatchNorm1d, nn.Identity):
            torch.manual_seed(0)
            layers = nn.Sequential(nn.Linear(3, 4), norm(4), nn.Linear(4, 1))
            model = DistributedDataParallel(layers, bucket_cap_mb=1e-5)
            optimizer = optim.SGD(model.parameters(), lr=0.01)
            with model.join(divide_by_initial_world_size=by_initial):
                for step in range(3 + 2 * rank):
                    optimizer.zero_grad()
                    model(torch.ones(2, 3) * (step + 1)).sum().backward()
                    if step >= 3 + 2 * (n - 2) and norm is nn.Identity:       # the last rank is the only one left
                        # bias of the last layer: two samples, each with gradient one
                        assert model.module[2].bias.grad.item() == pytest.approx(2 / n if by_initial else 2)
                    optimizer.step()
            alike_everywhere(model)
    model = DistributedDataParallel(nn.Linear(2, 1))

    def loop():
        with model.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="no more inputs"):
        loop()


@ranks(2, 4)
def test_sharded_optimizer():
    rank = dist.get_rank()
    for views in (False, True):
        alone, model = double(perceptron), DistributedDataParallel(double(perceptron))
        def groups(layers):
            return [{"params": layers[0].parameters(), "lr": 0.01}, {"params": list(layers[2:].parameters())}]
        plain = optim.Adam(groups(alone), lr=0.1)
        sharded = ZeroRedundancyOptimizer(groups(model.module), optim.Adam, parameters_as_bucket_view=views, lr=0.1)
        schedules = [optim.lr_scheduler.StepLR(one, 2, 0.5) for one in (plain, sharded)]
        for _ in range(2):
            train(alone, 3, (6,), everything, plain)
            train(model, 3, (6,), own, sharded)
            for schedule in schedules:
                schedule.step()
            close(model.module, alone)
        held = sum(state["exp_avg"].numel() for state in sharded.optim.state.values())
        assert held < sum(parameter.numel() for parameter in alone.parameters()) * 0.7
        with pytest.raises(RuntimeError, match="consolidate"):
            sharded.state_dict()
        sharded.consolidate_state_dict(to=1)
        saved = [sharded.state_dict() if rank == 1 else None]
        dist.broadcast_object_list(saved, src=1)
        for number, state in plain.state_dict()["state"].items():
            np.testing.assert_allclose(saved[0]["state"][number]["exp_avg"].numpy(), state["exp_avg"].numpy(),
                                       rtol=1e-9, atol=1e-12)
        again = ZeroRedundancyOptimizer(groups(model.module), optim.Adam, lr=1.0)
        again.load_state_dict(saved[0])
        train(alone, 2, (6,), everything, plain)
        train(model, 2, (6,), own, again)
        close(model.module, alone)
    model = DistributedDataParallel(double(perceptron))
    sharded = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1)
    with Join([model, sharded]):
        for step in range(1 + rank):
            x, y = own(*batch((6,), seed=step))
            sharded.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            sharded.step()
    alike_everywhere(model)


@ranks(2)
def test_wrong_models_are_refused():
    rank = dist.get_rank()
    with pytest.raises(RuntimeError, match=r"same shapes on all ranks.*\(3, 2\).*\(4, 2\)"):
        DistributedDataParallel(nn.Linear(2, 3 + rank))
    with pytest.raises(RuntimeError, match="1 tensors on rank 0 and 2 on rank 1"):
        DistributedDataParallel(nn.Linear(2, 3, bias=bool(rank)))
    with pytest.raises(RuntimeError, match="no parameter requires grad"):
        DistributedDataParallel(nn.ReLU())
    with pytest.raises(RuntimeError, match="are uninitialized"):
        DistributedDataParallel(nn.LazyLinear(3))
    with pytest.raises(NotImplementedError, match="mixed_precision"):
        DistributedDataParallel(nn.Linear(2, 3), mixed_precision="half")
    with pytest.raises(ValueError, match="bucket_cap_mb"):
        DistributedDataParallel(nn.Linear(2, 3), bucket_cap_mb=0)
    model = DistributedDataParallel(nn.Linear(2, 3))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    twin = copy.deepcopy(model)
    twin(torch.ones(1, 2) * rank).sum().backward()
    assert twin.module.weight.grad.tolist() == [[0.5] * 2] * 3 and model.module.weight.grad is None


@ranks(2)
def test_models_of_short_floats():
    """Averages are those of float32, rounded once; hooks, shares of the optimizer and PowerSGD take them as well."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype, form in ((torch.bfloat16, default_hooks.fp16_compress_hook),
                        (torch.float16, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))):
        x = batch((6,), seed=rank)[0].to(dtype)
        alone = double(perceptron).to(dtype)
        alone(x).square().mean().backward()
        expected = []
        for parameter in alone.parameters():
            parts = [torch.empty_like(parameter.grad) for _ in range(n)]
            dist.all_gather(parts, parameter.grad)
            expected.append(sum(part.float() for part in parts) / n)
        for options in ({}, {"gradient_as_bucket_view": True}, {"deterministic": True}):
            for hook in (None, default_hooks.bf16_compress_hook, form):
                model = DistributedDataParallel(double(perceptron).to(dtype), **options)
                if hook is not None:
                    model.register_comm_hook(None, hook)
                model(x).square().mean().backward()
                for parameter, wanted in zip(model.parameters(), expected, strict=True):
                    assert parameter.grad.dtype is dtype
                    np.testing.assert_allclose(parameter.grad.float().numpy(), wanted.numpy(), rtol=2 ** -7,
                                               atol=2 ** -8 * wanted.abs().max().item())
        for views in (False, True):
            optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, parameters_as_bucket_view=views, lr=0.1)
            before = [parameter.detach().clone() for parameter in model.parameters()]
            optimizer.step()
            alike_everywhere(model)
            for parameter, old in zip(model.parameters(), before, strict=True):
                wanted = old - 0.1 * parameter.grad
                np.testing.assert_allclose(parameter.detach().float().numpy(), wanted.float().numpy(), rtol=2 ** -7,
                                           atol=1e-3)
        thin = DistributedDataParallel(nn.Linear(20, 30).to(dtype))
        thin.register_comm_hook(PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2), powerSGD_hook)
        for _ in range(4):
            thin.zero_grad()
            thin(torch.ones(2, 20, dtype=dtype) * (rank + 1)).sum().backward()
        np.testing.assert_allclose(thin.module.weight.grad.float().numpy(), 3.0, rtol=0.05)
