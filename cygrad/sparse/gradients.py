"""Sparse gradients, for embeddings and `gather`."""

import threading

import cygrad
from cygrad._core.engine.plan import accumulates
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad._core.threads.parallel import renewed_at_fork
from cygrad.autograd import Function
from cygrad.sparse.tensor import SparseTensor, made

__all__ = ["gather", "look_up"]

_lock = renewed_at_fork(threading.Lock())      # for concurrent backwards that accumulate into one leaf


def as_gradient(gradient, target):
    """
    Return the gradient that a node passes on to the node `target` for a sparse one.

    Accumulate it into a leaf, which may keep its memory, because the engine accumulates only arrays; convert it to
    dense for other nodes.
    """
    if cygrad.is_grad_enabled() or not accumulates(target):
        return gradient.to_dense()
    leaf = target.variable
    with _lock:
        if leaf.grad is None:
            leaf.grad = gradient
        elif isinstance(leaf.grad, SparseTensor):
            leaf.grad += gradient
        else:
            leaf.grad.add_(gradient)
    return None


class LookUp(Function):
    """Look up rows of a table."""

    @staticmethod
    def forward(ctx, weight, index, padding):
        """Return the rows."""
        ctx.save_for_backward(index)
        ctx.shape, ctx.padding = weight.shape, padding
        return operators.embedding(weight, index, padding)

    @staticmethod
    def backward(ctx, grad):
        """Return the gradients of the rows, with their indices."""
        (index,) = ctx.saved_tensors
        index, values = index.reshape(-1), grad.reshape(index.numel(), ctx.shape[1])
        if ctx.padding >= 0:
            kept = index != ctx.padding
            index, values = index[kept], values[kept]
        gradient = made(index.to(cygrad.int64).unsqueeze(0), values, ctx.shape)
        return as_gradient(gradient, ctx.next_functions[0][0]), None, None


def look_up(weight, index, padding):
    """Look up rows of a table, with a sparse gradient."""
    return LookUp.apply(weight, index, padding)


class Gather(Function):
    """Gather elements along a dimension."""

    @staticmethod
    def forward(ctx, input, dim, index):
        """Return the elements."""
        ctx.save_for_backward(index)
        ctx.shape, ctx.dim = input.shape, dim
        return operators.gather(input, dim, index)

    @staticmethod
    def backward(ctx, grad):
        """Return the incoming gradient with the indices that were read."""
        (index,) = ctx.saved_tensors
        places = cygrad.stack(cygrad.meshgrid(*map(cygrad.arange, index.shape or (1,)), indexing="ij"))
        places[ctx.dim] = index
        gradient = made(places.flatten(1), grad.flatten(), ctx.shape)
        return as_gradient(gradient, ctx.next_functions[0][0]), None, None


def gather(input, dim, index, sparse_grad=True, out=None):
    """Implement `cygrad.gather` with a sparse gradient."""
    if out is None and isinstance(input, Tensor) and input.ndim and input.requires_grad and cygrad.is_grad_enabled():
        return Gather.apply(input, dim, index)
    return operators.gather(input, dim, index, out=out)
