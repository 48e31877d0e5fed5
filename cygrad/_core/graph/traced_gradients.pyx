"""
Gradients of a traced backward, in the layout of the eager ones.

A traced backward runs formulas as operations on tensors, eager runs them on arrays. The elements agree; the strides may
not, and sums and products round by strides.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp
from cygrad._core.arrays.array cimport array_t, release, retain, same_shape
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport set_array, value_t
from cygrad._core.elementwise.elementwise cimport as_contiguous
from cygrad._core.graph.native cimport native_backward
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.mode_stack cimport abort_trace
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check


cdef list native_gradients(Node node, list grads, uint32_t wanted):
    cdef node_t *c = node.c
    cdef list gradients = []
    cdef int i, status
    cdef value_t *arrays = <value_t *>calloc(c.n_outputs + 1, sizeof(value_t))
    cdef array_t **out = <array_t **>calloc(c.n_edges + 1, sizeof(array_t *))
    if arrays == NULL or out == NULL:
        free(arrays)
        free(out)
        raise MemoryError(f"{node.name()}: no memory for its gradients")
    for i in range(c.n_outputs):
        if grads[i] is not None:
            set_array(&arrays[i], retain((<Tensor>grads[i]).array))
    status = native_backward(c, arrays, out, True, wanted)
    for i in range(c.n_edges):
        gradients.append(None if status != OK or out[i] == NULL else wrap(out[i]))
    free(arrays)
    free(out)
    check(status)
    return gradients


cdef object laid_out_as(Tensor gradient, Tensor native, str name):
    cdef array_t *model = native.array
    cdef int i
    if not (gradient.array.dtype == model.dtype and same_shape(gradient.array, model)
            and _same_bits(gradient.array, model)):
        abort_trace(f"the backward of {name} rounds differently where it is traced")
        return gradient
    if _same_strides(gradient.array, model):
        return gradient
    order = sorted(range(model.ndim), key=lambda dim: -model.strides[<int>dim])
    with_layout = gradient
    for i in range(model.ndim):
        if model.strides[i] == 0:
            with_layout = with_layout.narrow(i, 0, 1)
    with_layout = with_layout.permute(order).contiguous().permute([order.index(dim) for dim in range(model.ndim)])
    with_layout = with_layout.expand(gradient.shape)
    if _same_strides((<Tensor>with_layout).array, model):
        return with_layout
    abort_trace(f"the gradient by {name} has strides that no copy has")
    return gradient


cdef bint _same_strides(const array_t *a, const array_t *b) noexcept:
    cdef int i
    for i in range(a.ndim):
        if a.size and a.shape[i] > 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef bint _same_bits(array_t *a, array_t *b) except -1:
    cdef array_t *left = as_contiguous(a, a.dtype)
    cdef array_t *right = as_contiguous(b, b.dtype)
    cdef bint same = left != NULL and right != NULL and memcmp(
        left.data, right.data, a.size * itemsize(a.dtype)) == 0
    cdef int status = OK if left != NULL and right != NULL else MEMORY_ERROR
    release(left)
    release(right)
    check(status)
    return same
