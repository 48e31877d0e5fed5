"""
Classes that override operations: subclasses of Tensor, and others with ``__torch_function__``.

When boxing finds such an argument, the class's ``__torch_function__`` handles the call: it gets the function, the
classes, and the arguments. That of Tensor runs the function as usual and converts the result to the class of the
argument.
"""

cimport cython
from cpython.object cimport PyObject
from cygrad._core.table.operator cimport TENSORS, Operator, operator_t
from cygrad._core.graph.meta cimport is_meta
from cygrad._core.graph.tensor cimport Tensor, borrowed_type, protocol
from cygrad._core.graph.tensor_identity cimport held_array, replace_array
from cygrad._core.table.operator import operators

cdef extern from * nogil:
    """
    static __thread int overrides_disabled;
    """
    int overrides_disabled

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        object (*tp_new)(_Type *, object, PyObject *)


def disabled_torch_function(func, types, args=(), kwargs=None):
    """The ``__torch_function__`` of classes whose results are plain Tensors."""
    with Disabled():
        return func(*args, **({} if kwargs is None else kwargs))


cdef object _kept = None           # holds the reference that the protocol borrows


def set_plain_subclass(cls):
    """Set the subclass with plain results that is frequent enough to skip the attribute lookup."""
    global _kept
    _kept = cls
    protocol.plain_subclass = <PyObject *>cls


cdef bint overrides(object value) except -1:
    if borrowed_type(value) == protocol.plain_subclass or overrides_disabled:
        return False
    found = getattr(type(value), "__torch_function__", None)
    return found is not None and found is not disabled_torch_function


cdef bint is_entry(object value) except -1:
    return (type(value) is not Tensor and isinstance(value, Tensor) and is_meta((<Tensor>value).array)
            and overrides(value))


@cython.binding(False)      # methods check the type of self
cdef class Disabled:
    """Treats subclasses of Tensor like Tensor inside the block."""
    cdef int before

    def __enter__(self):
        global overrides_disabled
        self.before = overrides_disabled
        overrides_disabled = 1
        return self

    def __exit__(self, type=None, value=None, traceback=None):
        global overrides_disabled
        overrides_disabled = self.before


def asked_in_turn(values):
    """Return the overriding classes of the values, one of each class, a subclass before its bases."""
    cdef list found = []
    cdef list classes = []
    for value in values:
        if type(value) is Tensor or type(value) in classes or not overrides(value):
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
    asked = asked_in_turn(values)
    types = tuple([type(value) for value in asked])
    for value in asked:
        result = type(value).__torch_function__(function, types, args, kwargs)
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
    """Convert a result, and its items, to the class `cls`; other objects than plain Tensors stay as they are."""
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
        The classes among the arguments that define this method.
    args : tuple
    kwargs : dict, optional

    Returns
    -------
    object
        What the function returns, Tensors in it being of the class `cls`; NotImplemented if one of `types` is not
        among the bases of `cls`.
    """
    for other in types:
        if not issubclass(cls, other):
            return NotImplemented
    with Disabled():
        result = func(*args, **({} if kwargs is None else kwargs))
    return become(result, cls) if cls is not Tensor else result
