"""Anomaly mode: detection of nan, the forward call in the error, nested backward."""

import re
import warnings

import numpy as np
import pytest

import cygrad
from cygrad.autograd import Function, grad, set_detect_anomaly
from cygrad.autograd.graph import saved_tensors_hooks
from tests.reference import torch

pytestmark = pytest.mark.guarantee("F2")

NAN, INF = float("nan"), float("inf")


class Mean(Function):
    """A custom node that gives nan."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * NAN


# Sources of nan: a function of the library and a leaf, and values. The blamed node is PyTorch's.
SOURCES = {
    "0 / 0": (lambda lib, x: (x * 0 / lib.zeros(2)) * 0, [0.0, 1.0]),
    "inf * 0": (lambda lib, x: x.sqrt() * 0, [0.0, 1.0]),
    "nan in a saved value": (lambda lib, x: x * lib.tensor([NAN, 1.0]), [1.0, 2.0]),
    "nan in a saved value, twice": (lambda lib, x: (x * lib.tensor([NAN, 1.0])).exp(), [1.0, 2.0]),
    "nan number": (lambda lib, x: x * NAN, [1.0, 2.0]),
    "nan number divided by": (lambda lib, x: x / NAN, [1.0, 2.0]),
    "inf number": (lambda lib, x: (x * INF) * 0.0, [1.0, 2.0]),
    "inf less inf by addition": (lambda lib, x: sum_of_infinities(x * 1), [1.0, 2.0]),
    "inf less inf by addition after a view": (lambda lib, x: sum_of_infinities(x.view(2, 1)), [1.0, 2.0]),
    "inf less inf in a sum": (lambda lib, x: x.sum(0, keepdim=True).expand(2) * lib.tensor([INF, -INF]), [1.0, 2.0]),
    "after views": (lambda lib, x: (x.view(2, 1).t() * NAN).view(-1)[1:], [1.0, 2.0]),
    "before views": (lambda lib, x: x.view(2, 1).t().reshape(-1)[:1] * lib.tensor([NAN]), [1.0, 2.0]),
    "matrices": (lambda lib, x: x.view(1, 2) @ lib.tensor([[NAN, 1.0], [1.0, 1.0]]), [1.0, 2.0]),
    "masked away": (lambda lib, x: lib.where(x > 1, x, (x - 1).sqrt() * 0), [1.0, 2.0]),
    "power": (lambda lib, x: x ** lib.tensor([-1.0, 2.0]) * 0, [0.0, 2.0]),
    "logarithm": (lambda lib, x: (x.log() * 0), [0.0, 1.0]),
    "prod": (lambda lib, x: x.prod() * NAN, [1.0, 2.0]),
    "in place": (lambda lib, x: (x * 1).mul_(NAN), [1.0, 2.0]),
    "in place on a slice": (lambda lib, x: in_place(x * 2), [1.0, 2.0]),
    "softmax of inf": (lambda lib, x: (x * INF).softmax(0), [1.0, 2.0]),
    "cast": (lambda lib, x: x.double() * NAN, [1.0, 2.0]),
    "complex": (lambda lib, x: (x * lib.tensor([complex(0, NAN), 1j])).abs(), [1.0, 2.0]),
    "none": (lambda lib, x: (x * 3).exp().sum() * 0 + x.sum(), [-1.0, -2.0]),
    "none: nan forward only": (lambda lib, x: x + NAN, [1.0, 2.0]),
    "none but inf": (lambda lib, x: x.sqrt(), [0.0, 1.0]),
}


def sum_of_infinities(y):
    """Two gradients of one tensor that add up to nan: the node that gets the sum is blamed."""
    return y * INF + y * -INF


def in_place(y):
    y[:1].mul_(NAN)
    return y


def blamed(lib, source, size, create_graph=False):
    """The message of the error, without the number; None if there is none."""
    function, values = SOURCES[source]
    x = lib.tensor(values, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with lib.autograd.set_detect_anomaly(True):
                lib.autograd.grad(function(lib, x).sum(), x, create_graph=create_graph)
        except RuntimeError as error:
            return re.match(r"Function '(?:torch::autograd::)?(\w+)' returned nan values in its (\d)th output",
                            str(error)).groups()
    return None


# Where our nodes are called otherwise than theirs.
OTHER_NAMES = {"MmBackward0": "MatmulBackward0", "UnsafeViewBackward0": "ViewBackward0"}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_nan_is_found_where_it_arises(source, create_graph):
    ours, theirs = blamed(cygrad, source, 2, create_graph), blamed(torch, source, 2)
    if theirs is not None:
        theirs = (OTHER_NAMES.get(theirs[0], theirs[0]), theirs[1])
    assert ours == theirs
    assert (ours is None) == source.startswith("none")


def infinities(x, place):
    """The gradients inf and -inf of one element, which add up to nan."""
    inf = np.ones(x.numel())
    inf[place] = INF
    y = x.view(-1, 1).view(-1)
    return y * cygrad.from_numpy(inf) - y * cygrad.from_numpy(inf)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 63, 64, 4097, 300_001])
@pytest.mark.parametrize("name", ["mul", "scale", "sqrt", "sum", "matmul", "gather", "add"])
def test_a_single_nan_is_found_anywhere(name, size, threads):
    """Each kind of computation, one bad element: at the beginning, at the end, in between."""
    for place in {0, size // 2, size - 1}:
        bad = np.ones(size)
        bad[place] = NAN
        vector = cygrad.from_numpy(bad)
        x = cygrad.ones(size, dtype=cygrad.float64, requires_grad=True)
        with cygrad.threads(threads), set_detect_anomaly(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = {"mul": lambda: x * vector, "sqrt": lambda: (x * vector).sqrt(),
                 "scale": lambda: (x * 2.0 * vector), "sum": lambda: x.sum() * vector,
                 "matmul": lambda: x.view(1, -1) @ vector.view(-1, 1), "gather": lambda: x.flip(0) * vector,
                 "add": lambda: infinities(x, place)}[name]()
            with pytest.raises(RuntimeError, match="returned nan values"):
                grad(y.sum(), x)


def test_other_layouts_and_dtypes():
    for dtype in (cygrad.float32, cygrad.float64, cygrad.complex64, cygrad.complex128):
        for layout in (lambda t: t.t(), lambda t: t[::2, 1:], lambda t: t.expand(3, 4, 6), lambda t: t[:, :1]):
            x = cygrad.ones(4, 6, dtype=dtype, requires_grad=True)
            bad = np.ones((4, 6))
            bad[2, 0] = bad[2, 3] = NAN
            with set_detect_anomaly(True), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = layout(x * cygrad.from_numpy(bad).to(dtype))
                with pytest.raises(RuntimeError, match="'MulBackward0' returned nan values in its 0th output"):
                    grad(y.sum(), x, cygrad.ones_like(y.sum()))


@pytest.mark.filterwarnings("ignore:Error detected in")
def test_nan_of_custom_nodes_hooks_and_roots():
    x = cygrad.ones(2, requires_grad=True)
    with set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="'MeanBackward' returned nan values in its 0th output"):
            Mean.apply(x).view(2, 1).sum().backward()
        y = (x * 2).view(2, 1)
        y.register_hook(lambda g: g * NAN)
        with pytest.raises(RuntimeError, match="'ViewBackward0' returned nan"):
            y.sum().backward()
        with pytest.raises(RuntimeError, match="'ViewBackward0' returned nan"):
            (x * 2).view(2, 1).backward(cygrad.tensor([[NAN], [1.0]]))
        y = x * 2
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * NAN, None))
        with pytest.raises(RuntimeError, match="'MulBackward0' returned nan"):
            y.view(2, 1).sum().backward()
        with saved_tensors_hooks(lambda t: t, lambda t: t * NAN):
            y = x.exp()
        with pytest.raises(RuntimeError, match="'ExpBackward0' returned nan"):
            y.sum().backward()


def test_without_the_check_nan_passes():
    x = cygrad.ones(2, requires_grad=True)
    with set_detect_anomaly(True, check_nan=False):
        (x * NAN).sum().backward()
    assert np.isnan(x.grad.numpy()).all()
    x.grad = None
    with set_detect_anomaly(True):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_same_gradients_as_without():
    def program(mode):
        x = cygrad.linspace(0.1, 3, 5000).requires_grad_()
        with set_detect_anomaly(mode):
            y = x
            for _ in range(5):
                y = ((y * x).sin() + y[..., None].squeeze(-1) / 2).sigmoid() * x.flip(0)
            y.cumsum(0).view(50, 100).softmax(1)[::2].sum().backward()
        return x.grad

    assert program(True).equal(program(False))


def warning_of(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError):
            action()
    texts = [str(entry.message) for entry in caught if "Anomaly detection" not in str(entry.message)]
    assert ["Error detected" in text for text in texts] == [True, *[False] * (len(texts) - 1)]
    return "\n".join(texts)


def culprit_native(x):
    return x * NAN


def culprit_custom(x):
    return Mean.apply(x)


@pytest.mark.parametrize(("culprit", "node"), [(culprit_native, "MulBackward0"), (culprit_custom, "MeanBackward")])
def test_the_traceback_of_the_forward_call(culprit, node):
    x = cygrad.ones(2, requires_grad=True)
    with set_detect_anomaly(True):
        y = culprit(x).sum()
        text = warning_of(y.backward)
    assert re.search(rf"Error detected in {node}\. Traceback of forward call that caused the error:\n"
                     rf"(.*\n)*.*test_anomaly_mode.py.*, in {culprit.__name__}\n", text)
    y = culprit(x).sum()
    with set_detect_anomaly(True):
        assert "No forward pass information is available" in warning_of(y.backward)


def test_nested_backward_names_what_induced_it():
    def first(x):
        return x.sqrt()

    x = cygrad.zeros(2, requires_grad=True)
    with set_detect_anomaly(True):
        y = first(x).sum()
        with set_detect_anomaly(True, check_nan=False):
            slope, = grad(y, x, create_graph=True)          # inf
        text = warning_of((slope * 0).sum().backward)
    assert re.search(r"Previous calculation was induced by SqrtBackward0\. "
                     r"Traceback of forward call that induced the previous calculation:\n(.*\n)*.*, in first\n", text)
    hooked = cygrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        inner = culprit_native(cygrad.ones(1, requires_grad=True)).sum()
        y = hooked * 2
        y.register_hook(lambda g: inner.backward())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="'MulBackward0' returned nan"):
                y.sum().backward()
    texts = [str(entry.message).partition(".")[0] for entry in caught]
    assert [text for text in texts if text.startswith("Error")] == [          # one for each backward that fails
        "Error detected in MulBackward0"] * 2


def test_the_traceback_is_printed_where_warnings_are_errors(capsys):
    with set_detect_anomaly(True):
        x = cygrad.tensor([1.0, 2.0], requires_grad=True)
        middle = x + 1
        y = middle ** 2
        middle += 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err
