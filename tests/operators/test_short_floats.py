"""float16 and bfloat16: every sample compared with float64 and with PyTorch."""

import numpy as np
import pytest

import cygrad
from tests.operator_cases import build, convert, differentiable, dtype_name, floating, tensors_in, with_gradients
from tests.operator_oracles import torch, torch_function
from tests.samples import SAMPLES, find

pytestmark = [
    pytest.mark.skipif(torch is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore"),
]
# From 1 to the next number, and the smallest number there is.
STEPS = {cygrad.float16: (2.0**-10, 2.0**-24), cygrad.bfloat16: (2.0**-7, 2.0**-133)}
# Roundings that a function composed of operators may add up, in units of the last place of its largest element.
VALUE_STEPS, GRADIENT_STEPS = 2, 8
# Their derivatives are small differences of numbers one of which, the result, was rounded when it was kept; PyTorch
# does not compute these in 16 bits.
CANCELS = {"erfcx", "scaled_modified_bessel_k0", "linalg.pinv", "linalg.eigh"}


def values(tensor):
    """The elements as an ndarray that NumPy computes with."""
    if isinstance(tensor, torch.Tensor):
        wide = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}.get(tensor.dtype, tensor.dtype)
        return tensor.to(wide).numpy(force=True)
    wide = {cygrad.bfloat16: cygrad.float32, cygrad.complex32: cygrad.complex64}.get(tensor.dtype, tensor.dtype)
    return np.array(tensor.detach().to(wide).numpy())


def error(found, exact, dtype):
    """The largest difference in units of the last place of the largest element; nans must be in the same places."""
    found, exact = values(found), values(exact)
    assert found.shape == exact.shape
    if exact.dtype.kind not in "fc":
        return 0 if (found == exact).all() else np.inf
    step, tiny = STEPS[dtype]
    wide = np.complex128 if exact.dtype.kind == "c" else np.float64
    found, exact = found.astype(wide), exact.astype(wide)
    both = np.isfinite(found) & np.isfinite(exact)
    if not (np.isnan(found) == np.isnan(exact)).all() or not both.any():
        return 0 if (np.isnan(found) == np.isnan(exact)).all() else np.inf
    return np.abs(found - exact)[both].max() / max(np.abs(exact[both]).max() * step, tiny)


def in_dtype(sample, dtype):
    """The sample with its float32 tensors, and the dtype where it is named, in another dtype."""
    def named(value):
        return dtype if value is cygrad.float32 else value

    args, kwargs = convert((sample.args, sample.kwargs), lambda x: x.to(dtype) if x.dtype is cygrad.float32 else x)
    return type(sample)(tuple(map(named, args)), {key: named(value) for key, value in kwargs.items()},
                        fixed=sample.fixed)


def vectors_for(outputs):
    """A vector for backward for each output."""
    made = []
    for output in outputs:
        count = np.arange(output.numel())
        numbers = (count % 7 + 1) / 4 * np.where(count % 2, 1, -1)
        made.append(cygrad.tensor(numbers.reshape(tuple(output.shape))).to(output.dtype))
    return made


def outcome(function, args, kwargs, leaves, grads=None):
    """(results, gradients of the leaves) of a call; gradients are None where there are none."""
    outputs = tensors_in(function(*args, **kwargs))
    ends = differentiable(outputs)
    if not ends or not leaves:
        return outputs, [None] * len(leaves)
    grads = vectors_for(ends) if grads is None else grads
    return outputs, cygrad.autograd.grad(ends, leaves, grads, allow_unused=True)


def peer_outcome(name, args, kwargs, leaves, grads):
    """The same of PyTorch; None if it has no such function, or refuses the call. Gradients may be missing."""
    function, twins = torch_function(name), {}
    if function is None:
        return None

    def twin(tensor):
        made = torch.tensor(values(tensor)).to(getattr(torch, dtype_name(tensor.dtype)))
        if tensor.requires_grad:
            twins[id(tensor)] = made.requires_grad_()
        return made

    def dtypes(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(dtypes, value))
        return getattr(torch, dtype_name(value)) if isinstance(value, cygrad.dtype) else value

    args, kwargs = convert((args, kwargs), twin)
    try:
        found = function(*dtypes(args), **{key: dtypes(value) for key, value in kwargs.items()})
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return None
    outputs = []

    def collect(value):
        if isinstance(value, torch.Tensor):
            outputs.append(value)
        elif isinstance(value, (list, tuple)):
            for part in value:
                collect(part)

    collect(found)
    ends = [output for output in outputs if output.requires_grad]
    try:
        return outputs, torch.autograd.grad(ends, [twins[id(leaf)] for leaf in leaves], [
            torch.tensor(values(grad)).to(end.dtype) for grad, end in zip(grads, ends, strict=True)], allow_unused=True)
    except (RuntimeError, ValueError):
        return outputs, [None] * len(leaves)


