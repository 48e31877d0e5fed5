"""Buckets of gradients that are sent together."""

import numpy as np

import cygrad
from cygrad.distributed.memory import SHORT, array_of

__all__ = ["GradBucket", "distribute"]


class GradBucket:
    """
    Gradients of some parameters in one buffer; the argument of communication hooks.

    Parameters
    ----------
    number : int
        Index in the order of communication.
    members : list of (int, str, Tensor)
        The parameters, with their indices and names.
    """

    def __init__(self, number, members):
        self.number, self.members, self.last = number, members, False
        first = members[0][2]
        self.flat = cygrad.zeros(sum(parameter.numel() for _, _, parameter in members), dtype=first.dtype)
        self.set_views()
        self.pending, self.future = 0, None

    def set_views(self):
        """Return the gradients as views of the buffer, as tensors and as arrays."""
        self.views, start = [], 0
        for _, _, parameter in self.members:
            size = parameter.numel()
            self.views.append(self.flat[start:start + size].view(tuple(parameter.shape)))
            start += size
        self.array = array_of("GradBucket", self.flat)
        self.arrays = [array_of("GradBucket", view) for view in self.views]

    def put(self, place, grad, factor):
        """Copy a gradient times a factor to the buffer."""
        if self.flat.dtype in SHORT:
            cygrad.mul(grad.detach(), factor, out=self.views[place])
        elif factor == 1:
            self.arrays[place][...] = array_of("GradBucket", grad)
        else:
            np.multiply(array_of("GradBucket", grad), factor, out=self.arrays[place])

    def index(self):
        """Return the index in the order of communication."""
        return self.number

    def buffer(self):
        """Return all gradients, as one tensor of one dimension."""
        return self.flat

    def gradients(self):
        """Return the gradients, as views of `buffer`."""
        return list(self.views)

    def parameters(self):
        """Return the parameters of the gradients."""
        return [parameter for _, _, parameter in self.members]

    def is_last(self):
        """Return whether this is the last bucket of a backward."""
        return self.last

    def set_buffer(self, buffer):
        """Replace all gradients by those of another tensor of one dimension."""
        if tuple(buffer.shape) != tuple(self.flat.shape):
            raise ValueError("set_buffer: the buffer must have the size of the bucket (got shape "
                             f"{tuple(buffer.shape)}, expected {tuple(self.flat.shape)}).")
        self.array[...] = array_of("set_buffer", buffer.to(self.flat.dtype))

    def describe(self):
        """Return a description for error messages."""
        names = [name for _, name, _ in self.members]
        return f"bucket {self.number} ({names[0]}{' ... ' + names[-1] if len(names) > 1 else ''})"


def distribute(parameters, order, first_bytes, most_bytes):
    """
    Assign parameters to buckets.

    Parameters
    ----------
    parameters : list of (str, Tensor)
    order : list of int
        Order in which the gradients become ready.
    first_bytes, most_bytes : float
        Maximum size of the first bucket, which should start early, and of the others. A larger parameter has its own
        bucket.

    Returns
    -------
    list of GradBucket
    """
    made, open_ones = [], {}              # dtype -> [members, bytes]
    for number in order:
        name, parameter = parameters[number]
        size = parameter.numel() * parameter.itemsize
        members, total = open_ones.get(parameter.dtype.name, ([], 0))
        if members and total + size > (most_bytes if made else first_bytes):
            made.append(members)
            members, total = [], 0
        open_ones[parameter.dtype.name] = [*members, (number, name, parameter)], total + size
    made += [members for members, _ in open_ones.values()]
    buckets = [GradBucket(number, members) for number, members in enumerate(made)]
    if buckets:
        buckets[-1].last = True
    return buckets
