"""From a call to a recorded operation: recording, out=, fast and general path."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import grad

FLOAT = cygrad.float64


def leaf(*values):
    return cygrad.tensor(values, dtype=FLOAT, requires_grad=True)


@pytest.mark.parametrize("size", [1, 2048, 2049, 20_000])
@pytest.mark.parametrize("layout", ["contiguous", "strided", "broadcast", "mixed dtypes"])
def test_short_and_general_ways_agree(size, layout):
    """Small contiguous operands of one dtype take a short cut; nothing but the time may tell."""
    x = (cygrad.arange(size, dtype=FLOAT) + 1) / size
    if layout == "strided":
        x = cygrad.stack([x, x], dim=1)[:, 0]
    x.requires_grad_()
    w = cygrad.full((1,) if layout == "broadcast" else (size,), 2.0,
                    dtype=cygrad.float32 if layout == "mixed dtypes" else FLOAT).requires_grad_()
    y = (x * w - w / x).exp().tanh()
    assert y.dtype is FLOAT
    assert type(y.grad_fn).__name__ == "TanhBackward0"
    gx, gw = grad(y.sum(), [x, w])
    assert gx.shape == x.shape
    assert gx.dtype is x.dtype
    assert gw.shape == w.shape
    assert gw.dtype is w.dtype
    inner = x.detach() * 2 - 2 / x.detach()
    outer = (1 - inner.exp().tanh() ** 2) * inner.exp()
    assert ((gx - outer * (2 + 2 / x.detach() ** 2)).abs() < 1e-9).all()
    expected = outer * (x.detach() - 1 / x.detach())
    assert ((gw.double().sum() - expected.sum()).abs() < 1e-5 * size)


def test_out():
    a, b, out = cygrad.ones(3), cygrad.ones(3), cygrad.empty(3)
    assert cygrad.add(a, b, out=out) is out
    assert out.tolist() == [2.0] * 3
    assert out._version == 1
    empty = cygrad.empty(0)
    view = empty.view(0)
    assert cygrad.add(a, b, out=empty) is empty
    assert empty.tolist() == [2.0] * 3
    assert view.shape == (0,)
    with pytest.warns(UserWarning, match=r"An output .* was resized by add \(got \(2,\), expected \(3,\)\)"):
        assert cygrad.add(a, b, out=cygrad.empty(2)).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match=r"cannot be cast to out.*float32.*int64"):
        cygrad.add(a, b, out=cygrad.empty(3, dtype=cygrad.int64))
    with pytest.raises(TypeError, match="out must be a Tensor"):
        cygrad.add(a, b, out=5)
    assert cygrad.add(a, b, out=cygrad.empty(3, dtype=FLOAT)).dtype is FLOAT


def test_out_and_gradients():
    x = leaf(1.0, 2.0)
    for call in (lambda: cygrad.add(x, x, out=cygrad.empty(2, dtype=FLOAT)),
                 lambda: cygrad.exp(cygrad.ones(2, dtype=FLOAT), out=x)):
        with pytest.raises(RuntimeError, match="arguments don't support automatic differentiation"):
            call()
    with cygrad.no_grad():
        assert cygrad.mul(x, x, out=x) is x
    assert x.tolist() == [1.0, 4.0]
    assert x.is_leaf


def test_out_that_is_an_argument():
    x = cygrad.tensor([1.0, 2.0, 3.0])
    cygrad.add(x, x, out=x)
    assert x.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(RuntimeError, match="elements of out overlap"):
        cygrad.mul(x[:2], 10, out=x[1:])
    assert x.tolist() == [2.0, 4.0, 6.0]


def test_partial_overlap_in_place():
    x = cygrad.tensor([1.0, 2.0, 3.0, 4.0])
    x[1:].add_(x[:-1])
    assert x.tolist() == [1.0, 3.0, 5.0, 7.0]


def test_results_without_gradient():
    x = leaf(3.0, 1.0)
    for result in (x > 1, x == x, x.argmax(), x.argsort(), x.isnan(), x.long(), x.sort().indices):
        assert not result.requires_grad
        assert result.grad_fn is None


def test_in_place_refuses_what_does_not_fit():
    x = cygrad.ones(2, dtype=cygrad.int64)
    with pytest.raises(RuntimeError, match=r"float32 can't be cast to the desired output type int64"):
        x.mul_(1.5)
    with pytest.raises(RuntimeError):
        cygrad.ones(2).add_(cygrad.ones(3, 2))
    with pytest.raises(RuntimeError):
        cygrad.ones(2).mul_(1j)
    assert x.tolist() == [1, 1]
    assert x._version == 0


def test_arguments_that_change_during_the_call():
    """Python code that runs inside a call (here: while a list is read) may change its arguments."""
    x = cygrad.ones(3)

    class Index:
        def __index__(self):
            x.data = cygrad.ones(1)
            return 0

    assert x.sum(Index()).item() in (1.0, 3.0)


def test_named_tuples():
    result = leaf(3.0, 1.0).sort()
    values, indices = result
    assert type(result).__name__ == "sort"
    assert result._fields == ("values", "indices")
    assert values is result.values
    assert indices is result[1]


# ---- in-place forms with a separate kernel

def rows(seed=0):
    return (cygrad.arange(12, dtype=FLOAT).view(3, 4) + seed) / 4


INDEX = cygrad.tensor([[0, 2, 1, 0], [1, 0, 2, 2]])
MASK = cygrad.tensor([[True, False, False, True], [False, False, True, False], [True, True, False, False]])
FORMS = [
    ("scatter", lambda b: (0, INDEX, b[:2])),
    ("scatter", lambda b: (0, INDEX, 7.0)),
    ("scatter_add", lambda b: (0, INDEX, b[:2])),
    ("index_add", lambda b: (0, cygrad.tensor([2, 0, 2]), b)),
    ("masked_fill", lambda b: (MASK, 7.0)),
    ("masked_fill", lambda b: (MASK, b.sum())),
]
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "strided": lambda x: cygrad.stack([x, x], dim=2)[:, :, 0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_in_place_equals_out_of_place(name, arguments, layout):
    gradients = []
    for form in (name, f"{name}_"):
        a, b = rows().requires_grad_(), rows(100).requires_grad_()
        x = LAYOUTS[layout](a * 1)
        x = x if x is not a else x.clone()
        version = x._version
        y = getattr(x, form)(*arguments(b))
        assert (y is x) == (form != name)
        assert x._version == version + (form != name)
        (y * y).sum().backward()
        gradients.append((y.detach(), a.grad, b.grad))
    for one, other in zip(*gradients, strict=True):
        assert (one is None and other is None) or cygrad.equal(one, other)


@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_in_place_forms_see_what_they_must_not_change(name, arguments):
    b = rows(100)
    wide = cygrad.zeros(3, 1, dtype=FLOAT).expand(3, 4)
    with pytest.raises(RuntimeError, match="share a memory location"):
        getattr(wide, f"{name}_")(*arguments(b))
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(rows().requires_grad_(), f"{name}_")(*arguments(b))
    x = rows().requires_grad_() * 1
    y = x * x
    getattr(x, f"{name}_")(*arguments(b))
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_in_place_forms_change_the_base_of_a_view():
    a = rows().requires_grad_()
    x = a * 1
    x[1:].masked_fill_(MASK[1:], 0.0)
    x[:, 0].scatter_(0, cygrad.tensor([1]), 5.0)
    (x * x).sum().backward()
    assert x.tolist() == [[0.0, 0.25, 0.5, 0.75], [5.0, 1.25, 0.0, 1.75], [0.0, 0.0, 2.5, 2.75]]
    assert (a.grad == 2 * x.detach() * (x.detach() == a.detach())).all()


@pytest.mark.parametrize("own", [False, True])
def test_in_place_forms_read_overlapping_memory_first(own):
    """The same if an operand overlaps the written memory."""
    read = (lambda x: x) if own else (lambda x: x.clone())
    x = cygrad.arange(6.0)
    x[1:].scatter_(0, cygrad.arange(5), read(x)[:5])
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    x = cygrad.arange(6.0)
    x[1:].scatter_add_(0, cygrad.arange(5), read(x)[:5])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
    x = cygrad.tensor([2, 0, 1])
    x.scatter_(0, read(x), read(x))
    assert x.tolist() == [0, 1, 2]
    x = cygrad.tensor([True, False, False, True])
    x[1:].masked_fill_(read(x)[:-1], True)
    assert x.tolist() == [True, True, False, True]
    x = cygrad.tensor([1.0, 2.0, 3.0])
    x.masked_fill_(cygrad.tensor([True, True, False]), read(x)[2])
    assert x.tolist() == [3.0, 3.0, 3.0]
    x = cygrad.arange(6.0)
    x[cygrad.tensor([1, 2, 3, 4, 5])] = read(x)[:5]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_in_place_forms_change_nothing_when_they_fail():
    x = cygrad.arange(4.0)
    for call in (lambda: x.scatter_(0, cygrad.tensor([0, 9]), 7.0), lambda: x.masked_fill_(x > 0, 1j),
                 lambda: x.scatter_add_(0, cygrad.tensor([0, -5]), cygrad.ones(2)),
                 lambda: x.masked_fill_(cygrad.ones(2, 4, dtype=cygrad.bool), 0.0)):
        with pytest.raises(RuntimeError):
            call()
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert x._version == 0


def test_internal_operators_are_no_methods():
    for name in ("add_scaled_", "sub_scaled_", "pow_tensor_", "clamp_between_", "trunc_divide_"):
        assert not hasattr(cygrad.Tensor, name)
    for name in ("add_", "sub_", "pow_", "clamp_", "div_", "copy_", "multiply_"):
        assert hasattr(cygrad.Tensor, name)


@pytest.mark.parametrize("call", [
    lambda x, meta: x.mul_(meta), lambda x, meta: x.add_(meta, alpha=2), lambda x, meta: x.copy_(meta),
    lambda x, meta: x.addcmul_(meta, meta), lambda x, meta: x.clamp_(meta, meta),
    lambda x, meta: x.index_add_(0, cygrad.tensor([0, 1]), meta), lambda x, meta: x[:1].mul_(meta[:1]),
    lambda x, meta: x.__setitem__(0, meta[0]),
])
def test_tensors_without_elements_change_no_others(call):
    x, meta = cygrad.ones(2), cygrad.ones(2, device="meta")
    with pytest.raises(NotImplementedError, match="meta"):
        call(x, meta)
    assert x.tolist() == [1.0, 1.0]
    assert meta.mul_(x).is_meta


@pytest.mark.parametrize(("operation", "call"), [
    ("add", lambda: cygrad.ones(3) + cygrad.ones(4)),
    ("mul", lambda: cygrad.ones(3).mul(cygrad.ones(4))),
    ("where", lambda: cygrad.where(cygrad.ones(3) > 0, cygrad.ones(4), 0)),
    ("mse_loss", lambda: cygrad.nn.functional.mse_loss(cygrad.ones(3), cygrad.ones(4))),
    ("hypot", lambda: np.hypot(cygrad.ones(3), cygrad.ones(4))),
    ("sub", lambda: cygrad.func.grad(lambda x: (x - cygrad.ones(4)).sum())(cygrad.ones(3))),
    ("add", lambda: cygrad.ones(3, 3000) + cygrad.ones(4, 3000)),          # large enough to release the GIL
])
@pytest.mark.filterwarnings("ignore:mse_loss")
def test_shape_errors_name_the_operation_that_was_called(operation, call):
    with pytest.raises(RuntimeError, match=rf"^{operation}: cannot broadcast shapes \(3,.*\) and \(4,.*\): the size of "
                                           r"tensor a \(3\) must match .* tensor b \(4\) at non-singleton dimension 0"):
        call()


@pytest.mark.parametrize(("operation", "call"), [
    ("clamp_", lambda: cygrad.ones(2, requires_grad=True).clamp_(0, 1)),
    ("zero_", lambda: cygrad.ones(2, requires_grad=True).zero_()),
    ("clamp", lambda: cygrad.clamp(cygrad.ones(2, dtype=cygrad.complex64), 0, 1)),
    ("clamp", lambda: cygrad.clamp("a", 0, 1)),
    ("logit", lambda: cygrad.logit(cygrad.ones(2), cygrad.ones(2))),
    ("clamp", lambda: cygrad.clamp(cygrad.ones(2), 0, 1, out="a")),
    ("clamp", lambda: cygrad.clamp(cygrad.ones(2), 0, 1, out=cygrad.ones(2, dtype=cygrad.int64))),
    ("bitwise_left_shift", lambda: cygrad.bitwise_left_shift(cygrad.ones(2), 1)),
    ("huber_loss", lambda: cygrad.nn.functional.huber_loss(*[cygrad.ones(2, dtype=cygrad.complex64)] * 2)),
    ("nll_loss", lambda: cygrad.nn.functional.nll_loss(cygrad.ones(1, 3), cygrad.tensor([5]))),
])
def test_errors_of_internal_rows_name_the_function_that_was_called(operation, call):
    with pytest.raises(Exception, match=f"^{operation}: "):
        call()


def test_in_place_errors_name_the_method():
    with pytest.raises(RuntimeError, match=r"^add_: output with shape \(3,\) doesn't match the broadcast"):
        cygrad.ones(3).add_(cygrad.ones(2, 3))
    x = cygrad.ones(3)
    with pytest.raises(RuntimeError, match=r"^mul_: cannot broadcast shapes \(3,\) and \(4,\)"):
        x *= cygrad.ones(4)
    assert x.tolist() == [1.0] * 3


def test_argument_errors_name_the_parameter_of_the_function():
    with pytest.raises(TypeError, match=r"^linear: argument 'input' must be a Tensor"):
        cygrad.nn.functional.linear("a", cygrad.ones(2, 2))
