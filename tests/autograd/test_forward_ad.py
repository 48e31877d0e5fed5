"""Forward mode: levels, dual tensors, and tangents of views, in-place operations and functions."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cygrad
from cygrad.autograd import forward_ad
from cygrad.autograd.forward_ad import dual_level, make_dual, unpack_dual


def tensor(*values, **options):
    return cygrad.tensor(values, dtype=cygrad.float64, **options)


def tangent(value):
    """The tangent as a list."""
    found = unpack_dual(value).tangent
    return None if found is None else found.tolist()


@pytest.fixture
def level():
    with dual_level() as number:
        yield number


@pytest.fixture
def x(level):
    return make_dual(tensor(1, 2, 3), tensor(1, 10, 100))


# ---- levels

def test_levels_have_numbers_and_do_not_nest():
    with dual_level() as first, pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        forward_ad.enter_dual_level()
    with dual_level() as second:
        assert first == second == 0
        with pytest.raises(RuntimeError, match=r"wrong level .got level 1"):
            forward_ad.exit_dual_level(level=1)
        with pytest.raises(RuntimeError, match="wrong level"):
            unpack_dual(tensor(1), level=1)


def test_outside_of_a_level():
    with pytest.raises(RuntimeError, match="exit_dual_level: this thread is not in a level"):
        forward_ad.exit_dual_level()
    with pytest.raises(RuntimeError, match="make_dual: no level exists in this thread, make sure to enter_dual_level"):
        make_dual(tensor(1), tensor(1))
    value = tensor(1)
    assert unpack_dual(value) == (value, None)


def test_the_end_of_a_level_frees_its_tangents():
    value = tensor(1, 2)
    with dual_level():
        direction = tensor(1, 1)
        found = weakref.ref(direction)
        dual = make_dual(value, direction)
        result = dual * 2
        del direction
        assert found() is not None
    gc.collect()
    assert found() is None
    with dual_level():
        assert tangent(result) is tangent(dual) is None


def test_a_level_ends_with_an_exception():
    with pytest.raises(KeyError), dual_level():
        raise KeyError
    with dual_level():
        pass


def test_a_tensor_that_dies_takes_its_tangent_along(level):
    direction = tensor(1, 1)
    found = weakref.ref(direction)
    dual = make_dual(tensor(1, 2), direction)
    del direction
    assert found() is not None
    del dual
    gc.collect()
    assert found() is None


def test_levels_belong_to_threads(x):
    seen = []

    def other():
        seen.append(unpack_dual(x).tangent)
        with dual_level():
            dual = make_dual(tensor(5), tensor(1))
            seen.append(tangent(dual * 3 + x.sum()))
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [None, [3.0]]
    assert tangent(x * 2) == [2, 20, 200]


# ---- dual tensors

def test_make_dual_gives_a_view(level):
    value, direction = tensor(1, 2), tensor(3, 4)
    dual = make_dual(value, direction)
    assert dual.data_ptr() == value.data_ptr() and dual is not value
    primal, found = unpack_dual(dual)
    assert found is direction
    assert primal.data_ptr() == value.data_ptr()
    assert tangent(primal) is tangent(value) is None
    assert tangent(dual.detach()) is None


@pytest.mark.parametrize(("error", "match", "primal", "direction"), [
    (RuntimeError, r"forward gradient that has a different size .*\(2,\).*\(1,\)", tensor(1), tensor(1, 2)),
    (ValueError, "Expected primal to be floating point or complex .got cygrad.int64", cygrad.arange(2), tensor(1, 2)),
    (ValueError, "make_dual: Expected tangent to be floating", tensor(1, 2), cygrad.arange(2)),
    (TypeError, "make_dual: the primal must be a Tensor .got float", 1.0, tensor(1)),
    (TypeError, "make_dual: the tangent must be a Tensor .got list", tensor(1), [1.0]),
])
def test_make_dual_refuses(level, error, match, primal, direction):
    with pytest.raises(error, match=match):
        make_dual(primal, direction)


def test_make_dual_twice(x):
    with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
        make_dual(x, tensor(1, 1, 1))
    with pytest.raises(TypeError, match="unpack_dual: expected a Tensor"):
        unpack_dual(1.0)


def test_a_tangent_gets_the_strides_of_its_tensor(level):
    value = tensor(1, 2, 3, 4).reshape(2, 2)
    dual = make_dual(value, tensor(5).expand(2, 2))
    assert tangent(dual.view(4)) == [5, 5, 5, 5]
    turned = make_dual(value.t(), tensor(1, 2, 3, 4).reshape(2, 2))
    assert tangent(turned.t().view(4)) == [1, 3, 2, 4]


def test_numbers_have_no_tangents(x):
    assert tangent(x > 2) is tangent(x.argmax()) is tangent(x.long()) is None
    assert tangent(x.sort().indices) is None
    assert tangent(x.sort(descending=True).values) == [100, 10, 1]


# ---- views and in-place operations

def test_views_share_tangents(x):
    base = x.clone()
    view = base[1:]
    base.mul_(2)
    assert tangent(view) == [20, 200]
    view.add_(make_dual(tensor(0), tensor(1)))
    assert tangent(base) == [2, 21, 201]
    base[0] = 7
    assert tangent(base) == [0, 21, 201]
    base[1:].zero_()
    assert tangent(base) == [0, 0, 0]
    base[:2] = x[1:]
    assert tangent(base) == [10, 100, 0]
    assert tangent(view) == [100, 0]


def test_a_view_made_before_its_base_became_dual(x):
    base = cygrad.zeros(2, 3, dtype=cygrad.float64)
    row, column, turned = base[1], base[:, 1], base.t()
    row.copy_(x)
    assert tangent(base) == [[0, 0, 0], [1, 10, 100]]
    assert tangent(column) == [0, 10]
    assert tangent(turned) == [[0, 1], [0, 10], [0, 100]]
    column.fill_(3)
    assert tangent(row) == [1, 0, 100]


@pytest.mark.parametrize("offset", [0, 2])
def test_views_of_a_part_and_in_other_numbers(x, offset):
    memory = cygrad.zeros(10, dtype=cygrad.float64)
    base = memory[offset:offset + 8].detach()
    numbers, strided = base.view(4, 2).detach(), base.as_strided((2, 2), (1, 3))
    pairs = cygrad.view_as_complex(numbers)
    numbers[1:, 1].copy_(x)
    assert tangent(pairs) == [0, 1j, 10j, 100j]
    assert tangent(strided) is None
    values = cygrad.zeros(8, dtype=cygrad.float64)
    strided = values.as_strided((2, 2), (1, 3), 1)
    values[2:5].copy_(x)
    assert tangent(strided) == [[0, 100], [1, 0]]


def test_in_place_with_every_kind_of_argument(x):
    y = x.clone().div_(x)
    np.testing.assert_allclose(tangent(y), [0, 0, 0], atol=1e-13)
    y = cygrad.ones(3, dtype=cygrad.float64)
    y.mul_(x)
    assert tangent(y) == [1, 10, 100]
    y.exp_()
    np.testing.assert_allclose(tangent(y), np.exp([1, 2, 3]) * [1, 10, 100])
    y = x.clone().masked_fill_(x > 2, 0)
    assert tangent(y) == [1, 10, 0]
    y = x.clone()
    y[cygrad.tensor([0, 2])] = x[:2]
    assert tangent(y) == [1, 10, 10]


def test_changes_in_place_leave_the_direction_of_others_alone(x):
    y = x.clone()
    y.mul_(3)
    z = x + 0
    z.mul_(3)
    assert tangent(x) == [1, 10, 100]


def test_integers_changed_in_place(x):
    y = cygrad.zeros(3, dtype=cygrad.int64)
    y.copy_(x)
    assert y.tolist() == [1, 2, 3]
    assert tangent(y) is None


# ---- with backward

def test_forward_over_reverse():
    x = tensor(1, 2, requires_grad=True)
    with dual_level():
        dual = make_dual(x, tensor(1, 0))
        product = dual[0] ** 2 * dual[1] ** 3
        gradient, = cygrad.autograd.grad(product, dual)
        assert not gradient.requires_grad
        assert tangent(gradient) == [16, 24]


def test_forward_over_reverse_into_a_leaf():
    x = tensor(2, requires_grad=True)
    with dual_level():
        (x * x * make_dual(tensor(3), tensor(1))).sum().backward()
        assert tangent(x.grad) == [4]
    assert x.grad.tolist() == [12]


def test_forward_over_reverse_when_intermediate_tensors_are_gone():
    """A saved tensor is another object in backward, with the tangent of the original."""
    x = tensor(0.5, requires_grad=True)
    with dual_level():
        dual = make_dual(x, tensor(1))
        y = ((dual.exp() * dual).tanh() * dual).exp()
        gc.collect()
        gradient, = cygrad.autograd.grad(y, dual)
        found = tangent(gradient)
    y = ((x.exp() * x).tanh() * x).exp()
    gradient, = cygrad.autograd.grad(y, x, create_graph=True)
    second, = cygrad.autograd.grad(gradient, x)
    np.testing.assert_allclose(found, second.tolist(), rtol=1e-12)


def test_forward_over_reverse_through_changes_in_place():
    x = tensor(0.5, 2, requires_grad=True)

    def function(x):
        y = x * 1
        y[0].mul_(x[1])
        return (y.pow_(3) * x).sum()
    with dual_level():
        dual = make_dual(x, tensor(1, -1))
        gradient, = cygrad.autograd.grad(function(dual), dual)
        found = tangent(gradient)
    expected = cygrad.autograd.functional.hvp(function, x.detach(), tensor(1, -1))[1]
    np.testing.assert_allclose(found, expected.tolist(), rtol=1e-12)


def test_reverse_over_forward():
    x, direction = tensor(1, 2, requires_grad=True), tensor(3, 5, requires_grad=True)
    with dual_level():
        dual = make_dual(x, direction)
        found = unpack_dual((dual ** 3).sum()).tangent
        by_x, by_direction = cygrad.autograd.grad(found, (x, direction))
    assert found.item() == 3 * 3 + 12 * 5
    assert by_x.tolist() == [18, 60]
    assert by_direction.tolist() == [3, 12]


@pytest.mark.parametrize("mode", [cygrad.no_grad, cygrad.inference_mode])
def test_without_recording(mode):
    x = tensor(1, 2, requires_grad=True)
    with mode(), dual_level():
        dual = make_dual(x, tensor(1, 10))
        results = [dual * dual, dual.sum(), cygrad.softmax(dual, 0), dual.norm(), dual @ dual]
        found = [tangent(result) for result in results]
        assert not any(unpack_dual(result).tangent.requires_grad for result in results)
    assert found[0] == [2, 40]
    assert found[1] == 11
    assert found[4] == 42
    np.testing.assert_allclose(found[2], [-9 * 0.19661193324148185, 9 * 0.19661193324148185])
    np.testing.assert_allclose(found[3], 21 / 5 ** 0.5)


def test_nested_backward_is_in_the_same_level():
    """So deep that backward continues in another thread."""
    x = tensor(1, requires_grad=True)

    def deeper(depth):
        with cygrad.enable_grad():
            y = x * dual * 1
            if depth:
                y.register_hook(lambda grad: deeper(depth - 1) and None)
            return cygrad.autograd.grad(y, dual)[0]
    with dual_level():
        dual = make_dual(tensor(2, requires_grad=True), tensor(1))
        assert tangent(deeper(60) * dual) == [1]


# ---- custom functions

class Product(cygrad.autograd.Function):
    """x * y, with all methods."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y = ctx.saved_tensors
        return x_t * y + x * y_t


