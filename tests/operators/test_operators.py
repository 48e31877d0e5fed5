"""Common test suite of all operators: every test runs for every sample (tests/samples) and dtype."""

import inspect
import operator
from numbers import Number

import numpy as np
import pytest

import cygrad
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tests.operator_cases import (
    COMPLEX_DTYPES,
    EXACT,
    INTEGERS,
    LAYOUTS,
    REAL,
    REFUSALS,
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
    run_or_none,
    tensors_in,
    vectors,
    with_gradients,
)
from tests.operator_oracles import from_torch, numpy_result, to_torch, torch, torch_function
from tests.samples import BEYOND, HELPERS, SAMPLES, find

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reduction.*batchmean"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real"),
    pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated"),
    pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim"),
    pytest.mark.filterwarnings("ignore:torch.meshgrid. in an upcoming release"),
    pytest.mark.filterwarnings("ignore:index_reduce.* is in beta"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
]
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
ALL = (*REAL, *COMPLEX_DTYPES, *INTEGERS)
# Backward of more elements than this is checked by random projections.
SLOW = 12


def each(dtypes, wanted=lambda sample: sample.error is None):
    """Parametrize over the requested samples."""
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
    found, expected = run_or_none(find(name), sample), numpy_result(name, sample)
    if expected is None or found is None:
        return
    found = tensors_in(found)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        # NumPy promotes integers to float64: compared in the precision that we have.
        close(array(mine), theirs.astype(array(mine).dtype) if dtype is cygrad.int64 and floating(mine) else theirs)


@pytest.mark.slow
@needs_torch
@each(ALL)
def test_values_against_torch(name, number, dtype):
    sample, function = build(name, number, dtype), torch_function(name)
    if function is None:
        return
    (args, kwargs), _ = to_torch((sample.args, sample.kwargs))
    try:
        expected = results(function(*args, **kwargs))
    except REFUSALS:
        refused_by_torch(name, number, dtype)
        return
    try:
        found = run(find(name), sample)
    except NotImplementedError:
        # PyTorch does not check the dtype of empty tensors.
        assert dtype in INTEGERS
        assert any(tensor.numel() == 0 for tensor in tensors_in((sample.args, sample.kwargs)))
        return
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs
            continue
        assert dtype_name(mine.dtype) == str(theirs.dtype).rpartition(".")[2]
        close(array(mine), from_torch(theirs))


def refused_by_torch(name, number, dtype):
    """Then we refuse integers too, or take them for the same numbers in float32; and NumPy vouches for the rest."""
    sample = build(name, number, dtype)
    found = run_or_none(find(name), sample)
    if dtype not in INTEGERS:
        expected = numpy_result(name, sample)
    elif found is None:
        return
    else:
        values = convert((sample.args, sample.kwargs),
                         lambda tensor: tensor.to(cygrad.float32) if tensor.dtype is dtype else tensor)
        expected = [array(result) for result in tensors_in(find(name)(*values[0], **values[1]))]
    for mine, theirs in zip(tensors_in(found), expected, strict=True):
        close(array(mine).astype(theirs.dtype), theirs)


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


