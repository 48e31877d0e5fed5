"""``out=``: shape, overlap, tangents, and the line of warnings."""

import warnings
from pathlib import Path

import pytest

import cygrad
import cygrad.autograd.forward_ad as forward

FUNCTIONS = {
    "add": (lambda out: cygrad.add(cygrad.ones(2), 1, out=out), [2, 2]),
    "sum": (lambda out: cygrad.sum(cygrad.ones(2, 2), 1, out=out), [2, 2]),
    "mm": (lambda out: cygrad.mm(cygrad.ones(1, 2), cygrad.ones(2, 2), out=out), [[2, 2]]),
    "cat": (lambda out: cygrad.cat([cygrad.ones(1), cygrad.zeros(1)], out=out), [1, 0]),
    "arange": (lambda out: cygrad.arange(2.0, out=out), [0, 1]),
    "zeros": (lambda out: cygrad.zeros(2, out=out), [0, 0]),
    "randn": (lambda out: cygrad.randn(2, out=out) * 0, [0, 0]),
    "addbmm": (lambda out: cygrad.addbmm(cygrad.zeros(1, 1), cygrad.ones(1, 1, 2), cygrad.ones(1, 2, 1), out=out),
               [[2]]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_shape(name):
    function, expected = FUNCTIONS[name]
    out = cygrad.full((3,), 7.0)
    version = out._version
    with pytest.warns(UserWarning, match="was resized") as caught:
        function(out)
    assert [warning.filename for warning in caught] == [__file__]
    assert out.tolist() == expected or (name == "randn" and out.shape == (2,))
    assert out._version > version
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = cygrad.empty(0)
        assert function(empty).tolist() == expected


@pytest.mark.parametrize(("size", "shape"), [(3, (1, 3)), (6, (2, 2)), (4, (2, 2))])
def test_another_shape_in_the_same_memory(size, shape):
    """As far as the elements fit there: views see them, and what was saved of it notices."""
    x = cygrad.ones(size, requires_grad=True)
    out = cygrad.zeros(size) + 2
    view = out.view(size)
    product = x * out
    with pytest.warns(UserWarning, match="was resized"), cygrad.no_grad():
        cygrad.mul(cygrad.full(shape, 7.0), 1, out=out)
    assert out.shape == shape
    assert out.is_contiguous()
    assert view.tolist() == [7.0] * out.numel() + [2.0] * (size - out.numel())
    assert view._version == out._version > 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_several_results():
    values, places = cygrad.zeros(5), cygrad.zeros(4, dtype=cygrad.int64)
    with pytest.warns(UserWarning, match="was resized"):
        cygrad.max(cygrad.tensor([[1.0, 3.0], [4.0, 2.0]]), 1, out=(values, places))
    assert values.tolist() == [3, 4] and places.tolist() == [1, 0]


def test_overlapping_memory():
    x = cygrad.arange(4.0)
    for call in (lambda: cygrad.add(x[:3], 1, out=x[1:]), lambda: cygrad.cat([x[2:], x[:2]], out=x)):
        with pytest.raises(RuntimeError, match="elements of out overlap"):
            call()
    x = cygrad.arange(4.0)
    for call in (lambda: cygrad.cat([x[2:], x[:2]], out=x), lambda: cygrad.index_select(
            x, 0, cygrad.arange(4).flip(0), out=x)):
        with pytest.raises(RuntimeError, match="elements of out overlap"):
            call()
    assert cygrad.add(x, 1, out=x).tolist() == [1, 2, 3, 4]
    pairs = x.view(2, 2)                                   # no element of one column is one of the other
    cygrad.add(pairs[:, 0], 1, out=pairs[:, 1])
    assert x.tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="share a memory location"):
        cygrad.add(cygrad.ones(3), 1, out=cygrad.zeros(1).expand(3))


@pytest.mark.parametrize("call", [
    lambda memory: cygrad.take(memory, cygrad.tensor([3, 2]), out=memory[:2]),
    lambda memory: cygrad.take(cygrad.arange(9), memory, out=memory),
    lambda memory: cygrad.kthvalue(memory, 2, out=(memory, cygrad.tensor(0))),
    lambda memory: cygrad.cat((memory[:0], memory), out=memory),
    lambda memory: (lambda nothing: cygrad.cat((nothing, cygrad.ones(2)), out=nothing))(cygrad.zeros(0))])
def test_memory_of_elements_that_move(call):
    with pytest.raises(RuntimeError, match="elements of out overlap"):
        call(cygrad.arange(4))


def test_addbmm_grows():
    """`addbmm_` is the one operator in place whose input takes the shape of its result."""
    input = cygrad.ones(1)
    with pytest.warns(UserWarning, match="resized"):
        assert input.addbmm_(cygrad.ones(2, 2, 3), cygrad.ones(2, 3, 4)) is input
    assert input.tolist() == [[7.0] * 4] * 2
    leaf = cygrad.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="resized"):
        ((leaf * 2).addbmm_(cygrad.ones(2, 2, 3), cygrad.ones(2, 3, 4)) ** 2).sum().backward()
    assert leaf.grad.tolist() == [8 * 2 * 8.0 * 2]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        input.clone()[0, :1].baddbmm_(cygrad.ones(2, 2, 3), cygrad.ones(2, 3, 4))