def test_custom_function(x):
    assert tangent(Product.apply(x, x)) == [2, 40, 600]
    assert tangent(Product.apply(x, tensor(2, 2, 2))) == [2, 20, 200]
    assert tangent(Product.apply(tensor(1), tensor(2))) is None


def test_forward_over_reverse_through_a_custom_function():
    x = tensor(2, 3, requires_grad=True)
    with dual_level():
        dual = make_dual(x, tensor(1, 10))
        gradient, = cygrad.autograd.grad(Product.apply(dual * 1, dual.exp()).sum(), dual)
        found = tangent(gradient)
    np.testing.assert_allclose(found, (np.array([2, 3]) + 2) * np.exp([2, 3]) * [1, 10])


def test_what_jvp_gets():
    seen = []

    class Notes(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, factor, materialize):
            ctx.set_materialize_grads(materialize)
            return x + y, factor

        @staticmethod
        def jvp(ctx, *tangents):
            seen.append([None if item is None else item.tolist() for item in tangents])
            return tangents[0], None
    with dual_level():
        dual = make_dual(tensor(1), tensor(7))
        result, factor = Notes.apply(dual, tensor(2), 3, True)
        assert (tangent(result), factor) == ([7], 3)
        Notes.apply(dual, tensor(2), 3, False)
    assert seen == [[[7], [0], None, None], [[7], None, None, None]]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_jvp_sees_only_what_was_saved_for_forward(requires_grad):
    class Doubled(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def jvp(ctx, x_t):
            assert ctx.saved_tensors == ()
            return x_t * 2

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_tensors) == 1
            return grad * 2
    x = tensor(3).requires_grad_(requires_grad)
    with dual_level():
        result = Doubled.apply(make_dual(x, tensor(5)))
        assert tangent(result) == [10]
        if requires_grad:
            result.sum().backward()
            assert x.grad.tolist() == [2]


