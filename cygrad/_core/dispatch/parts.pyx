"""`split`, `chunk` and `T` of tensors that are nothing unusual: where Python took longer than the views."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.dtype cimport FLOAT16
from cygrad._core.arrays.value cimport ARRAY, INTEGER, INTEGERS
from cygrad._core.dispatch.autocast cimport AUTOCASTING
from cygrad._core.dispatch.execution cimport call_boxed
from cygrad._core.graph.boxing cimport ROOM, frame_t
from cygrad._core.graph.modes cimport thread_state
from cygrad._core.graph.profiling cimport GIVEN, PROFILED
from cygrad._core.graph.tensor cimport Tensor, is_plain
from cygrad._core.graph.tensor_identity cimport held_array
from cygrad._core.table.operator cimport Operator, table

cdef Operator _split, _transpose_all


cdef bint _is_usual(object tensor) noexcept:
    """Nobody wants to know of its operations, and kernels take its elements as they are."""
    return (is_plain(tensor) and (<Tensor>tensor).array.dtype < FLOAT16
            and not thread_state().anomaly & (PROFILED | AUTOCASTING | GIVEN))


cdef void _begin(frame_t *frame, Tensor tensor, int n) noexcept:
    """The arguments of an operator of a tensor and more that are no tensors."""
    cdef int i
    frame.n = n
    frame.used = 0
    frame.stored = frame.overridden = False
    frame.values[0].kind = ARRAY
    frame.values[0].of.array = held_array(tensor)
    for i in range(n):
        frame.objects[i] = NULL
    frame.objects[0] = <PyObject *>tensor


def equal_parts(input, number, dim, bint parts):
    """
    What `split` gives for parts of so many elements, or `chunk` for so many parts.

    Returns
    -------
    tuple of Tensor or None
        None: something is unusual, or wrong.
    """
    global _split
    cdef frame_t frame
    cdef array_t *array
    cdef int64_t size, piece, place
    if type(number) is not int or type(dim) is not int or not _is_usual(input):
        return None
    array = (<Tensor>input).array
    if not 0 < number <= 1 << 60 or not -array.ndim <= dim < array.ndim:
        return None
    place = dim
    place += array.ndim if place < 0 else 0
    size, piece = array.shape[place], number
    if parts:
        piece = (size + piece - 1) // piece
    if size == 0 or (size - 1) // piece >= <int>ROOM:
        return None
    if _split is None:
        _split = table["split"]
    _begin(&frame, <Tensor>input, 3)
    while size > 0:
        frame.room[frame.used] = min(size, piece)
        frame.used += 1
        size -= piece
    frame.values[1].kind = INTEGERS
    frame.values[1].count = frame.used
    frame.values[1].of.integers = frame.room
    frame.values[2].kind = INTEGER
    frame.values[2].of.integer = place
    return call_boxed(_split, &frame, None, None, NULL)


def transposing(otherwise):
    """The getter of `T`: the transpose of a matrix, and what `otherwise` gives of everything else."""
    def transposed(self):
        """The dimensions in reverse order; for a matrix its transpose."""
        global _transpose_all
        cdef frame_t frame
        if not _is_usual(self) or (<Tensor>self).array.ndim != 2:
            return otherwise(self)
        if _transpose_all is None:
            _transpose_all = table["transpose_all"]
        _begin(&frame, <Tensor>self, 1)
        return call_boxed(_transpose_all, &frame, None, None, NULL)
    return transposed
