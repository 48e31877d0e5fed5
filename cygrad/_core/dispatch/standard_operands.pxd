"""Operands that are Array API arrays."""

from cygrad._core.graph.array_api_marks cimport is_array_api
from cygrad._core.graph.tensor cimport Tensor, is_plain
from cygrad._core.table.operator cimport Operator

cdef inline bint is_array_api_operand(object value) noexcept:
    return is_plain(value) and is_array_api((<Tensor>value).array)

cdef inline bint of_two_dtypes(object a, object b) noexcept:
    return is_plain(a) and is_plain(b) and (<Tensor>a).array.dtype != (<Tensor>b).array.dtype

# Cast two operands of different dtypes, of which one is an Array API array, to the dtype of the standard. With several
# dimensions, element-wise operators do so themselves; matrix products do not (`always`).
cdef tuple promoted(Tensor a, Tensor b, bint always)
# Return the operator, or its replacement by the standard for such operands.
cdef Operator standard_operator(Operator operator, object a, object b)
