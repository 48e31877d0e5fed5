"""Conversion of expressions and programs from Python objects to C structs."""

from libc.stdint cimport int32_t, uint32_t
from cygrad._core.arrays.array cimport value_t
from cygrad._core.elementwise.expression cimport expression_t
from cygrad._core.program.executor cimport program_t

# An `Instruction` with typed fields; see there.
cdef class TypedInstruction:
    cdef int32_t kind, which, target
    cdef uint32_t last
    cdef list operands, results, dead
    cdef object name, kernel, expression, detail

cdef TypedInstruction typed_instruction(int kind, list operands, list results)
# Convert a Python constant to a value: None, bool, int, float, complex, str, dtype, a tuple of ints. Objects that own
# the memory are appended to `keep`.
cdef int constant_value(object constant, value_t *value, list keep) except -1
# Return a C string.
cdef const char *text(str string, list keep) except NULL
# Return zeroed memory that lives as long as `keep`.
cdef void *memory(Py_ssize_t nbytes, list keep) except NULL
# Return a C array of integers; NULL if it is empty.
cdef int32_t *integers(list numbers, list keep) except? NULL
# Return an expression of registers; `code` as `Expression.registers` returns it.
cdef expression_t *build_expression(int n_inputs, list constants, list code, int result, list keep) except NULL
# Return the expression that applies one primitive to its inputs in order.
cdef expression_t *primitive_expression(str name, int n_inputs, list keep) except NULL
# Return the program of a list of `Instruction` or TypedInstruction; equal expressions share one object.
cdef program_t *build_program(list instructions, list constants, int n_temporaries, list keep) except NULL
