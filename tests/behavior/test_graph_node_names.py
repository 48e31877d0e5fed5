"""Node names are PyTorch's, where operators correspond."""

import pytest

import cygrad

pytestmark = pytest.mark.guarantee("G2")

torch = pytest.importorskip("torch")

CALLS = {
    "cast": lambda t, f, x: x.to(t.float64), "copy": lambda t, f, x: t.zeros(2, 2).copy_(x),
    "reshape": lambda t, f, x: x.reshape(4), "flatten": lambda t, f, x: x.flatten(),
    "square": lambda t, f, x: x.square(), "contiguous": lambda t, f, x: x.t().contiguous(),
    "add alpha": lambda t, f, x: t.add(x, x, alpha=2), "sub alpha": lambda t, f, x: t.sub(x, x, alpha=2),
    "pow": lambda t, f, x: x.pow(x), "trunc": lambda t, f, x: t.div(x, 2, rounding_mode="trunc"),
    "floor": lambda t, f, x: t.div(x, 2, rounding_mode="floor"), "degrees": lambda t, f, x: t.rad2deg(x),
    "i0e": lambda t, f, x: t.special.i0e(x), "i1e": lambda t, f, x: t.special.i1e(x),
    "xlog1py": lambda t, f, x: t.special.xlog1py(x, x), "ndtri": lambda t, f, x: t.special.ndtri(x),
    "log_ndtr": lambda t, f, x: t.special.log_ndtr(x), "erfcx": lambda t, f, x: t.special.erfcx(x),
    "logit": lambda t, f, x: t.logit(x, 0.1), "gelu": lambda t, f, x: f.gelu(x, approximate="tanh"),
    "nanmedian": lambda t, f, x: t.nanmedian(x, 0).values,
    "eigvals": lambda t, f, x: t.linalg.eigvals(x), "eigvalsh": lambda t, f, x: t.linalg.eigvalsh(x),
    "svdvals": lambda t, f, x: t.linalg.svdvals(x), "fft": lambda t, f, x: t.fft.fft(t.complex(x, x)),
    "mse": lambda t, f, x: f.mse_loss(x, t.zeros(2, 2), reduction="none"),
    "huber": lambda t, f, x: f.huber_loss(x, t.zeros(2, 2), reduction="none"),
    "smooth l1": lambda t, f, x: f.smooth_l1_loss(x, t.zeros(2, 2), reduction="none"),
    "cross entropy": lambda t, f, x: f.binary_cross_entropy(x, t.zeros(2, 2), reduction="none"),
    "lstsq": lambda t, f, x: t.linalg.lstsq(x, x).solution,
    "triangular": lambda t, f, x: t.triangular_solve(x, x).cloned_coefficient,
    **{f"scatter {name}": lambda t, f, x, name=name: x.scatter_reduce(0, t.tensor([[0, 1]]), t.ones(1, 2), name)
       for name in ("prod", "amax", "amin")},
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_names(name):
    ours, theirs = (CALLS[name](library, library.nn.functional, library.tensor(
        [[0.5, 0.25], [0.25, 0.75]], requires_grad=True)).grad_fn.name() for library in (cygrad, torch))
    assert ours == theirs.removeprefix("torch::autograd::")


def test_nodes_say_that_gradients_are_wanted():
    assert cygrad.ones(1, requires_grad=True).exp().grad_fn.requires_grad is True


def test_the_gradient_of_a_sum_is_expanded():
    names = []
    for library in (cygrad, torch):
        x, factor = library.ones(2, 3, requires_grad=True), library.tensor(2.0, requires_grad=True)
        gradient, = library.autograd.grad(x.sum(), x, factor, create_graph=True)
        nodes = [gradient.grad_fn]
        while nodes[-1].next_functions:
            nodes.append(nodes[-1].next_functions[0][0])
        names.append(sorted(node.name().removeprefix("torch::autograd::") for node in nodes))
    assert names[0] == names[1] and "ExpandBackward0" in names[0]


def test_a_gradient_with_a_graph_is_a_copy_and_refuses_a_second_derivative_by_an_error_node():
    class Product(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.save_for_backward(x, y)
            return x * y * factor

        @staticmethod
        @cygrad.autograd.function.once_differentiable
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return gradient * y, None, gradient * x

    x, y = cygrad.ones(3, requires_grad=True), cygrad.ones(3, requires_grad=True)
    Product.apply(x, 1, y).sum().backward(cygrad.ones((), requires_grad=True), create_graph=True)
    (nothing, _), (error, _) = x.grad.grad_fn.next_functions
    assert (x.grad.grad_fn.name(), nothing, error.name()) == ("CopyBackwards", None, "Error")
    assert [node is None for node, _ in error.next_functions] == [False, True, False]
    with pytest.raises(RuntimeError, match="differentiate twice"):
        x.grad.sum().backward()
    a = cygrad.tensor([1.0, 2.0], requires_grad=True)
    (a ** 3).sum().backward(create_graph=True)
    assert a.grad.grad_fn.name() == "CopyBackwards"
    (second,) = cygrad.autograd.grad(a.grad.sum(), a)
    assert second.tolist() == [6, 12]
