"""One suite for all operators of the table: every test here runs for every sample (tests/samples) and dtype."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import gradcheck, gradgradcheck
from tests.operator_cases import (
    COMPLEX_DTYPES,
    EXACT,
    INTEGERS,
    LAYOUTS,
    REAL,
    ROWS,
    array,
    build,
    case_id,
    cases,
    convert,
    differentiable,
    dtype_name,
    floating,
    gradients,
    in_layout,
    numpy_dtype,
    plain,
    results,
    run,
    tensors_in,
    vectors,
    with_gradients,
)
from tests.operator_oracles import from_torch, numpy_result, to_torch, torch, torch_function
from tests.samples import HELPERS, SAMPLES, find

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
ALL = (*REAL, *COMPLEX_DTYPES, *INTEGERS)
# Backward of more elements than this is checked by random projections.
SLOW = 12


def each(dtypes, wanted=lambda sample: sample.error is None):
    """Parametrise over the samples that are wanted."""
    return pytest.mark.parametrize(("name", "number", "dtype"), cases(dtypes, wanted), ids=case_id)


def close(found, expected):
    """Equal up to the rounding of a few operations; infinities and nans in the same places."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    single = np.dtype(found.dtype) in (np.float32, np.complex64)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if single else 1e-10, atol=1e-6 if single else 1e-12)