def test_another_dtype():
    out = cygrad.zeros(2, dtype=cygrad.float64)
    assert cygrad.mul(cygrad.ones(2), 1.5, out=out).tolist() == [1.5, 1.5]
    with pytest.raises(RuntimeError, match="cannot be cast"):
        cygrad.mul(cygrad.ones(2), 1.5, out=cygrad.zeros(2, dtype=cygrad.int64))
    with pytest.raises(RuntimeError, match="cannot be cast"):
        cygrad.index_select(cygrad.ones(2), 0, cygrad.tensor([0]), out=cygrad.zeros(1, dtype=cygrad.float64))
    for call in (lambda: cygrad.multinomial(cygrad.ones(2), 1, out=cygrad.zeros(1)),
                 lambda: cygrad.aminmax(cygrad.ones(2, 2), dim=0, out=(cygrad.zeros(2), cygrad.zeros(2).double())),
                 lambda: cygrad.complex(cygrad.ones(1), cygrad.ones(1), out=cygrad.zeros(1).cdouble())):
        with pytest.raises(RuntimeError, match="dtype"):
            call()


def test_tangents():
    with forward.dual_level():
        dual = forward.make_dual(cygrad.ones(2), cygrad.ones(2))
        for function in (lambda: cygrad.add(cygrad.ones(2), 1, out=dual), lambda: cygrad.zeros(2, out=dual),
                         lambda: cygrad.addbmm(cygrad.ones(2), cygrad.ones(1, 1, 2), cygrad.ones(1, 2, 2), out=dual)):
            with pytest.raises(NotImplementedError, match="does not keep tangents"):
                function()


def test_once_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            cygrad.nn.functional.affine_grid(cygrad.zeros(1, 2, 3), (1, 1, 2, 2))
    assert [(Path(warning.filename).name, "align_corners" in str(warning.message)) for warning in caught] == [
        (Path(__file__).name, True)]
    with pytest.warns(UserWarning, match="align_corners"):
        cygrad.nn.functional.grid_sample(cygrad.ones(1, 1, 2, 2), cygrad.zeros(1, 2, 2, 2))


