"""Conversion of programs and formulas from Python descriptions to C structs."""

from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.elementwise cimport program_t
from cygrad._core.table.interpreter cimport code_t

# Convert a Python constant to a value: None, bool, int, float, complex, str, dtype, a tuple of ints. Objects that own
# the memory are appended to `keep`.
cdef int constant_value(object constant, value_t *value, list keep) except -1
# Return a C string.
cdef const char *text(str string, list keep) except NULL
# Return the program that applies one primitive to its inputs in order.
cdef program_t *primitive_program(str name, int n_inputs, list keep) except NULL
# From lowering.Program and lowering.Code.
cdef program_t *assemble_program(object program, list keep) except NULL
cdef code_t *assemble_code(object code, str title, list keep) except NULL
