"""NumPy functions with a row: values, dtypes and shapes of NumPy, gradients of finite differences."""

import re
import warnings

import numpy as np
import pytest

import cygrad
from cygrad.numpy_protocols import dispatch, ufuncs
from tests.numpy_protocols.cases import ALL, CHANGES, DIFFERENTIATED, VALUES

KINKS = ("heaviside", "nextafter", "ceil", "floor")


def named(call):
    """The values that a call names."""
    return [name for name in VALUES if re.search(rf"\b{name}\b", call)]


def run(call, values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, {"np": np, **values})


def tensors():
    return {name: cygrad.tensor(value) for name, value in VALUES.items()}


def compare(found, expected, call):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for part, other in zip(found, expected, strict=True):
            compare(part, other, call)
        if hasattr(expected, "_fields"):
            assert found._fields == expected._fields
        return
    if not isinstance(expected, (np.ndarray, np.generic)) or isinstance(expected, np.dtype):
        assert found == expected
        return
    assert isinstance(found, (cygrad.Tensor, int, bool)), f"{call} gave a {type(found).__name__}"
    array = np.asarray(found)
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    tolerance = {"float16": 3e-3, "float32": 2e-6, "complex64": 2e-6}.get(expected.dtype.name, 1e-10)
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize("call", ALL)
def test_values_are_those_of_numpy(call):
    compare(run(call, tensors()), run(call, VALUES), call)


def differentiable(value):
    return [part for part in (value if isinstance(value, (tuple, list)) else [value])
            if isinstance(part, cygrad.Tensor) and part.requires_grad]


@pytest.mark.parametrize("call", [call for call in ALL if set(named(call)) & DIFFERENTIATED])
def test_gradients_are_those_of_differences(call):
    names = [name for name in named(call) if name in DIFFERENTIATED]
    others = tensors()

    def function(*given):
        return tuple(differentiable(run(call, {**others, **dict(zip(names, given, strict=True))})))

    leaves = [cygrad.tensor(VALUES[name], requires_grad=True) for name in names]
    results = function(*leaves)
    if not results:
        # Nothing to differentiate: integers, masks, or numbers that do not depend on the values.
        parts = run(call, VALUES)
        kinds = [np.asarray(part).dtype.kind for part in (parts if isinstance(parts, (tuple, list)) else [parts])]
        assert set(kinds) <= set("biuO") or any(text in call for text in ("_like", "imag(A)", "histogram"))
        return
    if any(part.dtype is cygrad.float32 for part in results):
        results[0].sum().backward()                       # of too few digits for differences
        assert all(leaf.grad.isfinite().all() for leaf in leaves if leaf.grad is not None)
        return
    assert cygrad.autograd.gradcheck(function, leaves, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("call", CHANGES)
def test_what_writes_into_its_argument_keeps_the_history(call):
    expected = {**VALUES, "x": VALUES["A"].copy()}
    run(call, expected)
    names = [name for name in ["A", *named(call)] if name in DIFFERENTIATED]
    others = tensors()

    def function(*given):
        values = {**others, **dict(zip(names, given, strict=True))}
        values["x"] = values["A"] * 1
        run(call, values)
        return values["x"]

    leaves = [cygrad.tensor(VALUES[name], requires_grad=True) for name in names]
    result = function(*leaves)
    np.testing.assert_allclose(result.detach().numpy(), expected["x"])
    assert cygrad.autograd.gradcheck(function, leaves)
    array = VALUES["A"].copy()
    run(call, {**VALUES, **others, "x": array})                    # an ndarray, if nothing has a history
    np.testing.assert_allclose(array, expected["x"])
    if set(named(call)) & DIFFERENTIATED:
        with pytest.raises((TypeError, RuntimeError), match=r"lose (its|their) history"):
            run(call, {**others, **dict(zip(names, leaves, strict=True)), "x": array})


def test_each_row_is_called():
    text = "\n".join(ALL + CHANGES)
    homes = {np: "np", np.linalg: "np.linalg", np.fft: "np.fft", np.lib.stride_tricks: "np.lib.stride_tricks"}
    rows = {**dispatch.FUNCTIONS, **dispatch.CHANGES}
    missing = []
    for home, prefix in homes.items():
        for name in dir(home):
            function = getattr(home, name, None) if name != "row_stack" else None
            if callable(function) and function.__hash__ and function in rows and function.__name__ == name:
                missing += [] if f"{prefix}.{name}(" in text else [f"{prefix}.{name}"]
    missing += [ufunc.__name__ for ufunc in ufuncs.UFUNCS if isinstance(ufunc, np.ufunc)
                and f"np.{ufunc.__name__}(" not in text and ufunc.__name__ in dir(np)]
    assert missing == []


@pytest.mark.parametrize(("name", "shape"), [("hsplit", ()), ("vsplit", (4,)), ("vsplit", ()), ("dsplit", (4, 2))])
def test_splits_along_a_missing_dimension_raise_as_in_numpy(name, shape):
    for array in (np.zeros(shape), cygrad.zeros(shape)):
        with pytest.raises(ValueError, match="only works on arrays of"):
            getattr(np, name)(array, 2)