@pytest.mark.slow
@each(EXACT, lambda sample: sample.error is None and sample.check_gradient)
def test_forward_mode(name, number, dtype):
    """Tangents t of the arguments and u of the results: <u, J t> = <J^T u, t>; and the same of the gradient J^T u."""
    sample = build(name, number, dtype)
    outputs, leaves, gradients_of = gradients(find(name), sample, create_graph=True)
    if not outputs or not any(leaf.numel() for leaf in leaves):
        return
    directions = vectors(leaves)
    with dual_level():
        args, kwargs, own = with_gradients(sample)
        duals = {id(leaf): make_dual(leaf, direction) for leaf, direction in zip(own, directions, strict=True)}
        args, kwargs = convert((args, kwargs), lambda tensor: duals.get(id(tensor), tensor))
        results_ = tensors_in(find(name)(*args, **kwargs))
        for result in results_:
            found = unpack_dual(result).tangent
            assert found is None or (result.requires_grad and found.dtype == result.dtype
                                     and found.shape == result.shape and found.stride() == result.stride())
        results_ = differentiable(results_)
        tangents = [unpack_dual(result).tangent for result in results_]
        pulled = cygrad.autograd.grad(results_, [duals[id(leaf)] for leaf in own], vectors(results_), allow_unused=True)
        second = [None if gradient is None else unpack_dual(gradient).tangent for gradient in pulled]
    close(inner(vectors(outputs), tangents), inner(gradients_of, directions))
    known = [gradient for gradient in gradients_of if gradient is not None]
    if differentiable(known):
        weights = iter(vectors(known))
        weights = [None if gradient is None else next(weights) for gradient in gradients_of]
        pairs = [(gradient, weight) for gradient, weight in zip(gradients_of, weights, strict=True)
                 if gradient is not None and gradient.requires_grad]
        expected = cygrad.autograd.grad([gradient for gradient, _ in pairs], leaves, [weight for _, weight in pairs],
                                        allow_unused=True)
        close(inner(weights, second), inner(expected, directions))


def inner(first, second):
    """The real inner product of two lists of tensors, of which some may be missing: they are zero."""
    return sum(np.sum((array(one).conj() * array(other)).real) for one, other in zip(first, second, strict=True)
               if one is not None and other is not None)


@each(EXACT, lambda sample: sample.error is None and sample.gradients is not None)
def test_stated_gradients(name, number, dtype):
    sample = build(name, number, dtype)
    for create_graph in (False, True):
        args, kwargs, _ = with_gradients(sample)
        (result, *_) = tensors_in(find(name)(*args, **kwargs))
        for tensor, expected in zip(tensors_in(args), sample.gradients, strict=True):
            if expected is not None:
                (gradient,) = cygrad.autograd.grad(result, tensor, cygrad.ones_like(result), retain_graph=True,
                                                   create_graph=create_graph, materialize_grads=True)
                np.testing.assert_array_equal(array(gradient), np.array(expected, dtype=numpy_dtype(dtype)))


@pytest.mark.slow
@each((*REAL, cygrad.complex128))
def test_recorded_backward_is_native_backward(name, number, dtype):
    sample = build(name, number, dtype)
    _, leaves, native = gradients(find(name), sample)
    _, _, recorded = gradients(find(name), sample, create_graph=True)
    for leaf, first, second in zip(leaves, native, recorded, strict=True):
        assert (first is None) == (second is None)
        if first is not None:
            assert first.dtype == second.dtype == leaf.dtype
            assert first.shape == second.shape == leaf.shape
            close(array(first), array(second))


@pytest.mark.slow
@needs_torch
@each(EXACT)
def test_gradients_against_torch(name, number, dtype):
    sample, function = build(name, number, dtype), torch_function(name)
    if function is None or name in BEYOND:
        return
    args, kwargs, leaves = with_gradients(sample)
    outputs = tensors_in(find(name)(*args, **kwargs))
    (their_args, their_kwargs), their_leaves = to_torch((args, kwargs), leaves)
    try:
        theirs = [value for value in results(function(*their_args, **their_kwargs)) if isinstance(value, torch.Tensor)]
    except RuntimeError:                        # no derivative, or not for these arguments: see gradcheck
        return
    assert [output.requires_grad for output in outputs] == [output.requires_grad for output in theirs]
    outputs, theirs = differentiable(outputs), [output for output in theirs if output.requires_grad]
    if not outputs:
        return
    seeds = vectors(outputs)
    found = cygrad.autograd.grad(outputs, leaves, seeds, allow_unused=True, materialize_grads=True)
    try:
        expected = torch.autograd.grad(theirs, [their_leaves[id(leaf)] for leaf in leaves], to_torch(seeds)[0],
                                       allow_unused=True, materialize_grads=True)
    except RuntimeError:                        # the same, found later
        return
    for mine, other in zip(found, expected, strict=True):
        assert dtype_name(mine.dtype) == str(other.dtype).rpartition(".")[2]
        close(array(mine), from_torch(other))