POSITIONS = {
    "nonzero": lambda x, out: cygrad.nonzero(x, out=out),
    **{name: lambda x, out, name=name: getattr(cygrad, name)(x, 0, out=(cygrad.empty(0), out))
       for name in ("sort", "max", "min", "median", "mode", "cummax", "cummin")},
    **{name: lambda x, out, name=name: getattr(cygrad, name)(x, 1, out=(cygrad.empty(0), out))
       for name in ("topk", "kthvalue")},
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_written_to_int64_only(name):
    x = cygrad.tensor([0.0, 2, 1])
    POSITIONS[name](x, cygrad.empty(0, dtype=cygrad.int64))
    for dtype in (cygrad.float32, cygrad.int32, cygrad.uint8, cygrad.float64):
        with pytest.raises(RuntimeError, match="cannot be cast to out"):
            POSITIONS[name](x, cygrad.empty(0, dtype=dtype))


def test_integer_results_that_are_no_positions_are_written_to_floats():
    one = cygrad.tensor([1])
    for function in (cygrad.bitwise_and, cygrad.add, cygrad.floor_divide):
        assert function(one, 1, out=cygrad.empty(0)).dtype == cygrad.float32


def test_nonzero_as_a_tuple_refuses_out():
    with pytest.raises(RuntimeError, match="out if as_tuple"):
        cygrad.nonzero(cygrad.ones(2), as_tuple=True, out=cygrad.empty(0, dtype=cygrad.int64))


RANGES = {
    "arange": lambda out: cygrad.arange(4, out=out),
    "linspace": lambda out: cygrad.linspace(0, 3, 4, out=out),
    "logspace": lambda out: cygrad.logspace(0, 3, 4, base=2, out=out),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_fill_a_view_with_as_many_elements_in_its_shape(name):
    base = cygrad.zeros(2, 3, dtype=cygrad.float64)
    view = base.narrow(1, 1, 2)
    assert RANGES[name](view) is view
    values = [1, 2, 4, 8] if name == "logspace" else [0, 1, 2, 3]
    assert base.tolist() == [[0, *values[:2]], [0, *values[2:]]]


@pytest.mark.parametrize("function", [
    lambda x, out: cygrad.exp(x, out=out), lambda x, out: cygrad.add(x, x, out=out),
    lambda x, out: cygrad.eq(x, 1, out=out)])
def test_empty_out_gets_the_layout_of_the_operands(function):
    x = cygrad.ones(2, 3, 4).permute(2, 0, 1)
    out = cygrad.empty(0, dtype=function(x, None).dtype)
    assert function(x, out) is out and out.shape == (4, 2, 3) and out.stride() == x.stride() == (1, 12, 4)


WIDER = {
    "pinv": lambda a, out: cygrad.linalg.pinv(a, out=out), "cond": lambda a, out: cygrad.linalg.cond(a, out=out),
    "cond of norms": lambda a, out: cygrad.linalg.cond(a, 1, out=out),
    "tensorinv": lambda a, out: cygrad.linalg.tensorinv(a, 1, out=out),
    "kron": lambda a, out: cygrad.kron(a, a, out=out),
    "householder_product": lambda a, out: cygrad.linalg.householder_product(a, a[0], out=out),
    "cholesky_inverse": lambda a, out: cygrad.cholesky_inverse(a, out=out),
    "diff": lambda a, out: cygrad.diff(a, out=out),
    "cholesky_solve": lambda a, out: cygrad.cholesky_solve(a, a, out=out),
    "addr": lambda a, out: cygrad.addr(a, a[0], a[0], out=out), "nanmean": lambda a, out: cygrad.nanmean(a, out=out),
    "matrix_rank": lambda a, out: cygrad.linalg.matrix_rank(a, out=out),
    "eigvals": lambda a, out: cygrad.linalg.eigvals(a, out=out),
}


@pytest.mark.parametrize("name", WIDER)
def test_result_is_written_to_a_wider_out(name):
    a = cygrad.tensor([[3.0, 1.0], [1.0, 2.0]])
    expected = WIDER[name](a, None)
    out = cygrad.empty(0, dtype=cygrad.complex128)
    assert WIDER[name](a, out) is out and out.tolist() == expected.to(cygrad.complex128).tolist()
    with pytest.raises(RuntimeError, match="cannot be cast to out"):
        WIDER[name](a, cygrad.empty(0, dtype=cygrad.bool))


@pytest.mark.parametrize(("function", "expected"), [(cygrad.nuclear_norm, 7), (cygrad.frobenius_norm, 5)])
def test_norms_are_written_to_out(function, expected):
    out = cygrad.empty(())
    assert function(cygrad.tensor([[3.0, 0.0], [0.0, 4.0]]), out=out) is out and round(out.item(), 4) == expected


def test_frequencies_have_the_dtype_of_out():
    out = cygrad.empty(0, dtype=cygrad.float64)
    assert cygrad.fft.fftfreq(3, 0.3, out=out) is out
    assert out.tolist() == [0, 1 / 0.9, -1 / 0.9]


def test_parts_of_a_split_are_written_to_out():
    out = [cygrad.zeros(1), cygrad.zeros(3)]
    cygrad.split_with_sizes_copy(cygrad.arange(4.0), [1, 3], out=out)
    assert [part.tolist() for part in out] == [[0], [1, 2, 3]]


@pytest.mark.parametrize("function", [cygrad.linspace, cygrad.arange])
def test_refused_dtype_of_out_names_the_function(function):
    with pytest.raises(RuntimeError, match=f"^{function.__name__}: the result cannot be cast to out"):
        function(0, 1, 4, dtype=cygrad.float64, out=cygrad.empty(4))
