"""
Tensor's number protocol: ``a + b`` and the other slots, connected to the operators of the table.

The Tensor type is defined below the operators and calls up through `protocol`, a struct of function pointers.
"""

import numpy as np

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.object cimport PyObject
from cygrad._core.arrays.dtype cimport FLOAT32, UINT64, category
from cygrad._core.arrays.value cimport value_t
from cygrad._core.creation.creation cimport tensor_from
from cygrad._core.dispatch.dispatch cimport binary, call, call_inplace, unary
from cygrad._core.dispatch.standard_operands cimport (
    is_array_api_operand, of_two_dtypes, promoted, standard_operator)
from cygrad._core.graph.boxing cimport box_number
from cygrad._core.graph.meta cimport any_unusual
from cygrad._core.graph.override cimport overrides
from cygrad._core.graph.tensor cimport (
    SLOT_ABS, SLOT_ADD, SLOT_AND, SLOT_DIV, SLOT_EQ, SLOT_FLOOR_DIV, SLOT_GE, SLOT_GT, SLOT_INVERT, SLOT_LE,
    SLOT_LSHIFT, SLOT_LT, SLOT_MATMUL, SLOT_MUL, SLOT_NE, SLOT_NEG, SLOT_OR, SLOT_POW, SLOT_REMAINDER, SLOT_RSHIFT,
    SLOT_SUB, SLOT_XOR, SLOTS, Tensor, describe, protocol)
from cygrad._core.table.operator cimport CALL_BINARY, Operator, table

cdef PyObject *_slots[SLOTS]
cdef list _slot_operators = []           # keeps them alive
cdef object _ndarray = np.ndarray
cdef Operator _power = None              # operator for exponents that are Tensors


def check_power(input, exponent):
    """Refuse integers to a negative integer power: their dtype has no fractions."""
    if (isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0
            and category((<Tensor>input).array.dtype) < category(FLOAT32)):
        raise RuntimeError(f"pow: integers have no negative integer powers (got a {describe(<Tensor>input)} and the "
                           f"exponent {exponent}). Convert to a floating dtype first.")


cdef Operator _slot_operator(int slot, object a, object b):
    if slot != SLOT_POW:
        return <Operator>_slots[slot]
    if isinstance(b, Tensor) or isinstance(b, _ndarray):
        return _power
    check_power(a, b)
    return <Operator>_slots[slot]


cdef bint _is_operand(object value, object other) except -1:
    cdef value_t ignored
    cdef int overflow = 0
    if PyLong_Check(value):
        PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow and not _needs_uint64(value, other):
            box_number(value, &ignored)          # raises
        return True
    return isinstance(value, Tensor) or box_number(value, &ignored) or hasattr(value, "__array__") or overrides(value)


cdef bint _needs_uint64(object value, object tensor) except -1:
    """Return whether an integer exceeds int64 but fits the dtype of the tensor operand."""
    return isinstance(tensor, Tensor) and (<Tensor>tensor).array.dtype == UINT64 and value >> 63 == 1


cdef inline object _operand(object value, object other):
    """Return the value, or a tensor of an integer that exceeds int64."""
    cdef int overflow = 0
    if PyLong_Check(value):
        PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow and _needs_uint64(value, other):
            return tensor_from(np.asarray(value, np.uint64), UINT64, "tensor")
    return value


cdef object _binary_slot(int slot, object a, object b):
    cdef Operator row
    cdef PyObject *arguments[2]
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        if not (_is_operand(a, b) and _is_operand(b, a)):
            return NotImplemented
        if PyLong_Check(a) or PyLong_Check(b):
            a, b = _operand(a, b), _operand(b, a)
    row = _slot_operator(slot, a, b)
    if row.call_kind == CALL_BINARY:
        return binary(row, a, b, None)
    if any_unusual and of_two_dtypes(a, b) and (is_array_api_operand(a) or is_array_api_operand(b)):
        a, b = promoted(<Tensor>a, <Tensor>b, True)
    arguments[0] = <PyObject *>a
    arguments[1] = <PyObject *>b
    return call(row, arguments, None)


cdef object _inplace_slot(int slot, object a, object b):
    cdef Operator row
    cdef PyObject *arguments[2]
    if not _is_operand(b, a):
        return NotImplemented
    if PyLong_Check(b):
        b = _operand(b, a)
    row = _slot_operator(slot, a, b)
    if any_unusual and (is_array_api_operand(a) or is_array_api_operand(b)):
        row = standard_operator(row, a, b)
    arguments[0] = <PyObject *>a
    arguments[1] = <PyObject *>b
    return call_inplace(row, arguments)


cdef object _unary_slot(int slot, object a):
    if slot == SLOT_INVERT and category((<Tensor>a).array.dtype) >= category(FLOAT32):
        raise TypeError(f"~: only integers and masks can be inverted (got a {describe(<Tensor>a)}). Convert with to() "
                        "first.")
    return unary(<Operator>_slots[slot], a, None)


def connect():
    """Set the operators of Tensor's number protocol; called once the table is complete."""
    global _power
    names = {SLOT_ADD: "add", SLOT_SUB: "sub", SLOT_MUL: "mul", SLOT_DIV: "div", SLOT_FLOOR_DIV: "floor_divide",
             SLOT_REMAINDER: "remainder", SLOT_POW: "pow", SLOT_MATMUL: "matmul", SLOT_AND: "bitwise_and",
             SLOT_OR: "bitwise_or", SLOT_XOR: "bitwise_xor", SLOT_LSHIFT: "left_shift",
             SLOT_RSHIFT: "right_shift", SLOT_EQ: "eq", SLOT_NE: "ne", SLOT_LT: "lt", SLOT_LE: "le",
             SLOT_GT: "gt", SLOT_GE: "ge", SLOT_NEG: "neg", SLOT_ABS: "abs", SLOT_INVERT: "bitwise_not"}
    for slot, name in names.items():
        operator = table[name]
        # The slots pass exactly two operands.
        if (<Operator>operator).descriptor.n_arguments > 2:
            raise RuntimeError(f"{name}: has more arguments than the number protocol passes")
        _slot_operators.append(operator)
        _slots[slot] = <PyObject *>operator
    _power = table["pow_tensor"]
    protocol.binary = _binary_slot
    protocol.inplace = _inplace_slot
    protocol.unary = _unary_slot
