"""Integer arithmetic as in PyTorch: division that refuses zero, powers, sign bits."""

from cygrad._core.primitives.primitive_table cimport loop_t

# Define a primitive unless it exists, and enter its loop for each integer dtype (not bool).
cdef int enter_integers(str name, int arity, int cost, loop_t u8, loop_t i8, loop_t i16, loop_t i32,
                        loop_t i64,
                        bint to_bool) except -1
