"""
Calls of operators from Python: binding arguments to the parameters of the row.

One binder serves all operators. `Operator` and `OperatorMethod`, the method descriptor in Tensor, use CPython's
vectorcall protocol, which passes arguments without a tuple. Positional arguments alone are copied; everything else that
a signature allows is read from the row: keywords under both spellings (`input` and `self`, `dim` and `axis`), defaults,
`out=`, sizes as several arguments.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport INTEGER, INTEGERS, array_t
from cygrad._core.arrays.dtype cimport dtype as Dtype
from cygrad._core.arrays.dtype cimport dtype_code
from cygrad._core.dispatch.dispatch cimport binary, call, call_boxed, call_inplace, unary
from cygrad._core.graph.boxing cimport INTEGER_CAPACITY, begin_frame, frame_t
from cygrad._core.graph.tensor cimport Tensor, type_of
from cygrad._core.memory.errors cimport unlikely
from cygrad._core.table.operator cimport (
    CALL_BINARY, CALL_INPLACE, CALL_UNARY, DTYPE_, INPLACE, MAX_ARGUMENTS, OUT, Operator, operator_t, register_operator,
    table, vectorcall_t,
)

from importlib import import_module
from cygrad._core.graph.early_forms import factors_first
from cygrad._core.table.operator import operators


# ----------------------------------------------------------------------------------------------------------- size calls

# Fast path for a tensor and integers, such as ``x.view(2, 3)``, without a tuple.
#
# Building a tuple and boxing its integers takes longer than the view itself, so they are read from the vectorcall
# arguments.

cdef extern from *:
    int64_t PyLong_AsLongLongAndOverflow(PyObject *given, int *overflow)


cdef object call_with_sizes(Operator operator, vectorcall_t otherwise, PyObject *function, PyObject **given,
                            size_t count, PyObject *names):
    cdef frame_t frame
    cdef int i, overflow = 0, n = <int>argument_count(count) - 1
    if unlikely(names != NULL or n < 1 or n > <int>INTEGER_CAPACITY or not is_usual(given[0])):
        return otherwise(function, given, count, names)
    for i in range(n):
        if type_of(given[i + 1]) != <PyObject *>int:
            return otherwise(function, given, count, names)
        frame.integers[i] = PyLong_AsLongLongAndOverflow(given[i + 1], &overflow)
        if unlikely(overflow):
            return otherwise(function, given, count, names)
    begin_frame(&frame, <Tensor>given[0], 1)
    frame.used = n
    frame.values[1].kind = INTEGERS
    frame.values[1].count = n
    frame.values[1].of.integers = frame.integers
    return call_boxed(operator, &frame, None, NULL)


# ---------------------------------------------------------------------------------------------------------------- parts

# Fast paths of `split`, `chunk` and `T` for plain tensors.

cdef Operator _split, _transpose_all


def equal_parts(input, number, dim, bint parts):
    """
    Return what `split` returns for chunks of n elements, or `chunk` for n chunks.

    Returns
    -------
    tuple of Tensor or None None for arguments that the fast path does not support.
    """
    global _split
    cdef frame_t frame
    cdef array_t *array
    cdef int64_t size, chunk, place
    if type(number) is not int or type(dim) is not int or not is_usual(<PyObject *>input):
        return None
    array = (<Tensor>input).array
    if not 0 < number <= 1 << 60 or not -array.ndim <= dim < array.ndim:
        return None
    place = dim
    place += array.ndim if place < 0 else 0
    size, chunk = array.shape[place], number
    if parts:
        chunk = (size + chunk - 1) // chunk
    if size == 0 or (size - 1) // chunk >= <int>INTEGER_CAPACITY:
        return None
    if _split is None:
        _split = table["split"]
    begin_frame(&frame, <Tensor>input, 2)
    while size > 0:
        frame.integers[frame.used] = min(size, chunk)
        frame.used += 1
        size -= chunk
    frame.values[1].kind = INTEGERS
    frame.values[1].count = frame.used
    frame.values[1].of.integers = frame.integers
    frame.values[2].kind = INTEGER
    frame.values[2].of.integer = place
    return call_boxed(_split, &frame, None, NULL)


def transposing(otherwise):
    """Getter of `T`: the transpose of a matrix, and `otherwise(self)` for everything else."""
    def transposed(self):
        global _transpose_all
        cdef frame_t frame
        if not is_usual(<PyObject *>self) or (<Tensor>self).array.ndim != 2:
            return otherwise(self)
        if _transpose_all is None:
            _transpose_all = table["transpose_all"]
        begin_frame(&frame, <Tensor>self, 0)
        return call_boxed(_transpose_all, &frame, None, NULL)
    transposed.__doc__ = otherwise.__doc__
    return transposed


# -------------------------------------------------------------------------------------------------------------- binding

cdef extern from *:
    """
    #define argument_count(count) PyVectorcall_NARGS(count)
    #define VECTORCALL_FLAGS Py_TPFLAGS_HAVE_VECTORCALL
    #define METHOD_FLAGS (Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR)
    """
    Py_ssize_t argument_count(size_t count) noexcept
    unsigned long VECTORCALL_FLAGS
    unsigned long METHOD_FLAGS

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        object (*tp_call)(object, object, object)
        object (*tp_new)(_Type *, object, PyObject *)
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
    object PyVectorcall_Call(object callable, object args, object kwargs)
    object PyMethod_New(object function, object instance)
    PyObject *PyTuple_GET_ITEM(PyObject *names, Py_ssize_t i) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject *names) noexcept
    void PyType_Modified(_Type *)


# ---- calls

cdef inline object _run(Operator operator, PyObject **arguments, PyObject *out):
    """Call with bound arguments."""
    if operator.call_kind == CALL_INPLACE:
        return call_inplace(<Operator>operator.descriptor.object, arguments)
    if operator.call_kind == CALL_UNARY:
        return unary(operator, <object>arguments[0], <object>out)
    if operator.call_kind == CALL_BINARY:
        return binary(operator, <object>arguments[0], <object>arguments[1], <object>out)
    return call(operator, arguments, <object>out)


cdef object _call(PyObject *function, PyObject **given, size_t count, PyObject *names):
    """Call an operator with any arguments."""
    cdef Operator called = <Operator>function
    cdef operator_t *op = called.descriptor
    cdef PyObject *arguments[MAX_ARGUMENTS]
    cdef Py_ssize_t i, n = argument_count(count)
    if unlikely(names != NULL or n > op.n_positional or called.variadic):
        return _bind_and_run(called, given, n, names)
    for i in range(n):
        arguments[i] = given[i]
    for i in range(n, op.n_arguments):
        arguments[i] = called.defaults[i]
        if unlikely(arguments[i] == NULL):
            return _missing(called, given, n, names, i)
    return _run(called, arguments, <PyObject *>None)


cdef object _call_unary(PyObject *function, PyObject **given, size_t count, PyObject *names):
    if unlikely(names != NULL or argument_count(count) != 1):
        return _call(function, given, count, names)
    return unary(<Operator>function, <object>given[0], None)


cdef object _call_binary(PyObject *function, PyObject **given, size_t count, PyObject *names):
    if unlikely(names != NULL or argument_count(count) != 2):
        return _call(function, given, count, names)
    return binary(<Operator>function, <object>given[0], <object>given[1], None)


cdef object _call_variadic(PyObject *function, PyObject **given, size_t count, PyObject *names):
    return call_with_sizes(<Operator>function, _call, function, given, count, names)


# ---- binding

# Aliases of parameters: of the first one of most operators, and NumPy's.
cdef dict _spellings = {"self": "input", "axis": "dim", "keepdims": "keepdim"}


cdef Py_ssize_t _position(Operator operator, PyObject *name) except -2:
    """Return the position of a parameter of that name, -1 if there is none."""
    cdef Py_ssize_t i, n = operator.descriptor.n_arguments
    for i in range(n):
        if operator.parameters[i] == name:            # keywords are usually interned
            return i
    for i in range(n):
        if <str>operator.parameters[i] == <str>name:
            return i
    return -1


cdef object _bind_and_run(Operator operator, PyObject **given, Py_ssize_t n, PyObject *names):
    """Bind keywords, sizes and defaults, and call."""
    cdef operator_t *op = operator.descriptor
    cdef PyObject *arguments[MAX_ARGUMENTS]
    cdef PyObject *out = <PyObject *>None
    cdef PyObject *value
    cdef Py_ssize_t i, position, n_positional = n, first_keyword = n
    cdef object sizes = None, overload = None
    if operator.factors and n > op.n_positional:
        return _call_early_form(operator, given, n, names)
    if operator.variadic and n > 1:
        sizes = <object>given[1] if n == 2 else tuple([<object>given[i] for i in range(1, n)])
        n_positional = 1
    if n_positional > op.n_positional:
        return _misfit(operator, given, n, names, f"takes {op.n_positional} positional "
                       f"argument{'s' if op.n_positional != 1 else ''} but {n} were given")
    for i in range(op.n_arguments):
        arguments[i] = given[i] if i < n_positional else NULL
    if sizes is not None:
        if operator.overloads is not None and isinstance(sizes, Dtype):
            overload = sizes, "dtype"
        else:
            arguments[1] = <PyObject *>sizes
    for i in range(0 if names == NULL else PyTuple_GET_SIZE(names)):
        name, value = <object>PyTuple_GET_ITEM(names, i), given[first_keyword + i]
        if op.flags & OUT and operator.call_kind != CALL_INPLACE and name == "out":
            out = value
            continue
        position = _position(operator, <PyObject *>name)
        if position < 0 and name in _spellings:
            if name != "self" and value == <PyObject *>None:
                continue
            spelling = _spellings[name]
            position = _position(operator, <PyObject *>spelling)
        if operator.overloads is not None and name in operator.overloads:
            if value != <PyObject *>None and (position < 0 or value != operator.defaults[position]):
                overload = <object>value, name
            if position < 0:
                continue
        if position < 0:
            return _misfit(operator, given, n, names, f"got an unexpected keyword argument '{name}'")
        if arguments[position] != NULL:
            raise TypeError(f"{operator.__name__}: got multiple values for argument "
                            f"'{<object>operator.parameters[position]}'. Pass it once.")
        arguments[position] = value
    if overload is not None:
        return _call_overload(operator, arguments, out, overload)
    if operator.variadic and arguments[1] == NULL:
        sizes = ()
        arguments[1] = <PyObject *>sizes
    for i in range(op.n_arguments):
        if arguments[i] == NULL:
            arguments[i] = operator.defaults[i]
            if arguments[i] == NULL:
                return _missing(operator, given, n, names, i)
        elif out != NULL and op.arguments[i].kind == DTYPE_ and arguments[i] != <PyObject *>None:
            _check_out_dtype(operator, <object>arguments[i], <object>out)
    return _run(operator, arguments, out)


cdef int _check_out_dtype(Operator operator, object dtype, object out) except -1:
    """Check that the dtype of a call is that of its out."""
    if isinstance(out, Tensor) and dtype_code(dtype, operator.__name__) != (<Tensor>out).array.dtype:
        raise RuntimeError(f"{operator.__name__}: expected an out of dtype {dtype} (got {out.dtype}). Omit dtype, or "
                           "pass another out.")
    return 0


cdef object _missing(Operator operator, PyObject **given, Py_ssize_t n, PyObject *names, Py_ssize_t position):
    return _misfit(operator, given, n, names,
                   f"missing required argument '{<object>operator.parameters[position]}'")


cdef object _misfit(Operator operator, PyObject **given, Py_ssize_t n, PyObject *names, str message):
    """Call the function of the overload "*"; raise TypeError if there is none, or it does not accept the arguments."""
    if operator.overloads is not None and "*" in operator.overloads and operator.call_kind != CALL_INPLACE:
        module, _, function = operator.overloads["*"].rpartition(".")
        result = getattr(import_module(module), function)(*[<object>given[i] for i in range(n)],
                                                          **_options(given, n, names))
        if result is not NotImplemented:
            return result
    raise TypeError(f"{operator.__name__}: {message}. "
                    f"Its signature is {operator.__name__}{operator.__signature__}.")


cdef dict _options(PyObject **given, Py_ssize_t n, PyObject *names):
    """The keyword arguments of a call."""
    cdef Py_ssize_t i
    cdef dict options = {}
    for i in range(0 if names == NULL else PyTuple_GET_SIZE(names)):
        options[<object>PyTuple_GET_ITEM(names, i)] = <object>given[n + i]
    return options


cdef object _call_overload(Operator operator, PyObject **arguments, PyObject *out, tuple overload):
    """Call the function that handles a keyword, with the original arguments."""
    value, name = overload
    cdef dict given = {name: value}
    cdef int i
    for i in range(operator.descriptor.n_arguments):
        if arguments[i] != NULL:
            given[<object>operator.parameters[i]] = <object>arguments[i]
    if out != <PyObject *>None:
        given["out"] = <object>out
    module, _, function = operator.overloads[name].rpartition(".")
    return getattr(import_module(module), function)(**given)


cdef object _call_early_form(Operator operator, PyObject **given, Py_ssize_t n, PyObject *names):
    """Call ``addmm(beta, input, alpha, mat1, mat2)``, the form with factors first."""
    cdef Py_ssize_t i
    return factors_first(operator, tuple([<object>given[i] for i in range(n)]), operator.factors,
                         **_options(given, n, names))


# ---- the methods of Tensor

@cython.final
@cython.binding(False)      # methods check the type of self
cdef class OperatorMethod:
    """An operator as a method of Tensor: a descriptor that CPython calls without making a bound method."""
    cdef vectorcall_t vectorcall
    cdef readonly Operator operator
    cdef readonly str __name__

    def __cinit__(self, Operator operator not None, str name not None):
        self.operator, self.__name__ = operator, name
        self.vectorcall = _call_method

    def __call__(self, *args, **kwargs):
        return PyVectorcall_Call(self, args, kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __eq__(self, other):
        """Compare equal if operator and method are those of one row: ``__torch_function__`` receives either."""
        if isinstance(other, OperatorMethod):
            return (<OperatorMethod>other).operator is self.operator
        return other is self.operator if isinstance(other, Operator) else NotImplemented

    def __hash__(self):
        return hash(self.operator)

    def __repr__(self):
        return f"<method '{self.__name__}' of 'cygrad.Tensor' objects>"

    def __reduce__(self):
        return getattr, (Tensor, self.__name__)

    @property
    def __objclass__(self):
        return Tensor

    @property
    def __qualname__(self):
        return f"Tensor.{self.__name__}"

    @property
    def __module__(self):
        return "cygrad"

    @property
    def __doc__(self):
        return self.operator.__doc__

    @property
    def __signature__(self):
        return self.operator.__signature__

    @property
    def __text_signature__(self):
        return self.operator.__text_signature__

    @property
    def __annotations__(self):
        return {}


cdef object _call_method(PyObject *function, PyObject **given, size_t count, PyObject *names):
    cdef PyObject *called = <PyObject *>(<OperatorMethod>function).operator
    return (<Operator>called).vectorcall(called, given, count, names)


# ---- the types

cdef int _set_vectorcall(type cls, Py_ssize_t offset, unsigned long flags) except -1:
    """Enable CPython's vectorcall protocol for a type; Cython has no syntax for it."""
    cdef _Type *slots = <_Type *>cls
    slots.tp_vectorcall_offset = offset
    slots.tp_call = PyVectorcall_Call
    slots.tp_flags |= flags
    PyType_Modified(slots)
    return 0


