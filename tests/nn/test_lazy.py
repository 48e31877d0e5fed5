"""Lazy convolutions and normalizations infer their channels."""

import copy
import inspect
import pickle

import pytest

import cygrad
from cygrad import nn
from tests.reference import torch

LAYERS = [
    *[(f"LazyConv{n}d", {"out_channels": 4, "kernel_size": 3, **options}, (2, 6, *(5,) * n))
      for n in (1, 2, 3) for options in ({}, {"groups": 2, "bias": False}, {"padding": "same", "dilation": 2})],
    *[(f"LazyConvTranspose{n}d", {"out_channels": 4, "kernel_size": 3, **options}, (2, 6, *(5,) * n))
      for n in (1, 2, 3) for options in ({}, {"groups": 2, "stride": 2, "output_padding": 1})],
    *[(f"Lazy{kind}Norm{n}d", options, (2, 6, *(5,) * n))
      for kind in ("Batch", "Instance") for n in (1, 2, 3)
      for options in ({}, {"affine": False}, {"track_running_stats": False}, {"bias": False, "momentum": 0.3})],
]


@pytest.mark.parametrize(("name", "options", "shape"), LAYERS)
def test_same_as_pytorch(name, options, shape):
    results = []
    for library in (cygrad, torch):
        made = getattr(library.nn, name)(**options)
        seen = [made.has_uninitialized_params(), type(made).__name__]
        dry = getattr(library.nn, name)(**options)
        out = made(library.arange(float(library.ones(shape).numel())).reshape(shape) / 100)
        seen += [tuple(out.shape), type(made).__name__, repr(made),
                 [(key, tuple(value.shape)) for key, value in made.state_dict().items()],
                 [parameter.requires_grad for parameter in made.parameters()]]
        if "Conv" in name:
            assert all(float(parameter.detach().abs().max()) > 0 for parameter in made.parameters())
        else:
            seen.append([[round(number, 3) for number in value.reshape(-1).tolist()]
                         for value in made.state_dict().values()])
        dry.load_state_dict(made.state_dict())
        if library is cygrad or "Conv" in name:            # PyTorch leaves num_features 0 when a state is loaded
            assert dry(library.ones(shape)).shape == out.shape
            assert type(dry).__name__ == type(made).__name__
        results.append(seen)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", sorted({name for name, *_ in LAYERS}))
def test_same_signature_as_pytorch(name):
    ours, theirs = (inspect.signature(getattr(library.nn, name).__init__).parameters.values()
                    for library in (cygrad, torch))
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs]


def test_inputs_without_a_batch():
    layer = nn.LazyConv2d(4, 3)
    assert layer(cygrad.ones(6, 5, 5)).shape == (4, 3, 3)
    assert layer.in_channels == 6
    layer = nn.LazyInstanceNorm2d()
    assert layer(cygrad.ones(6, 5, 5)).shape == (6, 5, 5)
    assert layer.num_features == 6


def test_inputs_that_do_not_fit():
    with pytest.raises(RuntimeError, match="xpected 3D"):
        nn.LazyConv2d(4, 3)(cygrad.ones(5, 5))
    with pytest.raises(ValueError, match="groups must divide"):
        nn.LazyConv2d(4, 3, groups=2)(cygrad.ones(1, 3, 5, 5))
    with pytest.raises(ValueError, match="input"):
        nn.LazyBatchNorm2d()(cygrad.ones(5, 5))


def test_sizes_after_loading_are_those_of_the_state():
    layer = nn.LazyConvTranspose1d(4, 3, groups=2)
    other = nn.ConvTranspose1d(6, 4, 3, groups=2)
    layer.load_state_dict(other.state_dict())
    x = cygrad.randn(2, 6, 5)
    assert cygrad.equal(layer(x), other(x))
    assert layer.in_channels == 6


@pytest.mark.parametrize("use", [
    lambda x: x + 1, lambda x: 2 * x,
    lambda x: x.sum(), lambda x: cygrad.stack([x, x]), lambda x: x[0], lambda x: x @ x,
    lambda x: x.clone(), lambda x: x.mul_(2), lambda x: cygrad.nn.functional.linear(cygrad.ones(2, 2), x)])
@pytest.mark.parametrize("module", [cygrad.nn.LazyLinear(2), cygrad.nn.LazyBatchNorm1d()])
def test_operations_on_uninitialized_tensors_are_refused(use, module):
    for value in (*module.parameters(), module.__dict__["_buffers"].get("running_mean")):
        if value is not None:
            with cygrad.no_grad(), pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
                use(value)


@pytest.mark.parametrize("convert", [
    lambda m: m.double(), lambda m: m.half(), lambda m: m.to(cygrad.float64), lambda m: m.to("cpu"),
    lambda m: m.type(cygrad.float64), lambda m: m.requires_grad_(False), lambda m: m.to_empty(device="cpu"),
    lambda m: m.load_state_dict(m.state_dict()), lambda m: copy.deepcopy(m), lambda m: pickle.loads(pickle.dumps(m))])
def test_modules_with_uninitialized_tensors_convert(convert):
    for module in (cygrad.nn.LazyLinear(2), cygrad.nn.LazyBatchNorm1d()):
        assert module.has_uninitialized_params()
        convert(module)
        assert module.has_uninitialized_params()


@pytest.mark.parametrize("name", ["numel", "nelement", "dim", "data_ptr", "tolist", "item", "numpy", "__len__"])
@pytest.mark.parametrize("kind", [nn.UninitializedParameter, nn.UninitializedBuffer])
def test_uninitialized_tensors_have_no_elements_until_they_are_materialized(kind, name):
    tensor = kind()
    with pytest.raises(ValueError, match="uninitialized parameter or buffer"):
        getattr(tensor, name)()
    with cygrad.no_grad():
        tensor.requires_grad_(False).materialize((1,))
    getattr(tensor, name)()


def test_an_assigned_uninitialized_buffer_is_a_buffer():
    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        pass

    module = Lazy()
    module.total = nn.UninitializedBuffer()
    assert module.has_uninitialized_params() and "total" in module.state_dict()


def test_weight_norm_refuses_uninitialized_weights():
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="can't have uninitialized parameters"):
        nn.utils.weight_norm(nn.LazyLinear(2))
