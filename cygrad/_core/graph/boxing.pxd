"""Python objects to boxed arguments and back."""

from cpython.object cimport PyObject
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport MAX_ARGUMENTS, Operator, operator_t

# The arguments of one call. The arrays are retained: while it lasts, other Python code (another thread, a callback
# of the collector) may give a Tensor another array, by `x.data = ...` or out=.
ctypedef struct frame_t:
    value_t values[MAX_ARGUMENTS]
    PyObject *objects[MAX_ARGUMENTS]      # the Tensor (or list of Tensors) behind an argument, borrowed; else NULL
    int n
    bint stored                           # any_stored(): kernels do not compute in the dtypes of all arguments
    bint overridden                       # an argument's class has a __torch_function__: the call is handed to it

# Box `arguments`; tensors made on the way (from ndarrays) are kept alive by the list that is returned (or None).
cdef list box(Operator operator, PyObject **arguments, frame_t *frame)
cdef void unbox(frame_t *frame) noexcept
# The Python object for a boxed value that is not an array.
cdef object plain_object(const value_t *value)
# A Python number as a boxed one; False if it is no number.
cdef bint box_number(object number, value_t *value) except -1
