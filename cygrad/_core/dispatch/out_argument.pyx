"""The argument out=, and the named tuples of several results."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport strcmp
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_empty_like, array_t, array_view, same_shape, shape_text, share_memory)
from cygrad._core.arrays.dtype cimport category, dtype_name
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, value_t
from cygrad._core.dispatch.tangents cimport has_tangents, tangent_of
from cygrad._core.elementwise.elementwise cimport copy_into
from cygrad._core.elementwise.iteration cimport same_place
from cygrad._core.elementwise.layout cimport is_non_overlapping_and_dense
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.inplace cimport bump_version, check_inplace
from cygrad._core.graph.mode_stack cimport abort_trace
from cygrad._core.graph.modes cimport grad_enabled, thread_state
from cygrad._core.graph.tensor cimport Tensor, requires_grad
from cygrad._core.graph.tensor_identity cimport replace_array
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.table.operator cimport LIST_RESULT, MOVES, TENSOR, TENSORS, Operator, operator_t

from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.user_warnings import warn_user


cdef bint _chooses(const operator_t *op) noexcept:
    """Does the operator move elements of some arguments to positions that others give, as `gather` and `cat` do?"""
    return op.flags & MOVES and op.n_arguments > 1 and (
        op.arguments[0].kind == TENSORS or op.arguments[1].kind == TENSOR or op.arguments[2].kind == TENSOR)


cdef bint _overlaps(const operator_t *op, const frame_t *frame, const array_t *out) noexcept:
    """Does `out` overlap part of an argument, or all of one whose elements move?"""
    cdef const value_t *value
    cdef const array_t *array
    cdef int i, k
    cdef bint moves = _chooses(op) or strcmp(op.name, b"kthvalue") == 0
    for i in range(frame.n):
        value = &frame.values[i]
        for k in range(1 if value.kind == ARRAY else value.count if value.kind == ARRAYS else 0):
            array = value.of.array if value.kind == ARRAY else value.of.arrays[k]
            if array == out and moves:                    # an empty one, too: it would be resized
                return True
            if (array != NULL and array.storage == out.storage and share_memory(array, out)
                    and (moves or not same_place(array, out)) and is_non_overlapping_and_dense(array)
                    and is_non_overlapping_and_dense(out)):
                return True
    return False


cdef int check_out(Operator operator, frame_t *frame, object out, uint32_t needed) except -1:
    for tensor in out if isinstance(out, (tuple, list)) else (out,):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{operator.name}: out must be a Tensor (got {type(tensor).__name__}).")
        if grad_enabled() and (needed or requires_grad(<Tensor>tensor)):
            raise RuntimeError(f"{operator.name}: out= does not record gradients, but an argument requires grad. Use "
                               "the form without out=, or no_grad().")
        check_inplace(<Tensor>tensor, operator.name, False)
        if _overlaps(operator.descriptor, frame, (<Tensor>tensor).array):
            raise RuntimeError(f"{operator.name}: elements of out overlap those of an argument. Pass another out, or "
                               "clone() the argument.")
        if thread_state().dual_level and tangent_of(<Tensor>tensor) is not None:
            raise NotImplementedError(f"{operator.name}: out= does not keep tangents, but out has one. Use the form "
                                      "without out=.")
    abort_trace("out= has no native form here")
    if thread_state().dual_level and has_tangents(operator, frame):
        raise RuntimeError(f"{operator.name}: out= does not keep tangents, but an argument has one. Use the form "
                           "without out=.")
    return 0


cdef object write_out(Operator operator, value_t *results, object out):
    cdef int i, n = operator.descriptor.n_results
    cdef list targets = list(out) if isinstance(out, (tuple, list)) else [out]
    cdef Tensor target
    cdef array_t *array
    if len(targets) != n or operator.descriptor.flags & LIST_RESULT:
        raise TypeError(f"{operator.name}: out must hold one Tensor for each result (got {len(targets)}, "
                        f"expected {n}).")
    for i in range(n):
        target = <Tensor>targets[i]
        array = results[i].of.array
        if category(array.dtype) > category(target.array.dtype) or (
                _chooses(operator.descriptor) and operator.descriptor.arguments[0].kind != TENSORS
                and array.dtype != target.array.dtype):
            raise RuntimeError(f"{operator.name}: the result cannot be cast to out (got a result of "
                               f"{dtype_name(array.dtype).decode()}, expected "
                               f"{dtype_name(target.array.dtype).decode()}). Use an out of the result's dtype.")
        if not same_shape(array, target.array):
            if target.array.size:
                warn_user(f"{'out' if operator.name == 'written' else operator.name + ': out'} was resized, as it has "
                          f"another shape than the result (got {shape_text(target.array).decode()}, expected "
                          f"{shape_text(array).decode()}). Pass an empty tensor, or one of that shape.")
            _replace_array(target, array)
        else:
            check(copy_into(target.array, array))
        bump_version(target)
    return out if n > 1 else targets[0]


cdef int _replace_array(Tensor target, array_t *array) except -1:
    """Resize `out` to the result's shape in its own dtype: in its memory, which views see, if the elements fit."""
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = 1
    cdef array_t *fresh
    cdef int i
    if target.array.contiguous and target.array.storage != NULL and 0 < array.size <= target.array.size:
        for i in reversed(range(array.ndim)):
            strides[i] = step
            step *= array.shape[i]
        fresh = array_view(target.array, target.array.dtype, array.ndim, array.shape, strides, 0)
    else:
        fresh = array_empty_like(array, target.array.dtype)
    if fresh == NULL:
        check(MEMORY_ERROR)
    check(copy_into(fresh, array))
    replace_array(target, fresh)
    return 0


cdef dict _result_types = {}


cdef object result_type(Operator operator):
    found = _result_types.get(operator.name)
    if found is None:
        names = [operator.descriptor.result_names[i].decode() for i in range(operator.descriptor.n_results)]
        found = _result_types.setdefault(operator.name, named_result(operator.name.removesuffix("_dim"), *names))
    return found
