# distutils: extra_compile_args = -O1
"""Kernels, formulas and element-wise expressions on ndarrays from Python: how tests reach the layers below tensors."""

cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, NOTHING, REAL, TEXT, array_empty_like, array_from_numpy, array_t,
    clear, copy_value, find_kernel, kernel_t, numpy_from_array, owned_ndarray, release, retain, set_array, set_arrays,
    set_integers, value_t,
)
from cygrad._core.arrays.dtype cimport dtype, dtype_object
from cygrad._core.elementwise.copying cimport as_copy, copy_into, fill
from cygrad._core.elementwise.elementwise cimport (
    accumulate, evaluate, forget as forget_expression, primitive, primitive_arity, result_dtype,
)
from cygrad._core.elementwise.expression cimport MAX_INPUTS, MAX_REGISTERS, primitive_call_t, expression_t
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.primitives.primitive_table cimport (
    CHAIN_CODE, ELEMENTS, HELD, MAX_ARITY, NUMBER, chain_step_t, run_chain,
)
from cygrad._core.program.builder cimport constant_value
from cygrad._core.table.operator cimport (
    MAX_ARGUMENTS, MAX_SAVED, Operator, differentiate, operator_t, register_operator, table,
)

import time
import numpy as np

cnp.import_array()

cdef enum:
    MAX_VALUES = 32       # arguments or results of a kernel

cdef list _interned = []      # TEXT values point into these bytes objects


cdef int _box(object argument, value_t *value) except -1:
    """Convert a Python argument to a value_t; see call_kernel."""
    cdef int i
    cdef cnp.ndarray integers
    value.kind = NOTHING
    if argument is None:
        return 0
    if isinstance(argument, np.ndarray):
        set_array(value, array_from_numpy(argument, False))
    elif isinstance(argument, (bool, np.bool_)):
        value.kind, value.of.integer = BOOLEAN, bool(argument)
    elif isinstance(argument, dtype):
        value.kind, value.of.integer = DTYPE, (<dtype>argument).code
    elif isinstance(argument, (int, np.integer)):
        value.kind, value.of.integer = INTEGER, argument
    elif isinstance(argument, (float, np.floating)):
        value.kind, value.of.real = REAL, argument
    elif isinstance(argument, (complex, np.complexfloating)):
        value.kind, value.of.real, value.imag = COMPLEX, argument.real, argument.imag
    elif isinstance(argument, str):
        text = argument.encode()
        if text not in _interned:
            _interned.append(text)
        value.kind, value.of.text = TEXT, <bytes>_interned[_interned.index(text)]
    elif isinstance(argument, (tuple, list)):
        if any(isinstance(entry, np.ndarray) for entry in argument):
            check(set_arrays(value, len(argument)))
            for i, entry in enumerate(argument):
                if entry is not None:
                    value.of.arrays[i] = array_from_numpy(entry, False)
        else:
            integers = np.array(argument, dtype=np.int64).reshape(-1)
            check(set_integers(value, <int>integers.size, <int64_t *>cnp.PyArray_DATA(integers)))
    else:
        raise TypeError(f"call_kernel: cannot pass a {type(argument).__name__}")
    return 0