cdef object _refuse_new(_Type *cls, object arguments, PyObject *options):
    raise TypeError("Operator: cannot create instances. The operators of the table are functions of cygrad.")


cdef int _complete_types() except -1:
    cdef Operator function = Operator.__new__(Operator)
    cdef OperatorMethod method = OperatorMethod(function, "")
    _set_vectorcall(Operator, <char *>&function.vectorcall - <char *><void *>function, VECTORCALL_FLAGS)
    _set_vectorcall(OperatorMethod, <char *>&method.vectorcall - <char *><void *>method, METHOD_FLAGS)
    (<_Type *>Operator).tp_new = _refuse_new
    return 0


_complete_types()


cdef Operator _make_callable(Operator operator):
    """Set how the operator is called."""
    if operator.variadic:
        operator.vectorcall = _call_variadic
    elif operator.call_kind == CALL_UNARY:
        operator.vectorcall = _call_unary
    elif operator.call_kind == CALL_BINARY:
        operator.vectorcall = _call_binary
    else:
        operator.vectorcall = _call
    return operator


def load_rows(list rows):
    """Register rows from `signature.parse_row` and make their operators and in-place forms callable."""
    cdef Operator made
    for row in rows:
        made = _make_callable(register_operator(row))
        if made.descriptor.flags & INPLACE:
            _make_callable(getattr(operators, made.name + "_"))


# ------------------------------------------------------------------------------------------------------ static function

# Python functions that do not bind as methods.

cdef extern from "Python.h":
    object PyObject_Call(object function, object args, PyObject *kwargs)


@cython.binding(False)      # methods check the type of self
cdef class StaticFunction:
    """
    Function without ``__get__``, which does not bind as a method, like a built-in function.

    Parameters
    ----------
    function : function
        The wrapped function, whose attributes are available here, too.
    """
    cdef readonly object __wrapped__
    cdef readonly str __doc__

    def __cinit__(self, function):
        self.__wrapped__, self.__doc__ = function, function.__doc__

    def __call__(self, *args, **kwargs):
        return PyObject_Call(self.__wrapped__, args, <PyObject *>kwargs if kwargs else NULL)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    @property
    def __module__(self):
        return self.__wrapped__.__module__

    def __reduce__(self):
        return self.__wrapped__.__qualname__

    def __repr__(self):
        return f"<function {self.__wrapped__.__qualname__}>"
