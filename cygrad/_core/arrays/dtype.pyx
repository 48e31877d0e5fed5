# distutils: extra_compile_args = -O1
"""Element types: their codes, sizes, names and promotion."""

cimport cython

import numpy as np


cdef const char *_names[<int>DTYPES]
_names[:] = [b"bool", b"uint8", b"int8", b"int16", b"int32", b"int64",
             b"float32", b"float64", b"complex64", b"complex128",
             b"float16", b"bfloat16", b"complex32", b"uint16", b"uint32", b"uint64"]
cdef const char *_unknown = b"?"
# NPY_TYPES numbers; int64 is NPY_LONG on platforms with 64-bit long, NPY_LONGLONG elsewhere.
cdef int[<int>DTYPES] _typenums
cdef int[24] _codes
cdef Py_hash_t[<int>DTYPES] _hashes      # hashes of NumPy's dtypes, to which ours compare equal
default_float_code = FLOAT32
cdef str _library = "cygrad"
cdef frozenset _NUMPY_ATTRIBUTES = frozenset(("alignment", "byteorder", "char", "fields", "hasobject", "kind", "names",
                                              "num", "str", "subdtype", "type"))


cdef int default_complex() noexcept nogil:
    return complex_of(default_float_code)


cdef const char *dtype_name(int d) noexcept nogil:
    return _names[d] if 0 <= d < DTYPES else _unknown


cdef bint promotable(int a, int b) noexcept nogil:
    cdef int high = a if a > b else b, low = b if a > b else a
    return high != UINT64 or not INT8 <= low <= INT64


cdef int promote(int a, int b) noexcept nogil:
    cdef int high = a if a > b else b, low = b if a > b else a
    if a == b:
        return a
    if category(a) != category(b) and not (is_complex(a) or is_complex(b)):
        return a if category(a) > category(b) else b
    if is_complex(a) or is_complex(b):
        # complex64 with float64 promotes to complex128.
        return complex_of(_promote_floats(real_of(a), real_of(b)))
    if is_floating(a):
        return _promote_floats(a, b)
    # Codes are ordered by size, except unsigned ones: uint8 with int8 needs int16, and the others, which come last,
    # need twice as many bits.
    if high < UINT16:
        return INT16 if low == UINT8 and high == INT8 else high
    return high if is_unsigned(low) else INT32 if high == UINT16 and low <= INT32 else INT64


cdef int _promote_floats(int a, int b) noexcept nogil:
    """Promote two dtypes of which one is floating."""
    if a == b or not is_floating(b):
        return a
    if not is_floating(a):
        return b
    return FLOAT64 if a == FLOAT64 or b == FLOAT64 else FLOAT32


@cython.binding(False)      # methods check the type of self
cdef class dtype:
    """
    The type of a tensor's elements, such as ``cygrad.float32``.

    There is one object for each type; it converts to and compares equal with the NumPy dtype.

    Attributes
    ----------
    name : str
        ``"float32"``.
    itemsize : int
        Bytes per element.

    Examples
    --------
    >>> cygrad.float32.itemsize, cygrad.float32.is_floating_point
    (4, True)
    """

    def __init__(self):
        raise TypeError("dtype: cannot be created; use cygrad.float32, cygrad.int64, ...")

    def __repr__(self):
        return f"{_library}.{self.name}"

    def __reduce__(self):
        return _dtype_by_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __eq__(self, other):
        if isinstance(other, dtype):
            return self is other
        if isinstance(other, np.dtype) or isinstance(other, type) and issubclass(other, np.generic):
            return _typenums[self.code] >= 0 and self.numpy_dtype == other
        return NotImplemented

    def __hash__(self):
        return _hashes[self.code]

    @property
    def numpy_dtype(self):
        """Return the NumPy dtype of the same elements; raise TypeError where there is none."""
        if _typenums[self.code] < 0:
            _no_numpy_dtype(self.name)
        return np.dtype(self.name)

    @property
    def __numpy_dtype__(self):
        """Convert for ``numpy.dtype()`` and the ``dtype=`` arguments of NumPy's functions."""
        return self.numpy_dtype

    def __getattr__(self, name):
        """Look up attributes of NumPy dtypes; NumPy before 2.4 asks for ``dtype`` instead of ``__numpy_dtype__``."""
        if name == "dtype" and _typenums[self.code] >= 0:
            return self.numpy_dtype
        if name == "kind" and _typenums[self.code] < 0:
            return "c" if self.is_complex else "f"
        if name not in _NUMPY_ATTRIBUTES or _typenums[self.code] < 0:
            raise AttributeError(f"'cygrad.dtype' object has no attribute {name!r}", name=name, obj=self)
        return getattr(self.numpy_dtype, name)

    @property
    def itemsize(self):
        """Bytes per element."""
        return itemsize(self.code)

    @property
    def is_floating_point(self):
        """True for float16, bfloat16, float32 and float64."""
        return bool(is_floating(self.code))

    @property
    def is_complex(self):
        """True for complex32, complex64 and complex128."""
        return bool(is_complex(self.code))

    @property
    def is_signed(self):
        """True for types with negative values."""
        return self.code != BOOL and not is_unsigned(self.code)

    def to_real(self):
        """The dtype of the real part."""
        return dtype_object(real_of(self.code))

    def to_complex(self):
        """The complex dtype whose parts have this dtype."""
        return dtype_object(complex_of(self.code))


