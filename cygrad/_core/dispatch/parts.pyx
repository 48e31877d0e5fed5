"""Fast paths of `split`, `chunk` and `T` for plain tensors, where Python took longer than the views."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport INTEGER, INTEGERS
from cygrad._core.dispatch.execution cimport call_boxed
from cygrad._core.dispatch.size_calls cimport is_usual
from cygrad._core.graph.boxing cimport INTEGER_CAPACITY, begin_frame, frame_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator, table

cdef Operator _split, _transpose_all


def equal_parts(input, number, dim, bint parts):
    """
    Return what `split` returns for chunks of n elements, or `chunk` for n chunks.

    Returns
    -------
    tuple of Tensor or None
        None: something is unusual, or wrong.
    """
    global _split
    cdef frame_t frame
    cdef array_t *array
    cdef int64_t size, piece, place
    if type(number) is not int or type(dim) is not int or not is_usual(<PyObject *>input):
        return None
    array = (<Tensor>input).array
    if not 0 < number <= 1 << 60 or not -array.ndim <= dim < array.ndim:
        return None
    place = dim
    place += array.ndim if place < 0 else 0
    size, piece = array.shape[place], number
    if parts:
        piece = (size + piece - 1) // piece
    if size == 0 or (size - 1) // piece >= <int>INTEGER_CAPACITY:
        return None
    if _split is None:
        _split = table["split"]
    begin_frame(&frame, <Tensor>input, 2)
    while size > 0:
        frame.integers[frame.used] = min(size, piece)
        frame.used += 1
        size -= piece
    frame.values[1].kind = INTEGERS
    frame.values[1].count = frame.used
    frame.values[1].of.integers = frame.integers
    frame.values[2].kind = INTEGER
    frame.values[2].of.integer = place
    return call_boxed(_split, &frame, None, NULL)


def transposing(otherwise):
    """Getter of `T`: the transpose of a matrix, and `otherwise(self)` for everything else."""
    def transposed(self):
        """The dimensions in reverse order; for a matrix its transpose."""
        global _transpose_all
        cdef frame_t frame
        if not is_usual(<PyObject *>self) or (<Tensor>self).array.ndim != 2:
            return otherwise(self)
        if _transpose_all is None:
            _transpose_all = table["transpose_all"]
        begin_frame(&frame, <Tensor>self, 0)
        return call_boxed(_transpose_all, &frame, None, NULL)
    return transposed