# ---- layouts

@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@each((cygrad.float64,), lambda sample: sample.error is None and sample.any_layout)
def test_layouts(name, number, dtype, layout):
    usual = in_layout(build(name, number, dtype), plain)
    other = in_layout(build(name, number, dtype), layout)
    for found, expected in zip(tensors_in(run(find(name), other)), tensors_in(run(find(name), usual)), strict=True):
        assert found.dtype == expected.dtype
        close(array(found), array(expected))
    found, expected = gradients(find(name), other)[2], gradients(find(name), usual)[2]
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            close(array(mine), array(theirs))


# ---- out= and in place

WITH_OUT = {row.get("name", name) for name, row in ROWS.items() if row.get("out")} | {
    name for name, function in cygrad.composite.FUNCTIONS.items() if "out" in inspect.signature(function).parameters}


@pytest.mark.slow
@each((cygrad.float64, cygrad.complex128, cygrad.int64))
def test_out(name, number, dtype):
    if name not in WITH_OUT:
        return
    sample = build(name, number, dtype)
    expected = run_or_none(find(name), sample)
    if expected is None:
        return
    function = find(name)

    def into(targets):
        target = targets[0] if len(targets) == 1 else tuple(targets)
        assert results(function(*sample.args, **sample.kwargs, out=target))[0] is targets[0]

    empty = [cygrad.empty((0,), dtype=result.dtype) for result in expected]
    turned = [cygrad.from_numpy(np.zeros(tuple(result.shape)[::-1], numpy_dtype(result.dtype)).T)
              for result in expected]
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


@pytest.mark.slow
@each((cygrad.float64, cygrad.complex128, cygrad.int64))
def test_in_place(name, number, dtype):
    method = getattr(cygrad.Tensor, f"{name}_", None)
    sample = build(name, number, dtype)
    if method is None or not isinstance(sample.args[0], cygrad.Tensor):
        return
    expected = run_or_none(find(name), sample)
    if expected is None:
        return
    (expected,) = expected
    target = sample.args[0].clone()
    version = target._version
    fits = expected.shape == target.shape or f"{name}_" in cygrad.composite.geometry.METHODS
    if not fits and name == "addbmm" and category(expected) <= category(target):       # as PyTorch has it
        with pytest.warns(UserWarning, match="resized"):
            same(method(target, *sample.args[1:], **sample.kwargs), expected.to(target.dtype))
        return
    if (not fits or category(expected) > category(target)
            or (target.is_complex() and expected.is_floating_point())):       # the imaginary part would be lost
        with pytest.raises(RuntimeError):
            method(target, *sample.args[1:], **sample.kwargs)
        return
    assert method(target, *sample.args[1:], **sample.kwargs) is target
    same(target, expected.to(target.dtype))
    assert target._version > version
    if target.is_complex() and expected.is_floating_point():      # whose gradient would be complex again
        args, kwargs, _ = with_gradients(sample)
        with pytest.raises(RuntimeError, match="a real result in a complex tensor has no gradient"):
            method(args[0].clone(), *args[1:], **kwargs)
    elif floating(target):
        in_place_gradients(name, sample, method)


def category(tensor):
    """bool < integers < real < complex: what may be written into what."""
    if tensor.dtype is cygrad.bool:
        return 0
    return 1 + tensor.dtype.is_floating_point + 2 * tensor.dtype.is_complex