def same(found, expected):
    """The same dtype, shape and elements."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(array(found), array(expected), strict=True)


# ---- the table itself

def test_every_row_has_samples():
    missing = [row for row, text in ROWS.items() if not SAMPLES.get(text.get("name", row)) and row not in HELPERS]
    assert not missing, f"rows without sample inputs in tests/samples, or an entry in HELPERS: {missing}"


def test_helpers_are_rows():
    assert set(HELPERS) <= set(ROWS)
    for name in {*SAMPLES, *(name for name in HELPERS.values() if name != "to")}:
        find(name)


# ---- values

@each((cygrad.float64,), lambda sample: sample.error is not None)
def test_errors(name, number, dtype):
    sample = build(name, number, dtype)
    with pytest.raises(sample.error, match=sample.match):
        find(name)(*sample.args, **sample.kwargs)


@each((*EXACT, cygrad.int64))
def test_values_against_numpy(name, number, dtype):
    sample = build(name, number, dtype)
    if dtype is cygrad.int64 and any(floating(tensor) for tensor in tensors_in(run_or_none(name, sample))):
        return                            # NumPy and PyTorch promote integers to different floating dtypes
    expected = numpy_result(name, sample)
    if expected is None or run_or_none(name, sample) is None:
        return
    found = tensors_in(run(name, sample))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        close(array(mine), theirs)


def run_or_none(name, sample):
    """The results, or None if the call is refused for this dtype."""
    try:
        return run(name, sample)
    except (RuntimeError, TypeError, IndexError):
        return None


@needs_torch
@each(ALL)
def test_values_against_torch(name, number, dtype):
    sample, function = build(name, number, dtype), torch_function(name)
    if function is None:
        return
    (args, kwargs), _ = to_torch((sample.args, sample.kwargs))
    try:
        expected = results(function(*args, **kwargs))
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
        if dtype in INTEGERS:
            with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
                run(name, sample)
            return
        raise AssertionError(f"PyTorch refuses the sample: {error}") from error
    found = run(name, sample)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs
            continue
        assert dtype_name(mine.dtype) == str(theirs.dtype).rpartition(".")[2]
        close(array(mine), from_torch(theirs))


# ---- derivatives

@each(EXACT, lambda sample: sample.error is None and sample.check_gradient)
def test_gradcheck(name, number, dtype):
    sample = build(name, number, dtype)
    args, kwargs, leaves = with_gradients(sample)
    outputs = tensors_in(find(name)(*args, **kwargs))
    if not leaves or not any(floating(output) for output in outputs):
        return

    def function(*values):
        new = {id(old): value for old, value in zip(leaves, values, strict=True)}
        arguments = convert((args, kwargs), lambda tensor: new.get(id(tensor), tensor))
        return tuple(tensors_in(find(name)(*arguments[0], **arguments[1])))

    fast = sum(leaf.numel() for leaf in leaves) + sum(output.numel() for output in outputs) > SLOW
    assert gradcheck(function, leaves, fast_mode=fast, check_grad_dtypes=True)
    if differentiable(function(*leaves)):
        assert gradgradcheck(function, leaves, fast_mode=fast, check_grad_dtypes=True)


@each(EXACT, lambda sample: sample.error is None and sample.gradients is not None)
def test_stated_gradients(name, number, dtype):
    sample = build(name, number, dtype)
    for create_graph in (False, True):
        args, kwargs, _ = with_gradients(sample)
        (result, *_) = tensors_in(find(name)(*args, **kwargs))
        for tensor, expected in zip(tensors_in(args), sample.gradients, strict=True):
            if expected is not None:
                (gradient,) = cygrad.autograd.grad(result.sum(), tensor, retain_graph=True, create_graph=create_graph,
                                                   materialize_grads=True)
                np.testing.assert_array_equal(array(gradient), np.array(expected, dtype=numpy_dtype(dtype)))


@each((*REAL, cygrad.complex128))
def test_recorded_backward_is_native_backward(name, number, dtype):
    sample = build(name, number, dtype)
    _, leaves, native = gradients(name, sample)
    _, _, recorded = gradients(name, sample, create_graph=True)
    for leaf, first, second in zip(leaves, native, recorded, strict=True):
        assert (first is None) == (second is None)
        if first is not None:
            assert first.dtype == second.dtype == leaf.dtype
            assert first.shape == second.shape == leaf.shape
            close(array(first), array(second))


@needs_torch
@each(EXACT)
def test_gradients_against_torch(name, number, dtype):
    sample, function = build(name, number, dtype), torch_function(name)
    if function is None:
        return
    args, kwargs, leaves = with_gradients(sample)
    outputs = tensors_in(find(name)(*args, **kwargs))
    (their_args, their_kwargs), their_leaves = to_torch((args, kwargs), leaves)
    theirs = [value for value in results(function(*their_args, **their_kwargs)) if isinstance(value, torch.Tensor)]
    assert [output.requires_grad for output in outputs] == [output.requires_grad for output in theirs]
    outputs, theirs = differentiable(outputs), [output for output in theirs if output.requires_grad]
    if not outputs:
        return
    seeds = vectors(outputs)
    found = cygrad.autograd.grad(outputs, leaves, seeds, allow_unused=True, materialize_grads=True)
    expected = torch.autograd.grad(theirs, [their_leaves[id(leaf)] for leaf in leaves], to_torch(seeds)[0],
                                   allow_unused=True, materialize_grads=True)
    for mine, other in zip(found, expected, strict=True):
        assert dtype_name(mine.dtype) == str(other.dtype).rpartition(".")[2]
        close(array(mine), from_torch(other))


# ---- layouts

@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@each((cygrad.float64,), lambda sample: sample.error is None and sample.any_layout)
def test_layouts(name, number, dtype, layout):
    usual = in_layout(build(name, number, dtype), plain)
    other = in_layout(build(name, number, dtype), layout)
    for found, expected in zip(tensors_in(run(name, other)), tensors_in(run(name, usual)), strict=True):
        assert found.dtype == expected.dtype
        close(array(found), array(expected))
    found, expected = gradients(name, other)[2], gradients(name, usual)[2]
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            close(array(mine), array(theirs))


# ---- out= and in place

WITH_OUT = {row.get("name", name) for name, row in ROWS.items() if row.get("out")}


@each((cygrad.float64, cygrad.complex128, cygrad.int64))
def test_out(name, number, dtype):
    if name not in WITH_OUT:
        return
    sample = build(name, number, dtype)
    expected = run_or_none(name, sample)
    if expected is None:
        return
    function = find(name)

    def into(targets):
        target = targets[0] if len(targets) == 1 else tuple(targets)
        assert results(function(*sample.args, **sample.kwargs, out=target))[0] is targets[0]

    empty = [cygrad.empty((0,), dtype=result.dtype) for result in expected]
    turned = [cygrad.from_numpy(np.zeros(tuple(result.shape)[::-1], numpy_dtype(result.dtype)).T) for result in expected]
    for targets in (empty, turned):
        versions = [target._version for target in targets]
        into(targets)
        for target, version, result in zip(targets, versions, expected, strict=True):
            same(target, result)
            assert target._version > version
    if any(floating(tensor) for tensor in tensors_in(sample.args)) and floating(expected[0]):
        args, kwargs, leaves = with_gradients(sample)
        if leaves and differentiable(function(*args, **kwargs)):
            with pytest.raises(RuntimeError, match="out="):
                function(*args, **kwargs, out=empty[0] if len(empty) == 1 else tuple(empty))


@each((cygrad.float64, cygrad.complex128, cygrad.int64))
def test_in_place(name, number, dtype):
    method = getattr(cygrad.Tensor, f"{name}_", None)
    sample = build(name, number, dtype)
    if method is None or not isinstance(sample.args[0], cygrad.Tensor):
        return
    try:
        (expected,) = run(name, sample)
    except (RuntimeError, TypeError, IndexError):
        return
    target = sample.args[0].clone()
    version = target._version
    if expected.shape != target.shape or category(expected) > category(target):
        with pytest.raises(RuntimeError):
            method(target, *sample.args[1:], **sample.kwargs)
        return
    assert method(target, *sample.args[1:], **sample.kwargs) is target
    same(target, expected.to(target.dtype))
    assert target._version > version
    if floating(target):
        in_place_gradients(name, sample, method)


def category(tensor):
    """bool < integers < real < complex: what may be written into what."""
    if tensor.dtype is cygrad.bool:
        return 0
    return 1 + tensor.dtype.is_floating_point + 2 * tensor.dtype.is_complex


def in_place_gradients(name, sample, method):
    """The in-place form has the gradients of the plain one; a leaf that requires grad is refused."""
    outputs, _, expected = gradients(name, sample)
    args, kwargs, leaves = with_gradients(sample)
    with pytest.raises(RuntimeError, match="leaf"):
        method(args[0], *args[1:], **kwargs)
    changed = method(args[0].clone(), *args[1:], **kwargs)
    if not outputs:
        return
    found = cygrad.autograd.grad(changed, leaves, vectors(outputs), allow_unused=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            same(mine, theirs)
