"""Operands that are arrays by the array API standard."""

from cygrad._core.graph.array_api_marks cimport is_array_api
from cygrad._core.graph.tensor cimport Tensor, is_plain
from cygrad._core.table.operator cimport Operator

cdef inline bint is_array_api_operand(object value) noexcept:
    return is_plain(value) and is_array_api((<Tensor>value).array)

cdef inline bint of_two_dtypes(object a, object b) noexcept:
    return is_plain(a) and is_plain(b) and (<Tensor>a).array.dtype != (<Tensor>b).array.dtype

# Two operands of_two_dtypes, of which one is such an array, in the dtype that the standard promotes them to. Those of
# several dimensions meet there by themselves, except for products of matrices (`always`).
cdef tuple promoted(Tensor a, Tensor b, bint always)
# The operator, or what the standard means by it for such operands.
cdef Operator standard_operator(Operator operator, object a, object b)