def in_place_gradients(name, sample, method):
    """The in-place form has the gradients of the plain one; a leaf that requires grad is refused."""
    outputs, _, expected = gradients(find(name), sample)
    args, kwargs, leaves = with_gradients(sample)
    if args[0].requires_grad:
        with pytest.raises(RuntimeError, match="leaf"):
            method(args[0], *args[1:], **kwargs)
    changed = method(args[0].clone(), *args[1:], **kwargs)
    if not outputs:
        return
    seeds = [vector.to(changed.dtype) for vector in vectors(outputs)]
    found = cygrad.autograd.grad(changed, leaves, seeds, allow_unused=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            same(mine, theirs)


# ---- Python's own operators

PYTHON = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "matmul": operator.matmul, "neg": operator.neg,
    "abs": operator.abs, "positive": operator.pos, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_not": operator.invert, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}
# Reflected methods, called if the first operand is not a tensor.
REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
IN_PLACE = {
    "add": operator.iadd, "sub": operator.isub, "mul": operator.imul, "div": operator.itruediv, "pow": operator.ipow,
    "floor_divide": operator.ifloordiv, "remainder": operator.imod, "bitwise_and": operator.iand,
    "bitwise_or": operator.ior, "bitwise_xor": operator.ixor,
}


@pytest.mark.slow
@each((cygrad.float64, cygrad.complex128, cygrad.int64), lambda sample: True)
def test_python_operators(name, number, dtype):
    sample, function = build(name, number, dtype), PYTHON.get(name)
    if function is None or sample.kwargs:
        return
    for arguments in (sample.args, sample.args[::-1]):
        turned = type(sample)(arguments)
        if name in REFLECTED and isinstance(arguments[0], Number) and not isinstance(arguments[0], complex):
            same(function(*arguments), find(REFLECTED[name])(*arguments[::-1]))      # functions require a tensor first
            continue
        expected = run_or_none(find(name), turned)
        if expected is None:
            with pytest.raises(REFUSALS):
                function(*arguments)
            continue
        same(function(*arguments), expected[0])
        for mine, theirs in zip(gradients(function, turned)[2], gradients(find(name), turned)[2], strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                same(mine, theirs)
        if name in IN_PLACE and isinstance(arguments[0], cygrad.Tensor) and expected[0].shape == arguments[0].shape:
            target = arguments[0].clone()
            if category(expected[0]) > category(target):
                with pytest.raises(RuntimeError):
                    IN_PLACE[name](target, *arguments[1:])
            else:
                assert IN_PLACE[name](target, *arguments[1:]) is target
                same(target, expected[0].to(target.dtype))


# ---- promotion

PROMOTED = ("add", "sub", "mul", "div", "pow", "floor_divide", "remainder", "fmod", "maximum", "fmin", "atan2", "hypot",
            "copysign", "logaddexp", "xlogy", "eq", "lt", "logical_and", "bitwise_or", "bitwise_left_shift", "where")
OPERANDS = (cygrad.bool, cygrad.uint8, cygrad.int8, cygrad.int32, cygrad.int64, cygrad.float32, cygrad.float64,
            cygrad.complex64, cygrad.complex128)


def operands():
    """One operand of each dtype, with and without dimensions, and numbers of each kind."""
    made = [cygrad.ones(shape, dtype=dtype) for dtype in OPERANDS for shape in ((2,), ())]
    return [*made, True, 2, 2.0, 1 + 1j]


@needs_torch
@pytest.mark.parametrize("name", PROMOTED)
def test_promotion(name):
    function, theirs = find(name), torch_function(name)
    for first in operands():
        for second in operands():
            if not tensors_in((first, second)):
                continue
            arguments = (cygrad.tensor([True, False]), first, second) if name == "where" else (first, second)
            try:
                expected = theirs(*to_torch(arguments)[0])
            except REFUSALS:
                continue
            try:
                found = function(*arguments)
            except NotImplementedError:         # arithmetic of bools and some functions of complex numbers
                assert expected.dtype is torch.bool or expected.dtype.is_complex
                continue
            assert dtype_name(found.dtype) == str(expected.dtype).rpartition(".")[2], arguments
            close(array(found), from_torch(expected))