def test_custom_function_in_place(x):
    class Double(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, x_t):
            return x_t.mul_(2)
    y = x.clone()
    view = y[1:]
    assert Double.apply(y) is y
    assert tangent(y) == [2, 20, 200]
    assert tangent(view) == [20, 200]


@pytest.mark.parametrize(("forward", "jvp", "match"), [
    (lambda x: x.mul_(2), lambda t: t * 2, "must modify the corresponding gradient inplace"),
    (lambda x: x.mul_(2), lambda t: t, "must modify the corresponding gradient inplace .*unchanged"),
    (lambda x: x[:1], lambda t: t[:1].clone(), "jvp is not returning a view"),
    (lambda x: x, lambda t: t, "jvp is not returning a view"),
    (lambda x: x, lambda t: t * 1, "jvp is not returning a view"),
])
def test_tangents_share_memory_where_tensors_do(x, forward, jvp, match):
    class Sharing(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = forward(x)
            if result is x and match.startswith("must modify"):
                ctx.mark_dirty(x)
            return result

        @staticmethod
        def jvp(ctx, x_t):
            return Sharing.rule(x_t)
    Sharing.rule = jvp
    with pytest.raises(RuntimeError, match=match):
        Sharing.apply(x.clone())
    Sharing.rule = (lambda t: t.mul_(2)) if "must modify" in match else (lambda t: forward(t).view_as(forward(t)))
    assert tangent(Sharing.apply(x.clone()))


@pytest.mark.parametrize(("returned", "error", "match"), [
    (lambda t: (t, t), RuntimeError, "jvp returned an invalid number of forward gradients .expected 1 but got 2"),
    (lambda t: 1.0, TypeError, "jvp must return Tensors or None .got float"),
    (lambda t: t.sum(), RuntimeError, r"must return tangents of the shape and dtype of the output .*\(\).*\(3,\)"),
    (lambda t: t.float(), RuntimeError, "must return tangents of the shape and dtype of the output"),
])
def test_misuse_of_jvp(x, returned, error, match):
    class Wrong(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def jvp(ctx, x_t):
            return returned(x_t)
    with pytest.raises(error, match=match):
        Wrong.apply(x)


def test_custom_function_without_jvp(x):
    class Bare(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1
    with pytest.raises(NotImplementedError, match=r"must implement the jvp function for .*forward mode AD"):
        Bare.apply(x)


def test_out_is_refused(x):
    with pytest.raises(RuntimeError, match="add: the out= function does not keep tangents"):
        cygrad.add(x, x, out=tensor(0, 0, 0))


def test_an_interrupt_while_a_level_ends_leaves_none():
    """Entering and leaving are steps of C, between which no handler of a signal runs."""
    assert type(vars(dual_level.__mro__[1])["__enter__"]).__name__ == "method_descriptor"
    assert type(vars(dual_level.__mro__[1])["__exit__"]).__name__ == "method_descriptor"
    with pytest.raises(KeyboardInterrupt), dual_level():
        raise KeyboardInterrupt
    with dual_level():                       # would be refused inside another one
        pass


def test_tangents_are_copied_unless_they_lie_alike():
    with dual_level():
        primal, tangent = cygrad.ones(3), cygrad.ones(3)
        assert unpack_dual(make_dual(primal, tangent)).tangent is tangent
        for other in (cygrad.ones(6)[:3], cygrad.ones(6)[::2], cygrad.ones(1).expand(3)):
            held = unpack_dual(make_dual(cygrad.ones(3), other)).tangent
            assert held.tolist() == [1, 1, 1] and held.data_ptr() != other.data_ptr()


@pytest.mark.parametrize("start", [0, 1, 3])
def test_as_strided_reads_zeros_where_a_tensor_has_no_tangent(start):
    primal, direction = tensor(*range(8))[2:6], tensor(*range(10, 20))[1:5]
    expected = tensor(0, 0, 11, 12, 13, 14, 0, 0)
    with dual_level():
        window = make_dual(primal, direction).as_strided((4,), (1,), start)
        assert tangent(window) == expected[start:start + 4].tolist()
        window.mul_(2)
    found = cygrad.func.jvp(lambda x: x.as_strided((4,), (1,), start), (primal,), (direction,))
    assert found[1].tolist() == expected[start:start + 4].tolist()
    assert direction.tolist() == [11, 12, 13, 14]


@pytest.mark.parametrize("view", [lambda x: x.view_as(x), lambda x: x.t(), lambda x: x[0]])
def test_batched_tangents_can_be_copied_into_unbatched_tensors(view):
    directions = cygrad.arange(12.0, dtype=cygrad.float64).view(3, 2, 2)

    def pushed(direction):
        target = view(cygrad.zeros(2, 2, dtype=cygrad.float64))
        with dual_level():
            dual = make_dual(cygrad.ones(2, 2, dtype=cygrad.float64), direction)
            target.copy_(dual if target.ndim == 2 else dual[1])
            return unpack_dual(target).tangent, unpack_dual(target._base).tangent
    target, base = cygrad.vmap(pushed)(directions)
    assert all(cygrad.equal(one, view(whole)) for one, whole in zip(target, base, strict=True))
    assert cygrad.equal(target, directions if target.ndim == 3 else directions[:, 1])


def test_tangents_of_another_dtype():
    with dual_level():
        for dtype in (cygrad.float64, cygrad.float32):
            dual = make_dual(cygrad.ones(2, dtype=cygrad.complex64), cygrad.ones(2, dtype=dtype))
            assert unpack_dual(dual).tangent.dtype is dtype


def test_tangents_have_no_tangents():
    with dual_level():
        dual = make_dual(tensor(1), tensor(1))
        with pytest.raises(RuntimeError, match="the tangent has a forward gradient at the same level"):
            make_dual(tensor(2), dual)


def test_without_tangent_the_primal_is_a_view():
    x = tensor(1, 2)
    with dual_level():
        primal, tangent = unpack_dual(x)
        assert tangent is None and primal is not x and primal._is_view() and primal.data_ptr() == x.data_ptr()


def test_duals_print_their_tangent():
    with dual_level():
        dual = make_dual(cygrad.tensor([1.0]), cygrad.tensor([2.0]))
        assert repr(dual) == "tensor([1.], tangent=tensor([2.]))"
        result = dual * 2
        assert unpack_dual(result).tangent is not None
        result.detach_()
        assert repr(result) == "tensor([2.])" and unpack_dual(result).tangent is None
