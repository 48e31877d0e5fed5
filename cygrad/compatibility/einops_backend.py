"""The einops backend for Tensors, registered in any order of imports."""

from einops._backends import AbstractBackend

import cygrad
from cygrad import Tensor

__all__ = ["CygradBackend"]


class CygradBackend(AbstractBackend):
    """Operations on Tensors under the names that einops calls."""

    framework_name = "cygrad"

    is_appropriate_type = staticmethod(lambda tensor: isinstance(tensor, Tensor))
    from_numpy = staticmethod(cygrad.from_numpy)
    to_numpy = staticmethod(lambda x: x.detach().numpy())
    arange = staticmethod(lambda start, stop: cygrad.arange(start, stop, dtype=cygrad.int64))
    transpose = staticmethod(lambda x, axes: x.permute(axes))
    stack_on_zeroth_dimension = staticmethod(cygrad.stack)
    add_axis = staticmethod(lambda x, new_position: x.unsqueeze(new_position))
    tile = staticmethod(lambda x, repeats: x.repeat(repeats))
    concat = staticmethod(cygrad.cat)
    is_float_type = staticmethod(lambda x: x.is_floating_point())
    einsum = staticmethod(cygrad.einsum)

    @staticmethod
    def reduce(x, operation, axes):
        """Reduce over axes; ``min`` and ``max`` return values only, ``prod`` reduces one axis at a time."""
        if operation == "prod":
            for axis in sorted(axes, reverse=True):
                x = x.prod(axis)
            return x
        return getattr(x, {"min": "amin", "max": "amax"}.get(operation, operation))(tuple(axes))

    @staticmethod
    def add_axes(x, n_axes, pos2len):
        """Insert axes of the given sizes without a copy."""
        sizes = [-1] * n_axes
        for position, size in sorted(pos2len.items()):
            x, sizes[position] = x.unsqueeze(position), size
        return x.expand(sizes)
