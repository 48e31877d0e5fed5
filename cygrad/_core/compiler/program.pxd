"""The representation of a compiled function: operations on numbered arrays over buffers."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.tracer cimport Buffer, Step, TracedArray, array_of

# The instructions of expressions that differ only in their arrays and numbers.
cdef class Form:
    cdef readonly list code               # (name of a primitive, list of operands), never modified
    cdef readonly tuple result            # operand
    cdef int64_t cost                     # of its primitives per element, in additions; -1: not computed yet

# Element-wise expression of arrays.
cdef class ArrayExpression:
    cdef readonly list inputs             # array numbers
    cdef readonly list constants
    cdef readonly Form form
    cpdef ArrayExpression renamed(self, dict names)

# Return the one Form of these instructions.
cdef Form shared_form(list code, tuple result, int n_constants)
# Return the expression with those of inputs of these numbers in their place; None if it is too large for one pass.
cdef ArrayExpression with_inputs(ArrayExpression expression, list numbers, list others)

# Operation on array numbers.
cdef class Operation:
    cdef public str kind
    cdef public tuple arguments, results
    cdef public ArrayExpression expression
    cdef public object target, operator, step, meta, is_list

    @staticmethod
    cdef Operation of_step(str kind, tuple arguments, Step step, ArrayExpression expression=*)

    # Return the arrays that it reads, without the target.
    cpdef list reads(self)
    # Return the arrays that it reads, those that an optimizer updates included.
    cpdef list uses(self)
    # Return the arrays that it writes in place.
    cpdef object writes(self)
    # Rename the arrays that it reads.
    cpdef int rename(self, dict names) except -1
    # Return its element-wise expressions.
    cpdef list expressions(self)

# What passes ask of each array most often, without the cache misses of its objects.
ctypedef struct array_facts_t:
    int64_t size
    int32_t buffer
    int32_t base                          # first array of its buffer
    bint is_local, is_constant, is_written, is_integral

# Operations on numbered arrays, each over a buffer.
cdef class Program:
    cdef array_facts_t *facts             # per array
    cdef int n_facts, capacity
    cdef public list arrays, buffers, operations, rewrites
    cdef dict several                     # buffer -> its arrays, if there are several
    cdef public set outgoing, output_buffers
    cdef public set folded                # buffers with constant elements
    cdef public int start
    cdef public bint fast
    cdef public object snapshot
    cdef public dict sources              # constant -> copy of its initial elements
    cdef public dict names                # removed array -> the array that takes its place as an output
    cdef public dict aliases              # buffer -> (array in which it lies, offset in bytes)
    cdef list written                     # list of operations of `writers`
    cdef dict writers                     # buffer -> positions of the operations that write it
    cdef int add_facts(self, TracedArray traced) except -1
    cpdef bint is_local(self, Buffer buffer) except -1
    cpdef bint is_constant(self, int number) except -1
    cpdef bint is_private(self, int number) except -1
    cpdef bint is_sole_array(self, int number) except -1
    cpdef bint is_never_written(self, int number) except -1
    cpdef bint can_fail(self, Operation operation) except -1
    # Return whether a kernel of an operator of these names is called.
    cpdef bint calls(self, object names) except -1
    # Return the arrays over a buffer.
    cpdef list arrays_of(self, int buffer)
    cpdef dict uses(self)
    # Return the number of reads of each buffer; the memory lives as long as `keep`.
    cdef int32_t *read_counts(self, list keep) except NULL
    cpdef bint unchanged_between(self, int number, int first, int last) except -1
    cpdef tuple memory_of(self, int number)

cdef inline array_t *array_at(Program program, int number) except NULL:
    return array_of(<TracedArray?>program.arrays[number])

cdef inline const array_facts_t *facts_of(Program program, int number) except NULL:
    if not 0 <= number < program.n_facts:
        raise IndexError(f"Program: no array has this number (got {number}, expected less than {program.n_facts})")
    return &program.facts[number]

cdef inline int buffer_at(Program program, int number) except -1:
    """Return the position of the buffer of an array."""
    return facts_of(program, number).buffer

cdef inline Buffer buffer_of(Program program, int number):
    return <Buffer?>program.buffers[buffer_at(program, number)]

# Return the forward of an element-wise operator; None if these arguments are not element-wise.
cdef ArrayExpression expression_of(object operator, tuple arguments)
