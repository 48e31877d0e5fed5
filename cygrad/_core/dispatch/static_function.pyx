"""Python functions that do not bind as methods."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    object PyObject_Call(object function, object args, PyObject *kwargs)


cdef class StaticFunction:
    """
    A function without ``__get__``: a class attribute that stays a function, like a built-in function.

    Parameters
    ----------
    function : function
        What it calls; all its attributes are found here, too.
    """
    cdef readonly object __wrapped__
    cdef readonly str __doc__

    def __init__(self, function):
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
