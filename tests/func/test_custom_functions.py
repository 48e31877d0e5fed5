"""Custom functions under vmap and other transforms."""

import pytest

import cygrad
from tests.func.test_transforms import compare, numbers
from tests.reference import torch

pytestmark = [pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")]


def generated(library, **members):
    """x * x * y, with a rule made of its methods."""
    class Product(library.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y, power):
            return x ** power * y, x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, power = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            ctx.mark_non_differentiable(output[1])
            ctx.power, ctx.also = power, x

        @staticmethod
        def backward(ctx, grad, unused):
            x, y = ctx.saved_tensors
            assert ctx.also.shape == x.shape
            return grad * ctx.power * x ** (ctx.power - 1) * y, grad * x ** ctx.power, None

        @staticmethod
        def jvp(ctx, x_t, y_t, unused):
            x, y = ctx.saved_tensors
            return x_t * ctx.power * x ** (ctx.power - 1) * y + x ** ctx.power * y_t, None

    for name, value in members.items():
        setattr(Product, name, value)
    return lambda x, y: Product.apply(x, y, 2)[0]


def defined(library):
    """The sine with a custom vmap rule, whose result has the batch in the last dimension."""
    seen = []

    class Sine(library.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x.sin() * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * x.cos() * ctx.factor, None

        @staticmethod
        def vmap(info, in_dims, x, factor):
            seen.append((info.batch_size, info.randomness, in_dims))
            return Sine.apply(x.movedim(in_dims[0], -1), factor), -1

    Sine.seen = seen
    return Sine


@pytest.mark.parametrize(("name", "program"), {
    "value": lambda t: t.vmap(generated(t))(numbers(t, 4, 3), numbers(t, 4, 3, start=12)),
    "the same for all": lambda t: t.vmap(generated(t), in_dims=(0, None))(numbers(t, 4, 3), numbers(t, 3, start=12)),
    "gradients": lambda t: t.vmap(t.func.grad(lambda x, y: generated(t)(x, y).sum(), argnums=(0, 1)),
                                  in_dims=(0, None))(numbers(t, 4, 3), numbers(t, 3, start=12)),
    "backward of a batch": lambda t: t.func.grad(lambda x, y: t.vmap(generated(t), in_dims=(0, None))(x, y).sum(),
                                                 argnums=(0, 1))(numbers(t, 4, 3), numbers(t, 3, start=12)),
    "second order": lambda t: t.func.jacrev(t.func.grad(lambda x, y: t.vmap(generated(t), in_dims=(0, None))(
        x, y).sum()))(numbers(t, 4, 3), numbers(t, 3, start=12)),
    "nested": lambda t: t.vmap(t.vmap(generated(t), in_dims=(None, 0)), in_dims=(0, None))(
        numbers(t, 4, 3), numbers(t, 2, 3, start=12)),
    "nested gradients": lambda t: t.func.grad(lambda x, y: t.vmap(t.vmap(generated(t), in_dims=(None, 0)), in_dims=(
        0, None))(x, y).sum(), argnums=(0, 1))(numbers(t, 4, 3), numbers(t, 2, 3, start=12)),
    "jacrev": lambda t: t.func.jacrev(generated(t), argnums=(0, 1))(numbers(t, 3), numbers(t, 3, start=12)),
    "jacfwd": lambda t: t.func.jacfwd(generated(t), argnums=(0, 1))(numbers(t, 3), numbers(t, 3, start=12)),
    "defined": lambda t: t.vmap(lambda x: defined(t).apply(x, 2.0))(numbers(t, 4, 3)),
    "defined, gradients": lambda t: t.vmap(t.func.grad(lambda x: defined(t).apply(x, 2.0).sum()))(numbers(t, 4, 3)),
    "defined, nested": lambda t: t.vmap(t.vmap(lambda x: defined(t).apply(x, 2.0)))(numbers(t, 4, 3, 2)),
}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_custom_functions_as_the_peer_has_them(name, program):
    compare(program)


def test_what_a_rule_is_told():
    function = defined(cygrad)
    cygrad.vmap(lambda x: function.apply(x, 2.0), in_dims=1, randomness="same")(cygrad.ones(3, 4))
    assert function.seen == [(4, "same", (0, None))]


@pytest.mark.parametrize(("members", "match"), [
    ({"generate_vmap_rule": False}, "does not have vmap support"),
    ({"vmap": staticmethod(lambda info, dims, *args: None)}, "both generate_vmap_rule=True"),
    ({"vmap": staticmethod(lambda info, dims, *args: args[0]), "generate_vmap_rule": False}, "two returns"),
])
def test_refusals(members, match):
    for library in (cygrad, torch):
        with pytest.raises(RuntimeError, match=match):
            library.vmap(generated(library, **members))(library.ones(2, 3), library.ones(2, 3))


def test_a_function_without_setup_context_is_refused():
    class Old(cygrad.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match="setup_context"):
        cygrad.vmap(Old.apply)(cygrad.ones(2))


def test_changes_in_place_are_those_of_all_entries():
    class Doubled(cygrad.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = cygrad.ones(3, 2, requires_grad=True)
    y = cygrad.vmap(lambda x: Doubled.apply(x.clone()))(x)
    y.sum().backward()
    assert (y == 2).all() and (x.grad == 2).all()
