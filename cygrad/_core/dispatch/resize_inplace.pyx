"""In-place view operations: the same memory with another shape."""

cimport cython
from cygrad._core.arrays.array cimport array_t, array_view
from cygrad._core.dispatch.tangents cimport set_tangent, tangent_of
from cygrad._core.graph.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.graph.modes cimport grad_enabled, thread_state
from cygrad._core.graph.tensor cimport Tensor, requires_grad
from cygrad._core.graph.tensor_identity cimport replace_array
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

from cygrad._core.table.operator import operators


@cython.critical_section             # memory and history change one after the other
def change_geometry(Tensor tensor not None, str operation, *arguments):
    """
    Turn a tensor into its view by a view operation.

    Its history goes through that operation; other views of its memory keep theirs.

    Parameters
    ----------
    tensor : Tensor
        Changed.
    operation : str
        Name of the row, which must be a view.
    *arguments
        What else it takes.

    Returns
    -------
    Tensor
        The tensor itself.
    """
    cdef bint recorded = grad_enabled() and requires_grad(tensor)
    cdef Tensor seen
    cdef array_t *fresh
    check_inplace(tensor, operation + "_", recorded)
    seen = <Tensor?>getattr(operators, operation)(tensor, *arguments)
    fresh = array_view(seen.array, seen.array.dtype, seen.array.ndim, seen.array.shape, seen.array.strides, 0)
    if fresh == NULL:
        check(MEMORY_ERROR)
    replace_array(tensor, fresh)
    bump_version(tensor)
    if thread_state().dual_level:
        set_tangent(tensor, tangent_of(seen))
    # A view of another tensor compares versions and takes its history from there.
    if recorded and tensor.base is None:
        rebase_history(tensor, seen.node)
    return tensor
