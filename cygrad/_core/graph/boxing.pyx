"""Conversion between Python objects and boxed arguments."""

cimport cython
from cpython.complex cimport PyComplex_Check, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_Check
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL, TEXT, array_meta, as_real, set_arrays,
    set_integers, value_t,
)
from cygrad._core.arrays.dtype cimport (
    FLOAT16, FLOAT32, INT64, INTEGRAL, category, default_float, dtype_code, dtype_name, dtype_object, is_integral,
    is_short, is_unsigned, itemsize, promote,
)
from cygrad._core.elementwise.copying cimport check_fits, is_representable
from cygrad._core.graph.modes cimport grad_enabled, thread_state
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport (
    Tensor, as_tensor, borrowed_type, held_array, is_meta, is_plain, is_plain_object, protocol, replace_array, type_of,
    wrap,
)
from cygrad._core.memory.errors cimport check, unlikely
from cygrad._core.table.operator cimport (
    BOOL_, DTYPE_, FITS_HALF, FITS_INTEGER, FITS_SINGLE, FLOAT, INT, INTS, NUMBER, OPERAND, REFUSES_BOOL,
    REFUSES_COMPLEX, REFUSES_INTEGERS, REFUSES_REALS, STRING, TENSOR, TENSORS, Operator, any_storage_only, argument_t,
    operator_t,
)

import importlib
import numpy as np
import operator as _python_operator
import sys
from cygrad._core.graph.operation_names import called_operation
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------------- override

# Classes that override operations: subclasses of Tensor, and others with ``__torch_function__``.
#
# When boxing finds such an argument, the class's ``__torch_function__`` handles the call: it gets the function, the
# classes, and the arguments. That of Tensor runs the function as usual and converts the result to the class of the
# argument. A ``__torch_dispatch__`` is called below that: by functions whose ``__torch_function__`` is disabled.

cdef extern from * nogil:
    """
    static __thread int overrides_disabled;       /* 1: __torch_function__; 2: __torch_dispatch__, too */
    """
    int overrides_disabled

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        object (*tp_new)(_Type *, object, PyObject *)


def disabled_torch_function(func, types, args=(), kwargs=None):
    """The ``__torch_function__`` of classes whose results are plain Tensors."""
    with Disabled():
        return func(*args, **({} if kwargs is None else kwargs))


def torch_dispatch(cls, func, types, args=(), kwargs=None):
    """Call an operator as if the classes of its arguments did not define ``__torch_dispatch__``."""
    with Disabled(2):
        return func(*args, **({} if kwargs is None else kwargs))


cdef bint _has_function(object value) except -1:
    if borrowed_type(value) == protocol.plain_subclass or overrides_disabled:
        return False
    found = getattr(type(value), "__torch_function__", None)
    return found is not None and found is not disabled_torch_function


cdef bint overrides(object value) except -1:
    if borrowed_type(value) == protocol.plain_subclass:
        return False
    if _has_function(value):
        return True
    if overrides_disabled > 1 or not isinstance(value, Tensor):
        return False
    found = type(value).__torch_dispatch__
    return getattr(found, "__func__", found) is not torch_dispatch


cdef bint is_entry(object value) except -1:
    return (type(value) is not Tensor and isinstance(value, Tensor) and is_meta((<Tensor>value).array)
            and overrides(value))


@cython.binding(False)      # methods check the type of self
cdef class Disabled:
    """Treats subclasses of Tensor like Tensor inside the block; level 1 still calls their ``__torch_dispatch__``."""
    cdef int level, before

    def __cinit__(self, int level=1):
        self.level = level

    def __enter__(self):
        global overrides_disabled
        self.before = overrides_disabled
        overrides_disabled = max(self.level, self.before)
        return self

    def __exit__(self, type=None, value=None, traceback=None):
        global overrides_disabled
        overrides_disabled = self.before


def overriding_arguments(values, bint dispatched=False):
    """Return one value of each class that has a ``__torch_function__`` (or `dispatched`), subclasses first."""
    cdef list found = []
    cdef list classes = []
    for value in values:
        if type(value) is Tensor or type(value) in classes or not (
                overrides(value) if dispatched else _has_function(value)):
            continue
        place = len(found)
        for i, other in enumerate(found):
            if issubclass(type(value), type(other)):
                place = i
                break
        found.insert(place, value)
        classes.append(type(value))
    return found


