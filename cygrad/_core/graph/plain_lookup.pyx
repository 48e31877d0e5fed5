"""
Attributes of classes with a ``__getattr__`` that is there to be called by name.

Python gives a class with ``__getattr__`` a slower way to look up any attribute. Where that method only repeats what the
ordinary lookup has found out, the slower way is for nothing: `look_up_plainly` takes it back.
"""

cdef extern from "Python.h":
    ctypedef object (*_getattro_t)(object, object)
    ctypedef struct _Type "PyTypeObject":
        _getattro_t tp_getattro
    object PyObject_GenericGetAttr(object, object)
    void PyType_Modified(_Type *)


def look_up_plainly(cls, method):
    """Look up attributes of instances as if `cls` had no ``__getattr__``, provided that it is `method`."""
    if isinstance(cls, type) and cls.__getattr__ is method and cls.__getattribute__ is object.__getattribute__:
        (<_Type *>cls).tp_getattro = PyObject_GenericGetAttr
        PyType_Modified(<_Type *>cls)
