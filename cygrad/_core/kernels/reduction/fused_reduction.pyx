"""
Reductions fused with the element-wise program of their input, which is never stored.

The gradient of a broadcast operand is computed in the broadcast shape and then summed. Here the reduction requests the
elements in its own order, a block at a time, and the program computes just these: operands are read once, and only the
sum is written. The block is in the L1 cache when it is added. Results are bit-identical to those of separate steps.
"""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release
from cygrad._core.arrays.dtype cimport is_complex, is_differentiable, itemsize
from cygrad._core.arrays.value cimport ARRAY, value_t
from cygrad._core.elementwise.elementwise cimport evaluate, should_copy_transposed
from cygrad._core.elementwise.layout cimport is_row_major_result
from cygrad._core.elementwise.iteration cimport broadcast_shape, nest_add, nest_add_value, nest_begin, nest_finish
from cygrad._core.elementwise.nan_watch cimport nan_watchers
from cygrad._core.elementwise.specialize cimport MAX_CELLS, discard, specialize, specialized_t
from cygrad._core.elementwise.tiles cimport place_cells, prepare_task, produce, task_t
from cygrad._core.kernels.arguments cimport new_array
from cygrad._core.kernels.reduction.reduce_engine cimport SUM, can_reduce_computed, element_source_t, reduce_computed
from cygrad._core.kernels.reduction.reduce_kernels cimport dimensions_summed
from cygrad._core.memory.atomic cimport atomic_add
from cygrad._core.memory.errors cimport OK, RUNTIME_ERROR
from cygrad._core.primitives.cast cimport cast_loops

cdef int64_t _from = 4096         # elements; fewer are in the cache anyway
cdef int64_t _sums = 0


cdef int evaluate_summed(program_t *program, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil:
    cdef specialized_t *specialized
    cdef int64_t[MAX_DIMS] full
    cdef int64_t[MAX_DIMS] strides
    cdef bint[MAX_DIMS] reduced
    cdef array_t like
    cdef int i, status = OK
    like.ndim = broadcast_shape(inputs, program.n_inputs, full)
    if like.ndim < 0:
        return RUNTIME_ERROR
    like.shape, like.strides, like.data, like.contiguous, like.size = full, strides, NULL, True, 1
    like.storage = NULL
    for i in range(like.ndim - 1, -1, -1):
        strides[i] = like.size
        like.size *= full[i]
    # If elements are not in rows, the reduction reads them in another order.
    if (like.size < _from or nan_watchers or dimensions_summed(&like, meta.ndim, meta.shape, reduced) <= 0
            or not is_row_major_result(like.ndim, full, inputs, program.n_inputs)):
        return evaluate(program, inputs, reuse, NULL, result)
    specialized = specialize(program, inputs, &status)
    if specialized == NULL:
        return status
    like.dtype = specialized.dtype
    status = _sum(specialized, inputs, &like, reduced, meta, result)
    if specialized.temporary:
        discard(specialized)
    return status if status >= 0 else evaluate(program, inputs, reuse, NULL, result)


cdef int _sum(const specialized_t *program, const value_t *inputs, const array_t *like, const bint *reduced,
              const array_t *meta, array_t **result) noexcept nogil:
    """-> -1 if this program or these operands are not for it."""
    cdef task_t task
    cdef double complex[MAX_CELLS] numbers
    cdef element_source_t source
    cdef array_t *array
    cdef int i, status
    # Of a complex sum for a real number the caller takes the real parts first.
    if program.partial or is_complex(program.dtype) and not is_complex(meta.dtype):
        return -1
    if not is_differentiable(program.dtype) or not can_reduce_computed(SUM, program.dtype):
        return -1
    task.program = program
    task.move[0] = NULL
    task.itemsize[0] = itemsize(program.dtype)
    nest_begin(&task.nest, like.ndim, like.shape)
    nest_add(&task.nest, like)
    for i in range(program.n_inputs):
        if inputs[i].kind != ARRAY:
            nest_add_value(&task.nest, NULL)
            continue
        array = inputs[i].of.array
        if should_copy_transposed(array, like):
            return -1
        nest_add(&task.nest, array)
        task.move[i + 1] = cast_loops[array.dtype][array.dtype]
        task.itemsize[i + 1] = itemsize(array.dtype)
    nest_finish(&task.nest)
    place_cells(program, inputs, &task.cells, numbers)
    prepare_task(&task)
    source.produce, source.context = produce, &task
    status = new_array(b"sum_to", program.dtype, meta.ndim, meta.shape, result)
    if status == OK:
        status = reduce_computed(SUM, 0, like, reduced, result[0], &source)
        if status != OK:
            release(result[0])
        atomic_add(&_sums, 1)
    return status


def count_summed():
    """How many programs have been summed as they were computed, for tests."""
    return _sums


def set_summed_from(int64_t elements):
    """Fuse reductions of programs with this many elements and more; -> the former number. For tests."""
    global _from
    former, _from = _from, elements
    return former