def call_override(function, values, args, kwargs):
    """Return the result of the first class of `values` that does not return NotImplemented."""
    overriding = overriding_arguments(values, True)
    types = tuple([type(value) for value in overriding])
    for value in overriding:
        if _has_function(value):
            result = type(value).__torch_function__(function, types, args, kwargs)
        else:
            modes = importlib.import_module("cygrad.utils.operator_modes")
            result = modes.dispatch(type(value), function, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"{function.__name__}: no implementation for these classes (got "
                    f"{', '.join([cls.__name__ for cls in types])}). Their __torch_function__ returned NotImplemented.")


cdef tuple python_arguments(Operator operator, PyObject **arguments):
    cdef operator_t *op = operator.descriptor
    cdef list args = [<object>arguments[i] for i in range(op.n_positional)]
    cdef dict kwargs = {}
    cdef int i
    for i in range(op.n_positional, op.n_arguments):
        kwargs[op.arguments[i].name.decode()] = <object>arguments[i]
    return args, kwargs


cdef object override(Operator operator, PyObject **arguments, object out, bint inplace):
    cdef list values = []
    cdef int i
    args, kwargs = python_arguments(operator, arguments)
    for i in range(operator.descriptor.n_arguments):
        if operator.descriptor.arguments[i].kind == TENSORS:
            values.extend(<object>arguments[i])
        else:
            values.append(<object>arguments[i])
    if out is not None:
        kwargs["out"] = out
    function = getattr(operators, operator.name + "_" if inplace else operator.name)
    return call_override(function, values, tuple(args), kwargs)


