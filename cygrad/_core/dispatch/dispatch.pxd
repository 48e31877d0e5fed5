"""Calls of operators: boxing, promotion, the kernel, the node."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.elementwise cimport expression_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.tensor cimport Tensor, grad_fn_of, is_array_api, is_plain, requires_grad
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.table.operator cimport Operator, operator_t

# ---------------------------------------------------------------------------------------------------- standard operands

# Operands that are Array API arrays.

cdef inline bint is_array_api_operand(object value) noexcept:
    return is_plain(value) and is_array_api((<Tensor>value).array)

cdef inline bint of_two_dtypes(object a, object b) noexcept:
    return is_plain(a) and is_plain(b) and (<Tensor>a).array.dtype != (<Tensor>b).array.dtype

# Cast two operands of different dtypes, of which one is an Array API array, to the dtype of the standard. With several
# dimensions, element-wise operators do so themselves; matrix products do not (`always`).
cdef tuple promoted(Tensor a, Tensor b, bint always)
# Return the operator, or its replacement by the standard for such operands.
cdef Operator standard_operator(Operator operator, object a, object b)

# ----------------------------------------------------------------------------------------------------- operation errors

# Error messages of shared kernels and expressions begin with the operation that was called.

# Raise the exception for `status`, as `check` does; a message that begins with ":" gets `operation` in front of it, or
# the public Python function that the user called. `inplace` adds the underscore.
cdef int check_operation(int status, str operation, bint inplace) except -1

# ------------------------------------------------------------------------------------------------------------ execution

# Execution of an operation after its arguments are boxed.

cdef enum:
    LARGE = 16384               # elements from which all kernels run without the GIL

cdef inline bint needs_gradient(Tensor tensor) except -1:
    if tensor.base is not None:        # an in-place operation on its base may have changed its history
        grad_fn_of(tensor)
        return takes_part(tensor)
    return requires_grad(tensor)

# Bit i: argument i has a derivative formula and requires grad.
cdef uint32_t needed_by(const operator_t *op, frame_t *frame) except? 0xffffffff
# Create a node with its edges and saved arguments; `keep_results` saves results, `keep` one value.
cdef NativeNode record(Operator operator, frame_t *frame, uint32_t needed, int n_outputs)
cdef int keep_results(NativeNode node, value_t *results) except -1
cdef int keep(NativeNode node, int position, const value_t *value, bint meta) except -1

# The expression of an element-wise operator; run it, or a kernel, without recording.
cdef expression_t *expression_of(Operator operator) except NULL
cdef int run(Operator operator, frame_t *frame, array_t *into, value_t *results, int64_t size) except -1
cdef int run_kernel(operator_t *op, kernel_t kernel, frame_t *frame, value_t *results, int64_t size) except -1
# Wrap results, whose references it takes over.
cdef object wrap_results(Operator operator, frame_t *frame, value_t *results, NativeNode node)
# Execute and record the operation; unboxes the frame. `computed`: NULL, or precomputed results, which it takes over.
cdef object call_boxed(Operator operator, frame_t *frame, object out, value_t *computed)
# The same for a plain tensor and integers.
cdef object call_with_integers(Operator operator, Tensor self, int n, const int64_t *integers, array_t *made)

# ------------------------------------------------------------------------------------------------------------- dispatch

# Call an operator. `arguments` are borrowed, one per argument of the row, defaults filled in; `out` is None or the
# tensors to write to.
cdef object call(Operator operator, PyObject **arguments, object out)
# Call its in-place form, which modifies arguments[0] and returns it.
cdef object call_inplace(Operator operator, PyObject **arguments)
# Call an element-wise operator of one or two operands, with a fast path for small contiguous tensors.
cdef object unary(Operator operator, object input, object out)
cdef object binary(Operator operator, object input, object other, object out)
