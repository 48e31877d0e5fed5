"""
Operands that are Array API arrays: differences from the rules for other tensors.

0-dim arrays take part in type promotion like others, so they are cast before the operation; and floor division has
limits where an operand is infinite.
"""

from cygrad._core.arrays.dtype cimport FLOAT32, category, dtype_object, promotable, promote
from cygrad._core.graph.array_api_marks cimport mark_array_api
from cygrad._core.table.operator cimport table
from cygrad._core.table.operator import operators

cdef Operator _floor_divide = None, _floored_quotient = None


cdef tuple promoted(Tensor a, Tensor b, bint always):
    cdef int common
    if not promotable(a.array.dtype, b.array.dtype) or not (always or (a.array.ndim == 0) != (b.array.ndim == 0)):
        return a, b
    common = promote(a.array.dtype, b.array.dtype)
    return _cast(a, common), _cast(b, common)


cdef Tensor _cast(Tensor tensor, int dtype):
    return tensor if tensor.array.dtype == dtype else operators.cast(tensor, dtype_object(dtype))


cdef Operator standard_operator(Operator operator, object a, object b):
    global _floor_divide, _floored_quotient
    if _floor_divide is None:               # the table is complete only after this module has been imported
        _floored_quotient, _floor_divide = table["floored_quotient"], table["floor_divide"]
    if operator is _floor_divide and (_is_floating(a) or _is_floating(b)):
        return _floored_quotient
    return operator


cdef inline bint _is_floating(object value) noexcept:
    return is_plain(value) and category((<Tensor>value).array.dtype) == category(FLOAT32)


def standard(result, *arguments):
    """
    Mark the results of a function of the namespace as Array API arrays.

    Parameters
    ----------
    result : object
        A Tensor, or several; all else is given back as it is.
    *arguments : object
        Of the function. A Tensor among them that is its result stays what it is, and the result is another one for the
        same memory.

    Returns
    -------
    object
    """
    if isinstance(result, Tensor):
        return _standard(<Tensor>result, arguments)
    if isinstance(result, (tuple, list)):
        parts = [_standard(<Tensor>part, arguments) if isinstance(part, Tensor) else part for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


cdef Tensor _standard(Tensor tensor, tuple arguments):
    if not is_plain(tensor) or is_array_api(tensor.array):
        return tensor
    for argument in arguments:
        if argument is tensor:
            tensor = operators.alias(tensor)
            break
    mark_array_api(tensor.array)
    return tensor


def follows_standard(Tensor tensor not None):
    """Whether a tensor is an Array API array."""
    return is_array_api(tensor.array)
