"""Python objects to boxed arguments and back."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport release
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, INTEGERS, clear, value_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.tensor_identity cimport held_array
from cygrad._core.table.operator cimport MAX_ARGUMENTS, Operator, operator_t

cdef enum:
    ROOM = 16                   # integers of lists that a frame has room for

# The arguments of one call. The arrays are retained: while it lasts, other Python code (another thread, a callback
# of the collector) may give a Tensor another array, by `x.data = ...` or out=.
ctypedef struct frame_t:
    value_t values[MAX_ARGUMENTS]
    PyObject *objects[MAX_ARGUMENTS]      # the Tensor (or list of Tensors) of an argument, borrowed; else NULL
    int n
    int used                              # of `room`
    bint stored                           # any_stored(): kernels do not compute in the dtypes of all arguments
    bint overridden                       # an argument's class has a __torch_function__: the call is handed to it
    int64_t[ROOM] room                    # where the integers of short lists are, so that these need no memory

# The frame of a call of a tensor, whose class has been asked, and of n other arguments, no tensors, still to be set.
cdef inline void begin_frame(frame_t *frame, Tensor tensor, int n) noexcept:
    cdef int i
    frame.n = n + 1
    frame.used = 0
    frame.stored = frame.overridden = False
    frame.values[0].kind = ARRAY
    frame.values[0].of.array = held_array(tensor)
    frame.objects[0] = <PyObject *>tensor
    for i in range(n):
        frame.objects[i + 1] = NULL

# Box `arguments`; tensors made from ndarrays are kept alive by the list that is returned (or None).
cdef list box(Operator operator, PyObject **arguments, frame_t *frame)
cdef inline bint _in_room(const frame_t *frame, const int64_t *integers) noexcept:
    return frame.room <= integers < frame.room + <int>ROOM

# Give back what the frame holds.
cdef inline void unbox(frame_t *frame) noexcept:
    cdef int i, kind
    for i in range(frame.n):
        kind = frame.values[i].kind
        if kind == ARRAY:
            release(frame.values[i].of.array)
        elif kind == ARRAYS or kind == INTEGERS and not _in_room(frame, frame.values[i].of.integers):
            clear(&frame.values[i])
# The Python object for a boxed value that is not an array.
cdef object plain_object(const value_t *value)
# A Python number as a boxed one; False if it is no number.
cdef bint box_number(object number, value_t *value) except -1
