"""A module of cygrad and one of PyTorch with equal weights: ``ours, theirs = twins("LSTM", 3, 4)``."""

import numpy as np

import cygrad
from tests.reference import torch

__all__ = ["agree", "both", "gradients_agree", "tensors", "twins"]


def twins(name, *args, **kwargs):
    """Return a module of cygrad and one of PyTorch, in float64, with PyTorch's weights."""
    theirs = getattr(torch.nn, name)(*args, **kwargs).double()
    ours = getattr(cygrad.nn, name)(*args, **kwargs).double()
    assert [(key, tuple(value.shape)) for key, value in ours.state_dict().items()] == [
        (key, tuple(value.shape)) for key, value in theirs.state_dict().items()
    ]
    ours.load_state_dict({key: cygrad.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    return ours, theirs


def both(array, requires_grad=True):
    """Return the array as a tensor of each library."""
    pair = cygrad.from_numpy(np.array(array)), torch.from_numpy(np.array(array))
    if requires_grad and np.asarray(array).dtype.kind == "f":
        for tensor in pair:
            tensor.requires_grad_()
    return pair


def tensors(value):
    """Return all tensors in nested tuples, lists and named tuples, without None."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors(part)]
    return [value]


def agree(ours, theirs, tolerance=1e-10):
    """Assert equal structure, dtypes and shapes, and close numbers."""
    ours, theirs = tensors(ours), tensors(theirs)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        mine, other = mine.detach().numpy(), other.detach().numpy()
        assert mine.dtype == other.dtype
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def gradients_agree(ours, theirs, inputs=(), tolerance=1e-10):
    """
    Run backward from a weighted sum of all results, and compare gradients of inputs and parameters.

    ours, theirs : (results, module); inputs : pairs of leaves.
    """
    for results, _ in ours, theirs:
        results = [tensor for tensor in tensors(results) if tensor.requires_grad]
        sum((tensor * (tensor + 1)).sum() for tensor in results).backward()
    for mine, other in inputs:
        agree(mine.grad, other.grad, tolerance)
    if ours[1] is not None:
        expected = {name: parameter.grad for name, parameter in theirs[1].named_parameters()}
        found = {name: parameter.grad for name, parameter in ours[1].named_parameters()}
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            agree(found[name], gradient, tolerance)
