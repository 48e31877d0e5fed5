"""Conversion between Python objects and boxed arguments."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport ARRAY, ARRAYS, INTEGERS, clear, release, value_t
from cygrad._core.graph.node cimport node_t
from cygrad._core.graph.tensor cimport Tensor, held_array
from cygrad._core.table.operator cimport MAX_ARGUMENTS, Operator, operator_t

# ------------------------------------------------------------------------------------------------------------- override

# Classes that override operations: subclasses of Tensor, and others with ``__torch_function__``.

# Return whether the class of the value overrides operations; False inside an override.
cdef bint overrides(object value) except -1
# Return whether it is a tensor whose elements are in another object, as those of an entry of a batch.
cdef bint is_entry(object value) except -1
# Return the arguments of a call as Python passes them: a list of positional ones, a dict of others.
cdef tuple python_arguments(Operator operator, PyObject **arguments)
# Pass the call of an operator to the classes of its arguments; `inplace`: its in-place form.
cdef object override(Operator operator, PyObject **arguments, object out, bint inplace)

# --------------------------------------------------------------------------------------------------------------- boxing

cdef enum:
    INTEGER_CAPACITY = 16       # integers of short lists that a frame holds itself

# The arguments of one call. The arrays are retained, because other Python code (another thread, a finalizer) may
# replace the array of a Tensor meanwhile, by `x.data = ...` or out=.
ctypedef struct frame_t:
    value_t values[MAX_ARGUMENTS]
    PyObject *objects[MAX_ARGUMENTS]      # the Tensor (or list of Tensors) of an argument, borrowed; else NULL
    int n
    int used                              # of `integers`
    bint storage_only   # an argument has a storage-only dtype
    bint overridden                       # an argument's class has a __torch_function__, which handles the call
    int64_t[INTEGER_CAPACITY] integers    # the items of short lists of integers

# Begin the frame of a call with a tensor, whose class was checked, and n other arguments, no tensors, to be set.
cdef inline void begin_frame(frame_t *frame, Tensor tensor, int n) noexcept:
    cdef int i
    frame.n = n + 1
    frame.used = 0
    frame.storage_only = frame.overridden = False
    frame.values[0].kind = ARRAY
    frame.values[0].of.array = held_array(tensor)
    frame.objects[0] = <PyObject *>tensor
    for i in range(n):
        frame.objects[i + 1] = NULL

# Box `arguments`; the returned list (or None) keeps tensors made from ndarrays alive.
cdef list box(Operator operator, PyObject **arguments, frame_t *frame)
cdef inline bint _is_in_frame(const frame_t *frame, const int64_t *integers) noexcept:
    return frame.integers <= integers < frame.integers + <int>INTEGER_CAPACITY

# Release what the frame holds.
cdef inline void unbox(frame_t *frame) noexcept:
    cdef int i, kind
    for i in range(frame.n):
        kind = frame.values[i].kind
        if kind == ARRAY:
            release(frame.values[i].of.array)
        elif kind == ARRAYS or kind == INTEGERS and not _is_in_frame(frame, frame.values[i].of.integers):
            clear(&frame.values[i])
# Return the Python object for a boxed value that is not an array.
cdef object plain_object(const value_t *value)
# Box a Python number; False for other objects.
cdef bint box_number(object number, value_t *value) except -1

# ------------------------------------------------------------------------------------------------------- argument zeros

# Zero second derivatives for operators whose gradients do not depend on the arguments.

cdef enum:
    COUNTS_ARGUMENTS = 1 << 20    # flag of operators whose rows have the key `zeros`

# Return recorded gradients, by edge, as results of a node with zero gradients for the arguments.
cdef list count_arguments(node_t *node, list gradients)
