"""Element-wise programs on ndarrays from Python, for tests."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free
from cygrad._core.arrays.array cimport (
    BOOLEAN, COMPLEX, INTEGER, REAL, array_from_numpy, array_t, clear, numpy_from_array, release, set_array, value_t,
)
from cygrad._core.arrays.dtype cimport dtype_object
from cygrad._core.elementwise.copying cimport as_copy, copy_into, fill
from cygrad._core.elementwise.elementwise cimport accumulate, evaluate, forget, primitive, primitive_arity, result_dtype
from cygrad._core.elementwise.program cimport MAX_INPUTS, MAX_REGISTERS, instruction_t, program_t
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.primitives.primitive_table cimport (
    CHAIN_CODE, ELEMENTS, HELD, MAX_ARITY, NUMBER, chain_step_t, run_chain,
)

import numpy


cdef class Holder:
    """Owner of an array for the ndarray over its memory."""
    cdef array_t *array

    def __dealloc__(self):
        release(self.array)


cdef object _wrapped(array_t *array):
    """Return an ndarray over the array, whose reference it takes over."""
    cdef Holder holder = Holder()
    holder.array = array
    return numpy_from_array(array, holder)


cdef int _set_number(value_t *value, object number) except -1:
    value.count = 1
    value.imag = 0
    if isinstance(number, bool):
        value.kind = BOOLEAN
        value.of.integer = number
    elif isinstance(number, int):
        value.kind = INTEGER
        value.of.integer = number
    elif isinstance(number, float):
        value.kind = REAL
        value.of.real = number
    elif isinstance(number, complex):
        value.kind = COMPLEX
        value.of.real = number.real
        value.imag = number.imag
    else:
        raise TypeError(f"Program: not a number (got {type(number).__name__}, expected bool, int, float, "
                        f"complex)")
    return 0


cdef class Program:
    """
    Straight-line code over registers, run on ndarrays and numbers.

    Parameters
    ----------
    n_inputs : int
        Registers 0 to ``n_inputs - 1`` are the operands of a call.
    code : list of tuple
        ``(primitive name, output register, input registers...)``.
    constants : tuple of number
        They occupy the registers after the inputs.
    result : int, optional
        The register that is returned; the last one written if not given.

    Examples
    --------
    >>> tanh_backward = Program(2, [("mul", 3, 1, 1), ("sub", 4, 2, 3), ("mul", 5, 0, 4)], constants=(1,))
    >>> tanh_backward(grad, result)
    """
    cdef program_t program
    cdef list names

    def __init__(self, int n_inputs, code, constants=(), result=None):
        cdef int i, k, register
        if self.program.code != NULL:
            raise RuntimeError("Program: already made; make a new one.")
        if not 0 <= n_inputs <= MAX_INPUTS:
            raise ValueError(f"Program: too many inputs (got {n_inputs}, expected at most {MAX_INPUTS})")
        code = list(code)
        if result is None:
            result = code[len(code) - 1][1] if code else 0
        self.program.code = <instruction_t *>calloc(len(code) + 1, sizeof(instruction_t))
        self.program.constants = <value_t *>calloc(len(constants) + 1, sizeof(value_t))
        if self.program.code == NULL or self.program.constants == NULL:
            raise MemoryError("Program: out of memory")
        known = set(range(n_inputs + len(constants)))
        for i, number in enumerate(constants):
            _set_number(&self.program.constants[i], number)
        for i, (name, out, *inputs) in enumerate(code):
            self.program.code[i].primitive = primitive(name)
            if primitive_arity(self.program.code[i].primitive) != len(inputs):
                raise ValueError(f"Program: {name} has another number of operands (got {len(inputs)}, expected "
                                 f"{primitive_arity(self.program.code[i].primitive)})")
            if not 0 <= out < MAX_REGISTERS or not known.issuperset(inputs):
                raise ValueError(f"Program: register out of range or not yet set (got {out} and {inputs})")
            known.add(out)
            self.program.code[i].out = out
            for k in range(MAX_ARITY):
                register = inputs[k] if k < len(inputs) else -1
                self.program.code[i].inputs[k] = register
        if result not in known:
            raise ValueError(f"Program: the result's register is never set (got {result})")
        self.program.n_inputs = n_inputs
        self.program.n_constants = len(constants)
        self.program.n_instructions = len(code)
        self.program.n_registers = max(known, default=0) + 1
        self.program.result = result

    def __dealloc__(self):
        forget(&self.program)
        free(self.program.code)
        free(self.program.constants)

    cdef int set_operands(self, tuple operands, value_t *values, reuse=0) except -1:
        """Convert ndarrays and numbers to values; the caller clears them, also on failure."""
        cdef array_t *array
        cdef array_t *own
        if len(operands) != self.program.n_inputs:
            raise TypeError(f"Program: wrong number of operands (got {len(operands)}, "
                            f"expected {self.program.n_inputs})")
        for i, operand in enumerate(operands):
            if not isinstance(operand, numpy.ndarray):
                _set_number(&values[i], operand)
                continue
            array = array_from_numpy(operand, False)
            if (reuse >> i) & 1:
                # a copy, so that it may be taken over
                own = as_copy(array, array.dtype)
                release(array)
                if own == NULL:
                    check(MEMORY_ERROR)
                array = own
            set_array(&values[i], array)
        return 0

    def __call__(self, *operands, into=None, int reuse=0):
        """Run it, into an ndarray if given; bit i of `reuse` passes a copy of operand i that may be reused."""
        cdef value_t[MAX_INPUTS] values
        cdef array_t *result = NULL
        cdef array_t *target = NULL
        cdef int i, status
        cdef uint32_t bits = reuse
        for i in range(MAX_INPUTS):
            values[i].kind = 0
        try:
            self.set_operands(operands, values, reuse)
            if into is not None:
                target = array_from_numpy(into, True)
            with nogil:
                status = evaluate(&self.program, values, bits, target, &result)
            check(status)
            return into if into is not None else _wrapped(result)
        finally:
            if target != NULL:
                release(target)
            for i in range(MAX_INPUTS):
                clear(&values[i])

    def result_dtype(self, *operands):
        """Return the dtype of the result."""
        cdef value_t[MAX_INPUTS] values
        cdef int i
        for i in range(MAX_INPUTS):
            values[i].kind = 0
        try:
            self.set_operands(operands, values)
            i = result_dtype(&self.program, values)
            check(-i if i < 0 else OK)
            return dtype_object(i)
        finally:
            for i in range(MAX_INPUTS):
                clear(&values[i])


def apply(name, *operands, **options):
    """Run one primitive on ndarrays and numbers."""
    return Program(len(operands), [(name, len(operands), *range(len(operands)))])(*operands, **options)


cdef char *_data(array) except? NULL:
    """Return the address of the elements; None: NULL."""
    return <char *><size_t>(0 if array is None else array.ctypes.data)


CHAINED = ("add", "sub", "mul", "div", "neg", "square", "sqrt", "reciprocal")


def chain(steps, dtype, int64_t n):
    """
    Run a chain on n elements; return how many of them are in whole blocks.

    Each step is (name, left, right, result): contiguous ndarrays, of no dimension for a number. An operand that is None
    is what the step before has made, a result that is None is not kept.
    """
    cdef chain_step_t[64] made
    cdef int i
    if len(steps) > 64:
        raise ValueError(f"chain: too many steps (got {len(steps)}, expected at most 64)")
    for i, (name, left, right, result) in enumerate(steps):
        one, other = (HELD if operand is None else ELEMENTS if operand.ndim else NUMBER for operand in (left, right))
        made[i].code = CHAIN_CODE(CHAINED.index(name), one, other, result is not None)
        made[i].left, made[i].right, made[i].out = _data(left), _data(right), _data(result)
    return run_chain(dtype == "float64", made, len(steps), n)


def copy(to, source):
    """``to[...] = source[...]`` of ndarrays, with copy_into()."""
    cdef array_t *a = array_from_numpy(to, True)
    cdef array_t *b
    try:
        b = array_from_numpy(source, False)
        try:
            check(copy_into(a, b))
        finally:
            release(b)
    finally:
        release(a)


def add_into(to, source):
    """``to += source`` of ndarrays, with accumulate()."""
    cdef array_t *a = array_from_numpy(to, True)
    cdef array_t *b
    try:
        b = array_from_numpy(source, False)
        try:
            check(accumulate(a, b))
        finally:
            release(b)
    finally:
        release(a)


def fill_with(to, number):
    """``to[...] = number`` of an ndarray, with fill()."""
    cdef value_t value
    _set_number(&value, number)
    cdef array_t *a = array_from_numpy(to, True)
    try:
        check(fill(a, &value))
    finally:
        release(a)
