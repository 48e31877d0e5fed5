"""Gradients through collectives equal those of one process."""

import numpy as np
import pytest

import cygrad as torch

from .ranks import ranks

pytestmark = pytest.mark.slow

dist = torch.distributed


def inputs(n, shape=(2, 3), seed=0):
    """One tensor for each rank, as every rank can make them."""
    random = np.random.default_rng(seed)
    return [torch.tensor(random.standard_normal(shape), requires_grad=True) for _ in range(n)]


def apart(output, own):
    """Return the gradient of the sum of all ranks' losses, from a backward on each rank."""
    loss = (output.sin() * (dist.get_rank() + 1)).sum()
    return torch.autograd.grad(loss, own, create_graph=True)[0]


def cases(n):
    """Return name -> (call of a rank, outputs of all ranks in one process)."""
    op = dist.ReduceOp
    stacked = torch.stack
    return {
        "sum": (lambda x: dist.nn.all_reduce(x), lambda xs: [sum(xs)] * n),
        "average": (lambda x: dist.nn.all_reduce(x, op.AVG), lambda xs: [sum(xs) / n] * n),
        "product": (lambda x: dist.nn.all_reduce(x, op.PRODUCT), lambda xs: [stacked(xs).prod(0)] * n),
        "maximum": (lambda x: dist.nn.all_reduce(x, op.MAX), lambda xs: [stacked(xs).amax(0)] * n),
        "minimum": (lambda x: dist.nn.all_reduce(x, op.MIN), lambda xs: [stacked(xs).amin(0)] * n),
        "broadcast": (lambda x: dist.nn.broadcast(x, 1), lambda xs: [xs[1]] * n),
        "reduce": (lambda x: dist.nn.reduce(x, 1), lambda xs: [sum(xs) if k == 1 else xs[0] * 0 for k in range(n)]),
        "reduce to an average": (lambda x: dist.nn.reduce(x, 0, op.AVG),
                                 lambda xs: [sum(xs) / n if k == 0 else xs[0] * 0 for k in range(n)]),
        "all_gather": (lambda x: torch.cat(dist.nn.all_gather(x)), lambda xs: [torch.cat(xs)] * n),
        "gather": (lambda x: torch.cat(dist.nn.gather(x, 1)),
                   lambda xs: [torch.cat(xs) if k == 1 else torch.cat(xs) * 0 for k in range(n)]),
        "scatter": (lambda x: dist.nn.scatter([x * (k + 1) for k in range(n)], 1),
                    lambda xs: [xs[1] * (k + 1) for k in range(n)]),
        "reduce_scatter": (lambda x: dist.nn.reduce_scatter(None, [x ** (k + 1) for k in range(n)]),
                           lambda xs: [sum(x ** (k + 1) for x in xs) for k in range(n)]),
        "all_to_all": (lambda x: torch.cat(dist.nn.all_to_all([x] * n, [x * (k + 1) for k in range(n)])),
                       lambda xs: [torch.cat([x * (k + 1) for x in xs]) for k in range(n)]),
        "all_to_all_single": (lambda x: dist.nn.all_to_all_single(torch.empty(2 * n, 3, dtype=torch.float64),
                                                                  torch.cat([x * (k + 1) for k in range(n)])),
                              lambda xs: [torch.cat([x * (k + 1) for x in xs]) for k in range(n)]),
    }


@ranks(2, 4)
def test_first_and_second_derivatives():
    rank, n = dist.get_rank(), dist.get_world_size()
    options = {"allow_unused": True, "materialize_grads": True}
    for name, (here, everywhere) in cases(n).items():
        xs = inputs(n)
        outputs = everywhere(xs)
        loss = sum((output.sin() * (k + 1)).sum() for k, output in enumerate(outputs))
        firsts = torch.autograd.grad(loss, xs, create_graph=True, **options)
        seconds = torch.autograd.grad(sum((first + 0 * x).square().sum() for first, x in zip(firsts, xs, strict=True)),
                                      xs, **options)
        own = torch.tensor(xs[rank].detach().numpy().copy(), requires_grad=True)
        output = here(own)
        first = apart(output, own)
        second = torch.autograd.grad((first + 0 * own).square().sum(), own, **options)[0]
        for found, expected in ((output, outputs[rank]), (first, firsts[rank]), (second, seconds[rank])):
            np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-12, err_msg=name)


@ranks(2)
def test_send_and_receive():
    """A model split over two ranks: gradients return along the path of activations."""
    x, w, v = (one.detach() for one in inputs(3, (3, 3)))
    w.requires_grad_(), v.requires_grad_()
    whole = ((x @ w).tanh() @ v).square().sum()
    whole.backward()
    expected_w, expected_v = w.grad, v.grad
    w.grad = v.grad = None
    if dist.get_rank() == 0:
        token = dist.nn.send((x @ w).tanh(), 1)
        assert token.item() == 0
        token.backward()
        np.testing.assert_allclose(w.grad.numpy(), expected_w.numpy())
    else:
        hidden = dist.nn.recv(torch.empty(3, 3, dtype=torch.float64), 0)
        assert hidden.requires_grad
        (hidden @ v).square().sum().backward()
        np.testing.assert_allclose(v.grad.numpy(), expected_v.numpy())


@ranks(2)
def test_what_has_no_derivative():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="op must be SUM or AVG"):
        dist.nn.reduce(x, 0, dist.ReduceOp.MAX)
    with pytest.raises(ValueError, match="op must be SUM or AVG"):
        dist.nn.reduce_scatter(None, [x, x], dist.ReduceOp.PRODUCT)
    with pytest.raises(ValueError, match="not in the group"):
        dist.nn.all_reduce(x, group=dist.GroupMember.NON_GROUP_MEMBER)
