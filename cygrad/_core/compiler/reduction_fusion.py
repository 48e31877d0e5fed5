"""Fuse sums with the element-wise expressions that they reduce."""

from cygrad._core.compiler.executable import layout_of

__all__ = ["summed_layout"]


def plain(argument):
    """Return the Python value of an argument that is not an array."""
    return None if argument is None else argument.plain


def summed_layout(program, operation):
    """
    Return the keepdim layout of a sum.

    Return None if the operation is not a sum, reduces nothing, or changes the dtype.
    """
    if operation.kind != "kernel" or operation.operator.name not in ("sum_to", "sum"):
        return None
    result, source = program.arrays[operation.results[0]], program.arrays[operation.arguments[0]]
    if operation.operator.name == "sum_to":
        return result
    dims = plain(operation.arguments[1])
    dims = range(len(source.shape)) if dims in (None, (), []) else [dims] if isinstance(dims, int) else dims
    reduced = {dim % max(len(source.shape), 1) for dim in dims}
    kept = tuple([1 if dim in reduced else size for dim, size in enumerate(source.shape)])
    if kept == source.shape or source.numel == 0 or result.dtype is not source.dtype or not (
            source.dtype.is_floating_point and result.contiguous):
        return None
    return result if result.shape == kept else layout_of(result, kept)