class dtype_without_elements(dtype):
    """A dtype without tensors, for programs that name it and compare with it; using it raises an error."""

    _TYPES = {                  # bits, and f(loating), u(nsigned) or i (integer)
        "float8_e4m3fn": (8, "f"), "float8_e4m3fnuz": (8, "f"), "float8_e5m2": (8, "f"), "float8_e5m2fnuz": (8, "f"),
        "float8_e8m0fnu": (8, "f"),
        "qint8": (8, "i"), "quint8": (8, "u"), "qint32": (32, "i"), "quint4x2": (8, "u"), "quint2x4": (8, "u"),
    }

    numpy_dtype = property(lambda self: _no_numpy_dtype(self.name), doc="NumPy has none of these: a TypeError.")

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash(self.name)

    itemsize = property(lambda self: self._TYPES[self.name][0] // 8, doc="Bytes per element.")
    is_floating_point = property(lambda self: self._TYPES[self.name][1] == "f", doc="True for floating types.")
    is_complex = property(lambda self: False, doc="True for complex types.")
    is_signed = property(lambda self: self._TYPES[self.name][1] != "u", doc="True for types with negative values.")

    def to_real(self):
        """The dtype of the real part."""
        return self

    def to_complex(self):
        """The complex dtype whose parts have this dtype: there is none, so itself."""
        return self


def _no_numpy_dtype(name):
    raise TypeError(f"numpy_dtype: NumPy has no dtype {name}. Convert with float() or to() first.")


cdef list _objects = []
cdef dict _lookup = {}           # NumPy dtype -> ours
cdef dict _by_name = {}
cdef dict _without_elements = {}


def _dtype_by_name(name):
    return _without_elements[name] if name in _without_elements else _by_name[name]


def library_name():
    """
    Return the module name that the repr of dtypes begins with: ``"cygrad"``, or that of the library it stands in for.
    """
    return _library


def set_library_name(str name not None):
    """Set the module name that the repr of dtypes begins with."""
    global _library
    _library = name


cdef int _refuse_elements(dtype value, str operation) except -1:
    raise TypeError(f"{operation}: {value.name} is not supported for tensors (got {value!r}). Use "
                    f"{'float32' if value.is_floating_point else 'int64'}.")


cdef dtype dtype_object(int code):
    return _objects[code]


cdef int dtype_code(object value, str operation) except -1:
    if isinstance(value, dtype):
        if (<dtype>value).code >= DTYPES:
            _refuse_elements(<dtype>value, operation)
        return (<dtype>value).code
    try:
        found = _lookup.get(np.dtype(value)) if value is not None else None
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise TypeError(f"{operation}: not a supported dtype (got {value!r}, expected one of "
                        f"{', '.join(d.name for d in _objects)}). Convert with astype() first.")
    return (<dtype>found).code


cdef int numpy_typenum(int code) noexcept nogil:
    return _typenums[code]


cdef int code_of_typenum(int typenum) noexcept nogil:
    return _codes[typenum] if 0 <= typenum < 24 else -1


def set_default_dtype(d):
    """
    Set the floating dtype that new tensors get when none is given.

    Parameters
    ----------
    d : dtype
        ``cygrad.float32``, ``cygrad.float64``, ``cygrad.float16`` or ``cygrad.bfloat16``.

    Raises
    ------
    TypeError
        If `d` is not a floating dtype.

    Examples
    --------
    >>> cygrad.set_default_dtype(cygrad.float64)
    >>> cygrad.tensor([1.0]).dtype
    cygrad.float64
    >>> cygrad.set_default_dtype(cygrad.float32)
    """
    global default_float_code
    cdef int code = dtype_code(d, "set_default_dtype")
    if not is_floating(code):
        raise TypeError(f"set_default_dtype: only floating dtypes can be the default "
                        f"(got {d!r}, expected float32, float64, float16 or bfloat16)")
    default_float_code = code


def get_default_dtype():
    """
    Return the floating dtype that new tensors get when none is given.

    Returns
    -------
    dtype

    Examples
    --------
    >>> cygrad.get_default_dtype()
    cygrad.float32
    """
    return dtype_object(default_float_code)


def promote_types(a, b):
    """
    Return the smallest dtype that holds the values of both.

    Parameters
    ----------
    a, b : dtype

    Returns
    -------
    dtype

    Examples
    --------
    >>> cygrad.promote_types(cygrad.int64, cygrad.float32)
    cygrad.float32
    """
    cdef int first = dtype_code(a, "promote_types"), second = dtype_code(b, "promote_types")
    if not promotable(first, second):
        raise RuntimeError("promote_types: no integer type holds uint64 and signed integers (got "
                           f"{dtype_object(first)} and {dtype_object(second)}). Convert one with to() first.")
    return dtype_object(promote(first, second))


def _initialize():
    cdef int code
    cdef dtype entry
    for code in range(24):
        _codes[code] = -1
    for code in range(DTYPES):
        entry = dtype.__new__(dtype)
        entry.code = code
        entry.name = _names[code].decode()
        _objects.append(entry)
        _by_name[entry.name] = entry
        _typenums[code] = -1
        if code != BFLOAT16 and code != COMPLEX32:             # NumPy does not have it
            _lookup[np.dtype(entry.name)] = entry
            _typenums[code] = np.dtype(entry.name).num
            _codes[_typenums[code]] = code
        _hashes[code] = hash(entry.name if _typenums[code] < 0 else np.dtype(entry.name))
        globals()[entry.name] = entry
    for name in dtype_without_elements._TYPES:
        entry = dtype.__new__(dtype_without_elements)
        entry.code = DTYPES
        entry.name = name
        _without_elements[name] = globals()[name] = entry
    # long and long long are both 64 bits wide on Linux: accept either number.
    for name in ("longlong", "long", "intc", "ulonglong", "ulong", "uintc"):
        if np.dtype(name) in _lookup:
            _codes[np.dtype(name).num] = (<dtype>_lookup[np.dtype(name)]).code


_initialize()