cdef object _unbox(value_t *value):
    """Convert a result to a Python object; arrays become independent ndarrays."""
    cdef int i
    if value.kind == ARRAY:
        return _copied(value.of.array)
    if value.kind == ARRAYS:
        return [_copied(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    return plain_object(value)


cdef object _copied(array_t *array):
    """Return a copy as an ndarray with the array's strides order."""
    return np.array(_shared(array))


def call_kernel(str name, *arguments, raw=False):
    """
    Run a kernel on Python arguments, for tests below tensors.

    Import the module that registers the kernel first: ``import cygrad._core.kernels.linalg.matmul`` and then
    ``call_kernel("mm", a, b)[0]``. The kernel runs without the GIL, as it does for tensors.

    Parameters
    ----------
    name : str
        The name that the kernel was registered under.
    *arguments
        ndarray -> ARRAY (zero-copy, any strides); list or tuple with an ndarray in it -> ARRAYS (None
        for a missing entry); other list or tuple -> INTEGERS; bool, int, float, complex -> the number
        of that kind; None -> NOTHING; str -> TEXT; cygrad dtype -> DTYPE.
    raw : bool, default False
        Return arrays without a copy: ndarrays over the memory of the results, to see views.

    Returns
    -------
    list
        The results up to the last one that is not NOTHING.

    Raises
    ------
    KeyError
        If there is no such kernel.
    RuntimeError, TypeError, ValueError, IndexError, MemoryError, NotImplementedError
        What the kernel reports.
    """
    cdef value_t[MAX_VALUES] values
    cdef value_t[MAX_VALUES] results
    cdef kernel_t kernel = find_kernel(name)
    cdef int status, i, n = len(arguments)
    if kernel == NULL:
        raise KeyError(f"call_kernel: no kernel '{name}' is registered; is its module imported?")
    if n > MAX_VALUES:
        raise TypeError(f"call_kernel: too many arguments (got {n}, expected at most {MAX_VALUES})")
    memset(values, 0, sizeof(values))
    memset(results, 0, sizeof(results))
    try:
        for i in range(n):
            _box(arguments[i], &values[i])
        with nogil:
            status = kernel(values, results)
        check(status)
        n = MAX_VALUES
        while n > 0 and results[n - 1].kind == NOTHING:
            n -= 1
        return [_unbox_raw(&results[i]) if raw else _unbox(&results[i]) for i in range(n)]
    finally:
        for i in range(MAX_VALUES):
            clear(&values[i])
            clear(&results[i])


cdef object _unbox_raw(value_t *value):
    """As unbox, but arrays share the memory of the results."""
    cdef int i
    if value.kind == ARRAY:
        return _shared(value.of.array)
    if value.kind == ARRAYS:
        return [_shared(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    return _unbox(value)


cdef object _shared(array_t *array):
    """Return an ndarray over the memory of an array."""
    return owned_ndarray(retain(array))


cdef enum:
    MAX_GRADS = 64

cdef list _constants = []


cdef int _owned_value(object argument, value_t *value) except -1:
    """Convert a Python object to a value that owns its parts."""
    cdef value_t constant
    value.kind = NOTHING
    if isinstance(argument, np.ndarray):
        set_array(value, array_from_numpy(argument, False))
    elif isinstance(argument, list):
        check(set_arrays(value, len(argument)))
        for i, entry in enumerate(argument):
            if entry is not None:
                value.of.arrays[i] = array_from_numpy(entry, False)
    else:
        constant_value(argument, &constant, _constants)
        check(copy_value(value, &constant))
    return 0


def register(dict row):
    """Register a row; -> its Operator."""
    return register_operator(row)


def forget(str name):
    """Remove an operator from the table; it must not be used any more."""
    del table[name]


def is_registered(str name):
    """Return whether there is an operator of this name."""
    return name in table


def describe(str name):
    """
    Compile an operator and return the fields of its descriptor.

    Returns
    -------
    dict
        ``node_name``, ``flags``, ``n_required``, ``n_positional``, ``differentiable_results``, and ``saved``,
        a list of (name, from_result, index, meta, needed_by).
    """
    cdef Operator found = table[name]
    cdef operator_t *op = found.descriptor
    cdef int i
    found.compile()
    return {"node_name": op.node_name.decode(), "flags": op.flags, "n_required": op.n_required,
            "n_positional": op.n_positional, "differentiable_results": op.differentiable_results,
            "saved": [(op.saved[i].name.decode(), bool(op.saved[i].from_result), op.saved[i].index,
                       not op.saved[i].memory_by, op.saved[i].needed_by) for i in range(op.n_saved)]}


def recorded(str name, str argument):
    """Return the Python function f(grads, saved) of the derivative formula of `argument`."""
    cdef Operator found = table[name]
    return found.recorded_function(_number(found, argument))


def evaluate_arrays(str name, *arguments, int repeat=0):
    """Run the forward expression of an element-wise operator on ndarrays and numbers.

    With `repeat`, run it that often and return the nanoseconds of one run.
    """
    cdef Operator found = table[name]
    cdef value_t[MAX_ARGUMENTS] values
    cdef value_t result
    cdef array_t *array = NULL
    cdef int i, status
    memset(values, 0, sizeof(values))
    found.ensure_expression()
    if len(arguments) != found.descriptor.n_arguments:
        raise TypeError(f"{name}: takes {found.descriptor.n_arguments} arguments (got {len(arguments)})")
    try:
        for i in range(found.descriptor.n_arguments):
            _owned_value(arguments[i], &values[i])
        if repeat:
            start = time.perf_counter_ns()
            with nogil:
                for i in range(repeat):
                    evaluate(found.descriptor.expression, values, 0, NULL, &array)
                    release(array)
            return (time.perf_counter_ns() - start) / repeat
        with nogil:
            status = evaluate(found.descriptor.expression, values, 0, NULL, &array)
        check(status)
        set_array(&result, array)
        try:
            return _unbox_raw(&result)
        finally:
            clear(&result)
    finally:
        for i in range(MAX_ARGUMENTS):
            clear(&values[i])


def differentiate_arrays(str name, saved, grads, needed, *, give_up_grads=False, int repeat=0):
    """
    Run derivative formulas of an operator on ndarrays, in the native execution.

    Parameters
    ----------
    name : str
        An operator of the table.
    saved : list
        Values in the order of ``describe(name)["saved"]``.
    grads : list
        Gradients of the results, None where undefined.
    needed : iterable of str
        The arguments whose derivatives are wanted.
    give_up_grads : bool, default False
        Copy the gradients first into memory that is not shared: it may be computed in.
    repeat : int, default 0
        Run that often and return the nanoseconds of one run instead.

    Returns
    -------
    dict or float
        Argument name -> ndarray, list of ndarrays or None.
    """
    cdef Operator found = table[name]
    cdef value_t[MAX_SAVED] saved_values
    cdef value_t[MAX_GRADS] grad_values
    cdef value_t[MAX_GRADS] given
    cdef value_t[MAX_ARGUMENTS] results
    cdef uint32_t wanted = 0
    cdef int i, k, status = 0, n_saved = len(saved), n_grads = len(grads)
    if n_saved > MAX_SAVED or n_grads > MAX_GRADS:
        raise TypeError("differentiate_arrays: too many values")
    found.compile()
    for argument in needed:
        wanted |= <uint32_t>1 << _number(found, argument)
    memset(saved_values, 0, sizeof(saved_values))
    memset(given, 0, sizeof(given))
    memset(results, 0, sizeof(results))
    try:
        for i in range(n_saved):
            _owned_value(saved[i], &saved_values[i])
        for i in range(n_grads):
            _owned_value(grads[i], &given[i])
            if give_up_grads and given[i].kind == ARRAY:
                _own(&given[i])
        if repeat:
            start = time.perf_counter_ns()
            with nogil:
                for k in range(repeat):
                    for i in range(n_grads):
                        copy_value(&grad_values[i], &given[i])
                    differentiate(found.descriptor, saved_values, grad_values, n_grads, wanted, NULL, 0, results)
                    for i in range(found.descriptor.n_arguments):
                        clear(&results[i])
            return (time.perf_counter_ns() - start) / repeat
        for i in range(n_grads):
            grad_values[i] = given[i]
            if not give_up_grads:
                copy_value(&grad_values[i], &given[i])
            given[i].kind = NOTHING if give_up_grads else given[i].kind
        with nogil:
            status = differentiate(found.descriptor, saved_values, grad_values, n_grads, wanted, NULL, 0, results)
        check(status)
        gradients = {}
        for argument in needed:
            gradients[argument] = _unbox_raw(&results[_number(found, argument)])
        return gradients
    finally:
        for i in range(MAX_ARGUMENTS):
            clear(&results[i])
        for i in range(n_saved):
            clear(&saved_values[i])
        for i in range(n_grads):
            clear(&given[i])


cdef int _number(Operator found, str argument) except -1:
    cdef int i
    for i in range(found.descriptor.n_arguments):
        if found.descriptor.arguments[i].name.decode() == argument:
            return i
    raise KeyError(f"{found.name}: no argument '{argument}'")


cdef int _own(value_t *value) except -1:
    """Replace the array by a contiguous copy in new memory."""
    cdef array_t *copy = array_empty_like(value.of.array, -1)
    if copy == NULL:
        raise MemoryError
    check(copy_into(copy, value.of.array))
    release(value.of.array)
    value.of.array = copy
    return 0


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
        raise TypeError(f"Expression: not a number (got {type(number).__name__}, expected bool, int, float, "
                        f"complex)")
    return 0


cdef class Expression:
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
    >>> tanh_backward = Expression(2, [("mul", 3, 1, 1), ("sub", 4, 2, 3), ("mul", 5, 0, 4)], constants=(1,))
    >>> tanh_backward(grad, result)
    """
    cdef expression_t expression
    cdef list names

    def __init__(self, int n_inputs, code, constants=(), result=None):
        cdef int i, k, register
        if self.expression.code != NULL:
            raise RuntimeError("Expression: already made; make a new one.")
        if not 0 <= n_inputs <= MAX_INPUTS:
            raise ValueError(f"Expression: too many inputs (got {n_inputs}, expected at most {MAX_INPUTS})")
        code = list(code)
        if result is None:
            result = code[len(code) - 1][1] if code else 0
        self.expression.code = <primitive_call_t *>calloc(len(code) + 1, sizeof(primitive_call_t))
        self.expression.constants = <value_t *>calloc(len(constants) + 1, sizeof(value_t))
        if self.expression.code == NULL or self.expression.constants == NULL:
            raise MemoryError("Expression: out of memory")
        known = set(range(n_inputs + len(constants)))
        for i, number in enumerate(constants):
            _set_number(&self.expression.constants[i], number)
        for i, (name, out, *inputs) in enumerate(code):
            self.expression.code[i].primitive = primitive(name)
            if primitive_arity(self.expression.code[i].primitive) != len(inputs):
                raise ValueError(f"Expression: {name} has another number of operands (got {len(inputs)}, expected "
                                 f"{primitive_arity(self.expression.code[i].primitive)})")
            if not 0 <= out < MAX_REGISTERS or not known.issuperset(inputs):
                raise ValueError(f"Expression: register out of range or not yet set (got {out} and {inputs})")
            known.add(out)
            self.expression.code[i].out = out
            for k in range(MAX_ARITY):
                register = inputs[k] if k < len(inputs) else -1
                self.expression.code[i].inputs[k] = register
        if result not in known:
            raise ValueError(f"Expression: the result's register is never set (got {result})")
        self.expression.n_inputs = n_inputs
        self.expression.n_constants = len(constants)
        self.expression.n_instructions = len(code)
        self.expression.n_registers = max(known, default=0) + 1
        self.expression.result = result

    def __dealloc__(self):
        forget_expression(&self.expression)
        free(self.expression.code)
        free(self.expression.constants)

    cdef int set_operands(self, tuple operands, value_t *values, reuse=0) except -1:
        """Convert ndarrays and numbers to values; the caller clears them, also on failure."""
        cdef array_t *array
        cdef array_t *own
        if len(operands) != self.expression.n_inputs:
            raise TypeError(f"Expression: wrong number of operands (got {len(operands)}, "
                            f"expected {self.expression.n_inputs})")
        for i, operand in enumerate(operands):
            if not isinstance(operand, np.ndarray):
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
                status = evaluate(&self.expression, values, bits, target, &result)
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
            i = result_dtype(&self.expression, values)
            check(-i if i < 0 else OK)
            return dtype_object(i)
        finally:
            for i in range(MAX_INPUTS):
                clear(&values[i])


def apply(name, *operands, **options):
    """Run one primitive on ndarrays and numbers."""
    return Expression(len(operands), [(name, len(operands), *range(len(operands)))])(*operands, **options)


cdef char *_data(array) except? NULL:
    """Return the address of the elements; None: NULL."""
    return <char *><size_t>(0 if array is None else array.ctypes.data)


CHAINED = ("add", "sub", "mul", "div", "neg", "square", "sqrt", "reciprocal")


def chain(steps, element_type, int64_t n):
    """
    Run a chain on n elements; -> how many of them are in whole blocks.

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
    return run_chain(element_type == "float64", made, len(steps), n)


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