def check(found, exact, reference, dtype, limit):
    """Return whether it is as near to what is exact as few roundings allow, or nearly as near as PyTorch is?"""
    distance = error(found, exact, dtype)
    if distance > limit and reference is not None and tuple(reference.shape) == tuple(exact.shape):
        distance = min(distance, limit * distance / max(error(reference, exact, dtype), limit / 2) / 2)
    assert distance <= limit


@pytest.mark.slow
@pytest.mark.parametrize("dtype", STEPS, ids=dtype_name)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample(name, dtype):
    for number in range(len(SAMPLES[name])):
        sample = build(name, number, cygrad.float32)
        if sample is None or sample.error is not None:
            continue
        args, kwargs, leaves = with_gradients(in_dtype(sample, dtype))
        twins = {id(leaf): leaf.detach().to(cygrad.float64).requires_grad_() if leaf.dtype is dtype else leaf
                 for leaf in leaves}
        if name == "view_as_complex" and dtype is cygrad.bfloat16:
            with pytest.raises(RuntimeError, match="only real floating"):       # there are no such complex numbers
                find(name)(*args, **kwargs)
            continue
        found, gradients = outcome(find(name), args, kwargs, leaves)
        grads = vectors_for(differentiable(found))
        wide_args, wide_kwargs = convert((args, kwargs), lambda x, twins=twins: twins.get(
            id(x), x.to(cygrad.float64) if x.dtype is dtype else x))
        wide_args, wide_kwargs = (
            tuple(cygrad.float64 if value is dtype else value for value in wide_args),
            {key: cygrad.float64 if value is dtype else value for key, value in wide_kwargs.items()})
        exact, slopes = outcome(find(name), wide_args, wide_kwargs, list(twins.values()), [
            grad.to(cygrad.float64) if grad.dtype is dtype else grad for grad in grads])
        reference = peer_outcome(name, args, kwargs, leaves, grads)
        theirs, their_slopes = reference if reference is not None else ([None] * len(found), [None] * len(leaves))
        assert len(found) == len(exact) == len(theirs)
        for mine, right, other in zip(found, exact, theirs, strict=True):
            if other is not None:
                assert dtype_name(mine.dtype) == str(other.dtype).rpartition(".")[2]
            if mine.dtype is dtype or not floating(mine):
                check(mine, right.to(dtype) if floating(right) else right, other, dtype, VALUE_STEPS)
        for leaf, mine, right, other in zip(leaves, gradients, slopes, their_slopes, strict=True):
            assert (mine is None) == (right is None)
            if mine is not None:
                assert mine.dtype is leaf.dtype and mine.shape == leaf.shape
                check(mine, right.to(leaf.dtype), other, dtype, np.inf if name in CANCELS else GRADIENT_STEPS)


@pytest.mark.parametrize("other", [cygrad.float32, cygrad.float64, cygrad.int64, cygrad.int32], ids=str)
def test_a_tensor_without_dimensions_is_not_rounded_to_the_short_dtype(other):
    """Neither in a product with a number that float16 does not hold, nor in its gradient."""
    x = cygrad.tensor([0.01, 3388.0], dtype=cygrad.half, requires_grad=True)
    assert (x * cygrad.tensor(65536, dtype=other))[0].item() == 655.5
    assert (x / cygrad.tensor(524288, dtype=other))[1].item() == pytest.approx(0.00646, rel=1e-3)
    assert x.detach().clone().mul_(cygrad.tensor(65536, dtype=other))[0].item() == 655.5
    gradient, = cygrad.autograd.grad((x / cygrad.tensor(524288, dtype=other)).sum(), x)
    assert gradient[0].item() == pytest.approx(1 / 524288, rel=0.05)


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("other", [cygrad.float32, cygrad.float64], ids=str)
def test_a_loss_has_the_dtype_of_the_broadcast_tensors(loss, other):
    """A target without dimensions is broadcast before dtypes are promoted, and so not rounded."""
    function = getattr(cygrad.nn.functional, loss)
    input = cygrad.tensor([0.5, 0.25], dtype=cygrad.half)
    found = function(input, cygrad.tensor(0.1, dtype=other), reduction="sum")
    assert found.dtype is other
    np.testing.assert_allclose(found.item(), function(
        input.double(), cygrad.tensor([0.1, 0.1], dtype=other).double(), reduction="sum").item(), rtol=1e-6)