def become(value, cls):
    """Convert plain Tensors in a result to the class `cls`."""
    cdef Tensor tensor, made
    if type(value) is tuple or type(value) is list:
        return type(value)([become(part, cls) for part in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[become(part, cls) for part in value])
    if type(value) is not Tensor:
        return value
    tensor = <Tensor>value
    if not issubclass(cls, Tensor):
        raise TypeError(f"__torch_function__: expected a subclass of Tensor (got {cls.__name__}).")
    if tensor.leaf_requires_grad or tensor.dual_level:      # other code may refer to it
        return tensor
    made = <Tensor>(<_Type *>Tensor).tp_new(<_Type *>cls, (), NULL)
    replace_array(made, held_array(tensor))
    made.node, made.output_nr = tensor.node, tensor.output_nr
    made.base, made.view_version = tensor.base, tensor.view_version
    made.view_kind, made.untracked = tensor.view_kind, tensor.untracked
    return made


def torch_function(cls, func, types, args=(), kwargs=None):
    """
    Run a function on a subclass of Tensor: results have its class.

    Parameters
    ----------
    func : callable
        The function that was called.
    types : sequence of type
        Classes of arguments that define this method.
    args : tuple
    kwargs : dict, optional

    Returns
    -------
    object
        The result, with Tensors of the class `cls`; NotImplemented if one of `types` is not a base of `cls`.
    """
    for other in types:
        if not issubclass(cls, other):
            return NotImplemented
    with Disabled():
        result = func(*args, **({} if kwargs is None else kwargs))
    return become(result, cls) if cls is not Tensor else result


# --------------------------------------------------------------------------------------------------------------- boxing

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8(object) except NULL
    PyObject *Py_False
    PyObject *Py_True

cdef object _index = _python_operator.index

cdef enum:
    FITS = FITS_INTEGER | FITS_HALF | FITS_SINGLE


cdef list box(Operator operator, PyObject **arguments, frame_t *frame):
    cdef const operator_t *op = operator.descriptor
    cdef const argument_t *argument
    cdef value_t *value
    cdef PyObject *given
    cdef int i, kind, categories = 0         # bits
    cdef bint others = False, done = False
    cdef list made = None
    frame.n = frame.used = 0
    frame.overridden = frame.storage_only = False
    try:
        for i in range(op.n_arguments):
            argument = &op.arguments[i]
            kind = argument.kind
            value = &frame.values[i]
            value.kind = NOTHING
            frame.objects[i] = NULL
            frame.n = i + 1
            given = arguments[i]
            if kind <= OPERAND and kind != TENSORS and is_plain_object(given):
                value.of.array = held_array(<Tensor>given)
                value.kind = ARRAY
                frame.objects[i] = given
                others |= value.of.array.dtype >= FLOAT16
                categories |= 1 << category(value.of.array.dtype)
            elif kind == INT and type_of(given) == <PyObject *>int:
                value.of.integer = <object>given
                value.kind = INTEGER
            elif kind == BOOL_ and (given == Py_False or given == Py_True):
                value.of.integer = given == Py_True
                value.kind = BOOLEAN
            elif given != <PyObject *>None or kind == TENSORS or not argument.optional:
                made = _box_argument(operator, argument, <object>given, frame, i, made)
                others |= (value.kind == ARRAY or value.kind == ARRAYS or value.kind == DTYPE
                           or (op.flags & FITS) != 0 and not fabs(as_real(value)) < 128)
        if not frame.overridden:
            if unlikely(others or op.flags // REFUSES_BOOL & categories):
                _check_dtypes(op, frame)
            if op.arguments[0].kind == OPERAND and not categories and _only_numbers(frame):
                _check_numbers(operator)
        done = True
    finally:
        if not done:
            unbox(frame)
            _name_overflow(operator, frame.n - 1, arguments[frame.n - 1])
    return made


cdef int _name_overflow(Operator operator, int position, PyObject *given) except -1:
    """Name operator and argument if the exception that is being raised says that an integer does not fit 64 bits."""
    cdef int kind = operator.descriptor.arguments[position].kind
    error = sys.exc_info()[1]
    if type(error) is OverflowError:
        instead = "a smaller one" if kind in (INT, INTS) else "a float"
        error.args = (f"{called_operation(operator.name)}: argument '{<object>operator.parameters[position]}' does not "
                      f"fit 64 bits (Overflow when unpacking long, got {<object>given}). Use {instead}.",)
    return 0


cdef inline bint _only_numbers(const frame_t *frame) noexcept:
    cdef int i
    for i in range(frame.n):
        if frame.objects[i] != NULL:
            return False
    return True


# Operators that accept all-scalar arguments; others need a Tensor.
_of_numbers = frozenset(["add", "add_scaled", "sub", "sub_scaled", "mul", "div", "trunc_divide", "floor_divide"])


cdef int _check_numbers(Operator operator) except -1:
    if operator.name not in _of_numbers:
        raise TypeError(f"{called_operation(operator.name)}: expected a Tensor among the arguments (got only numbers). "
                        "Convert one with tensor().")
    return 0


cdef int[4] _refusals = [REFUSES_BOOL, REFUSES_INTEGERS, REFUSES_REALS, REFUSES_COMPLEX]      # by category
_no_differences = frozenset([b"neg", b"sub", b"sub_scaled", b"rsub"])       # of bools, as in NumPy
_kinds = ("bool", "integer", "real", "complex")


cdef int _check_dtypes(const operator_t *op, frame_t *frame) except -1:
    """
    Check for storage-only dtypes, and raise an error for tensors whose common dtype has a category that the operator
    does not
    support.
    """
    cdef int i, dtype, highest = -1
    for i in range(frame.n):
        if frame.values[i].kind == ARRAY:
            dtype = frame.values[i].of.array.dtype
            if dtype >= FLOAT16:
                frame.storage_only = True
            if highest < 0 or dtype != highest and category(dtype) > category(highest):
                highest = dtype
        elif frame.values[i].kind in (ARRAYS, DTYPE) and any_storage_only(&frame.values[i], 1):
            frame.storage_only = True
    if highest >= 0 and op.flags & FITS:
        _check_range(op, frame)
    if highest < 0 or not op.flags & _refusals[category(highest)]:
        return 0
    if category(highest) == 0 and op.name in _no_differences:
        raise RuntimeError(f"{op.name.decode()}: is not supported for bool tensors. Use logical_not() or "
                           "logical_xor(), or convert with to() first.")
    accepted = ", ".join([_kinds[i] for i in range(4) if not op.flags & _refusals[i]])
    raise NotImplementedError(f"{called_operation(op.name.decode())}: not implemented for "
                              f"{dtype_name(highest).decode()} (expected a "
                              f"dtype that is {accepted}). Convert with to() first.")


cdef int _check_range(const operator_t *op, frame_t *frame) except -1:
    """Raise an error if a number is out of the range of the dtype in which it is computed (see FITS_INTEGER)."""
    cdef int i, dtype = -1, kind = OPERAND
    cdef bint floating = False
    for i in range(frame.n):
        floating |= frame.values[i].kind == REAL or frame.values[i].kind == COMPLEX
        if op.arguments[i].kind in (NUMBER, FLOAT):         # operands wrap around then, as in add
            kind = op.arguments[i].kind
        if frame.values[i].kind == ARRAY:
            dtype = frame.values[i].of.array.dtype if dtype < 0 else promote(dtype, frame.values[i].of.array.dtype)
    if not op.flags & (FITS_INTEGER if category(dtype) <= INTEGRAL else FITS_SINGLE):
        return 0
    if is_short(dtype) and category(dtype) > INTEGRAL and not op.flags & FITS_HALF:
        dtype = FLOAT32
    if floating and category(dtype) <= INTEGRAL and not (kind != OPERAND and op.flags & FITS_HALF):
        if not op.flags & FITS_SINGLE:
            return 0
        dtype = FLOAT32 if is_short(default_float()) else default_float()       # that of the result
    for i in range(frame.n):
        if INTEGER <= frame.values[i].kind <= REAL and op.arguments[i].kind == kind:
            _check_number(op.name.decode(), &frame.values[i], dtype)
    return 0


cdef int _check_number(str operation, const value_t *number, int dtype) except -1:
    return 0 if is_representable(number, dtype) else check(
        check_fits(called_operation(operation).encode(), number, dtype))


def check_numbers(str operation, object dtype, *numbers, bint wraps=True):
    """Raise RuntimeError if a number is out of the range of a dtype; `wraps`: unsigned ones take negative numbers."""
    cdef int code = dtype_code(dtype, operation)
    cdef value_t value
    for number in numbers:
        if box_number(number, &value) and value.kind <= REAL:
            check(check_fits(operation.encode(), &value, code, wraps))


_comparisons = frozenset(["eq", "ge", "gt", "le", "lt", "ne"])


cdef int _bound(value_t *value, int dtype) noexcept:
    """Replace an integer outside the range of the dtype by an infinity, because a cast would wrap around."""
    cdef int bits = 8 * itemsize(dtype) - (not is_unsigned(dtype))
    cdef int64_t low = 0 if is_unsigned(dtype) else -(<int64_t>1 << bits)
    if is_integral(dtype) and dtype != INT64 and (
            value.of.integer < low or bits < 63 and value.of.integer >> bits > 0):
        value.of.real = INFINITY if value.of.integer > 0 else -INFINITY
        value.kind = REAL
    return 0


cdef list _box_argument(Operator operator, const argument_t *argument, object given, frame_t *frame, int place,
                        list made):
    cdef value_t *value = &frame.values[place]
    cdef PyObject **slot = &frame.objects[place]
    cdef bint *overridden = &frame.overridden
    cdef int kind = argument.kind
    if given is None:
        raise _type_error(operator, argument, given)
    if kind == TENSOR or kind == OPERAND:
        if isinstance(given, Tensor):
            if not is_plain(given) and overrides(given):
                overridden[0] = True
            value.kind = ARRAY
            value.of.array = held_array(<Tensor>given)
            slot[0] = <PyObject *>given
            return made
        if kind == OPERAND and box_number(given, value):
            if place and value.kind == INTEGER and frame.values[0].kind == ARRAY and operator.name in _comparisons:
                _bound(value, frame.values[0].of.array.dtype)
            return made
        if isinstance(given, np.ndarray):
            made = [] if made is None else made
            given = as_tensor(given, operator.name)
            made.append(given)
            value.kind = ARRAY
            value.of.array = held_array(<Tensor>given)
            slot[0] = <PyObject *>given
            return made
    elif kind == TENSORS:
        if isinstance(given, (list, tuple)):
            return _box_tensors(operator, argument, given, value, slot, made, overridden)
    elif kind == NUMBER:
        if box_number(given, value):
            return made
        if isinstance(given, Tensor) and (<Tensor>given).array.size == 1 and not given.requires_grad:
            box_number(given.item(), value)
            return made
    elif kind == FLOAT:
        boxed = box_number(given, value)
        if not boxed and isinstance(given, Tensor) and (<Tensor>given).array.ndim == 0 and not given.requires_grad:
            boxed = box_number(given.item(), value)
        if boxed and value.kind != COMPLEX:
            if value.kind != REAL:
                value.of.real = <double>value.of.integer
                value.kind = REAL
            return made
    elif kind == INT:
        value.of.integer = _integer(operator, argument, given)
        value.kind = INTEGER
        return made
    elif kind == INTS:
        _box_integers(operator, argument, given, frame, value)
        return made
    elif kind == BOOL_:
        if isinstance(given, (bool, int, np.bool_)):
            value.kind = BOOLEAN
            value.of.integer = 1 if given else 0
            return made
    elif kind == DTYPE_:
        value.of.integer = dtype_code(given, operator.name)
        value.kind = DTYPE
        return made
    elif kind == STRING:
        if PyUnicode_Check(given):
            value.kind = TEXT
            value.of.text = PyUnicode_AsUTF8(_interned.setdefault(given, given))
            return made
    if kind <= OPERAND and overrides(given):
        overridden[0] = True
        return made
    raise _type_error(operator, argument, given)


cdef dict _interned = {}          # every str that was ever boxed: TEXT values point into these


cdef list _box_tensors(Operator operator, const argument_t *argument, object given, value_t *value,
                       PyObject **slot, list made, bint *overridden):
    cdef tuple entries = tuple(given)       # a snapshot: converting an entry may change the list
    cdef int i
    cdef list tensors = [None] * len(entries)
    check(set_arrays(value, <int>len(entries)))
    for i in range(len(entries)):
        item = entries[i]
        if item is None and argument.optional:
            continue
        if not isinstance(item, Tensor):
            if overrides(item):
                overridden[0] = True
                continue
            if not isinstance(item, np.ndarray):
                raise TypeError(f"{called_operation(operator.name)}: argument '{_public_name(argument)}' must hold "
                                f"Tensors (got {type(item).__name__} at position {i}).")
            item = as_tensor(item, operator.name)
        elif not is_plain(item) and overrides(item):
            overridden[0] = True
        tensors[i] = item
        value.of.arrays[i] = held_array(<Tensor>item)
    if made is None:
        made = [tensors]
    else:
        made.append(tensors)
    slot[0] = <PyObject *>tensors
    return made


cdef int64_t _integer(Operator operator, const argument_t *argument, object given) except? -1:
    if PyLong_CheckExact(given):
        return given
    if isinstance(given, (bool, np.bool_)):       # x.sum(True) is not a sum along dimension 1
        raise _type_error(operator, argument, given)
    if isinstance(given, Tensor):
        if (<Tensor>given).array.size != 1 or category((<Tensor>given).array.dtype) > INTEGRAL:
            raise _type_error(operator, argument, given)
        return given.item()
    try:
        return _index(given)
    except TypeError:
        raise _type_error(operator, argument, given) from None


cdef inline int _new_integers(frame_t *frame, value_t *value, int n) except -1:
    """Allocate a list of integers to be set."""
    if n == 0 or n > <int>INTEGER_CAPACITY - frame.used:
        return check(set_integers(value, n, NULL))
    value.kind = INTEGERS
    value.count = n
    value.of.integers = &frame.integers[frame.used]
    frame.used += n
    return 0


cdef int _box_integers(Operator operator, const argument_t *argument, object given, frame_t *frame,
                       value_t *value) except -1:
    cdef int64_t single
    cdef int i, n
    cdef tuple entries
    if isinstance(given, (list, tuple)):
        entries = tuple(given)              # a snapshot: converting an entry may change the list
        n = <int>len(entries)
        _new_integers(frame, value, n)
        for i in range(n):
            item = entries[i]
            value.of.integers[i] = item if PyLong_CheckExact(item) else _integer(operator, argument, item)
        return 0
    if isinstance(given, (np.ndarray, Tensor)) and given.ndim:
        if given.ndim > 1:
            raise _type_error(operator, argument, given)
        return _box_integers(operator, argument, given.tolist(), frame, value)
    single = _integer(operator, argument, given)
    _new_integers(frame, value, 1)
    value.of.integers[0] = single
    return 0


cdef bint box_number(object number, value_t *value) except -1:
    cdef int overflow = 0
    if PyFloat_Check(number):
        value.kind = REAL
        value.of.real = PyFloat_AS_DOUBLE(number)
        return True
    if PyLong_Check(number):
        if number is True or number is False:
            value.kind = BOOLEAN
            value.of.integer = number is True
            return True
        value.of.integer = PyLong_AsLongLongAndOverflow(number, &overflow)
        if overflow:
            raise OverflowError(f"a Python int does not fit 64 bits (got {number}). Use a float.")
        value.kind = INTEGER
        return True
    if PyComplex_Check(number):
        value.kind = COMPLEX
        value.of.real = PyComplex_RealAsDouble(number)
        value.imag = PyComplex_ImagAsDouble(number)
        return True
    if isinstance(number, np.generic):
        plain = number.item()
        if isinstance(plain, np.generic):        # more precise than Python's numbers
            plain = complex(plain) if isinstance(plain, np.complexfloating) else float(plain)
        return box_number(plain, value)
    return False


cdef str _public_name(const argument_t *argument):
    """Return the public parameter name: `self` of a row is `input` of a function."""
    cdef str name = argument.name.decode()
    return "input" if name == "self" else name


cdef object _type_error(Operator operator, const argument_t *argument, object given):
    expected = _expected[argument.kind] + (" or None" if argument.optional else "")
    return TypeError(f"{called_operation(operator.name)}: argument '{_public_name(argument)}' must be {expected} "
                     f"(got {type(given).__name__}).")


cdef dict _expected = {
    TENSOR: "a Tensor", TENSORS: "a list or tuple of Tensors", OPERAND: "a Tensor or a number", NUMBER: "a number",
    INT: "an int", INTS: "an int or a sequence of ints", BOOL_: "a bool", FLOAT: "a real number",
    DTYPE_: "a dtype", STRING: "a str"}


cdef object plain_object(const value_t *value):
    cdef int i
    if value.kind == BOOLEAN:
        return bool(value.of.integer)
    if value.kind == INTEGER:
        return value.of.integer
    if value.kind == REAL:
        return value.of.real
    if value.kind == COMPLEX:
        return complex(value.of.real, value.imag)
    if value.kind == INTEGERS:
        return tuple([value.of.integers[i] for i in range(value.count)])
    if value.kind == DTYPE:
        return dtype_object(<int>value.of.integer)
    if value.kind == TEXT:
        return value.of.text.decode()
    return None


# ------------------------------------------------------------------------------------------------------- argument zeros

# Zero second derivatives for operators whose gradients do not depend on the arguments.
#
# The gradient of relu is locally constant in the argument, so its derivative is zero. Formulas do not express that, and
# their result would not require grad. This node does both.

cdef list count_arguments(node_t *node, list gradients):
    cdef int i
    cdef Tensor place
    cdef list places = []
    if not grad_enabled() or thread_state().dual_level:
        return gradients
    for i in range(node.n_edges):
        if node.edges[i].node == NULL:
            continue
        if node.metas != NULL and node.metas[i] != NULL:
            place = wrap(array_meta(node.metas[i]))
        elif type(gradients[i]) is Tensor:                  # of the shape of the argument, because no other is known
            place = wrap(array_meta((<Tensor>gradients[i]).array))
        else:
            continue
        place.node = <Node>node.edges[i].node.object
        place.output_nr = node.edges[i].input_nr
        places.append(place)
    function = importlib.import_module("cygrad.autograd.zeros").ArgumentZeros
    return [function.apply(gradient, *places) if type(gradient) is Tensor else gradient for gradient in gradients]
