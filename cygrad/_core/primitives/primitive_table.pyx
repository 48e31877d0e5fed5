"""
The table of primitives, filled with the inner loops of NumPy's ufuncs.

NumPy chose each loop for this machine's SIMD instructions when it was imported; its loops need no GIL. `typed_loops`
adds what NumPy lacks or computes differently.
"""

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport COMPLEX, REAL
from cygrad._core.arrays.dtype cimport COMPLEX128, DTYPES, FLOAT64, INT64, category, code_of_typenum, is_short

import numpy


# ------------------------------------------------------------------------------------------------------ primitive table

cdef extern from "primitives/ufunc_types.h":
    const char *ufunc_types(void *)

cdef extern from * nogil:
    """
    static __thread int status_of_loops;
    """
    int status_of_loops

cdef dict _indices = {}
cdef list _names = []


cdef int loop_status() noexcept nogil:
    return status_of_loops


cdef void set_loop_status(int status) noexcept nogil:
    global status_of_loops
    status_of_loops = status


cdef int primitive(str name) except -1:
    index = _indices.get(name)
    if index is None:
        raise ValueError(f"primitive: unknown name (got {name!r}, expected one of "
                         f"{', '.join(sorted(_indices))}). Add it to the table in primitive_table.pyx.")
    return index


cdef int primitive_arity(int primitive) noexcept nogil:
    return primitives[primitive].arity


def names():
    """Return the names of all primitives."""
    return list(_indices)


def dtypes_of(str name):
    """Return the codes of the dtypes for which the primitive `name` has a loop."""
    cdef int index = primitive(name), code
    return [code for code in range(DTYPES) if entries[index][code].loop != NULL]


def arity_of(str name):
    """Return the number of operands of the primitive `name`."""
    return primitives[primitive(name)].arity


cdef int define(str name, int arity, type_rule_t rule, int cost, bint exact, int identity) except -1:
    if name in _indices:
        return _indices[name]
    cdef int index = len(_names)
    if index >= MAX_PRIMITIVES:
        raise RuntimeError(f"define: too many primitives for {name!r}. Increase MAX_PRIMITIVES")
    _names.append(name.encode())
    _indices[name] = index
    primitives[index].name = _names[index]
    primitives[index].arity = arity
    primitives[index].rule = rule
    primitives[index].cost = cost
    primitives[index].exact = exact
    primitives[index].identity = identity
    return index


cdef void set_entry(int primitive, int dtype, loop_t loop, void *data, int out_dtype) noexcept:
    entries[primitive][dtype].loop = loop
    entries[primitive][dtype].data = data
    entries[primitive][dtype].out_dtype = out_dtype


cdef int _take(int index, np.ufunc ufunc, str kinds) except -1:
    """Enter the loops of `ufunc` whose inputs all have one dtype, of a kind (b, i, f, c) in `kinds`."""
    cdef int i, k, code
    cdef bint uniform
    cdef const char *types
    for i in range(ufunc.ntypes):
        types = ufunc_types(<void *>ufunc) + i * ufunc.nargs
        code = code_of_typenum(types[0])
        uniform = code >= 0 and code_of_typenum(types[ufunc.nin]) >= 0
        for k in range(1, ufunc.nin):
            uniform = uniform and types[k] == types[0]
        if not uniform or is_short(code) or entries[index][code].loop != NULL:
            continue
        if "bifc"[category(code)] in kinds:
            set_entry(index, code, <loop_t><void *>ufunc.functions[i], ufunc.data[i],
                      code_of_typenum(types[ufunc.nin]))
    return 0


# name, ufunc, rule, kinds of dtype taken from NumPy (bool, integer, float, complex), cost. Kinds left out are those
# that PyTorch refuses, or computes differently (then in typed_loops).
_from_numpy = [
    ("add", "add", SAME, "bifc", 1),
    ("sub", "subtract", SAME, "ifc", 1),
    ("mul", "multiply", SAME, "bifc", 1),
    ("div", "true_divide", FLOAT, "fc", 2),
    ("floor_divide", "floor_divide", SAME, "f", 30),
    ("remainder", "remainder", SAME, "f", 30),
    ("fmod", "fmod", SAME, "f", 30),
    ("neg", "negative", SAME, "ifc", 1),
    ("abs", "absolute", SAME, "ifc", 1),
    ("sign", "sign", SAME, "i", 1),
    ("sgn", "sign", SAME, "ic", 1),
    ("reciprocal", "reciprocal", FLOAT, "fc", 2),
    ("square", "square", SAME, "ifc", 1),
    ("sqrt", "sqrt", FLOAT, "fc", 3),
    ("exp", "exp", FLOAT, "fc", 8),
    ("expm1", "expm1", FLOAT, "fc", 10),
    ("exp2", "exp2", FLOAT, "fc", 8),
    ("log", "log", FLOAT, "fc", 8),
    ("log1p", "log1p", FLOAT, "f", 10),
    ("log2", "log2", FLOAT, "fc", 8),
    ("log10", "log10", FLOAT, "fc", 8),
    ("sin", "sin", FLOAT, "fc", 10),
    ("cos", "cos", FLOAT, "fc", 10),
    ("tan", "tan", FLOAT, "fc", 12),
    ("asin", "arcsin", FLOAT, "fc", 12),
    ("acos", "arccos", FLOAT, "fc", 12),
    ("atan", "arctan", FLOAT, "fc", 12),
    ("atan2", "arctan2", FLOAT, "f", 16),
    ("sinh", "sinh", FLOAT, "fc", 12),
    ("cosh", "cosh", FLOAT, "fc", 12),
    ("tanh", "tanh", FLOAT, "fc", 8),
    ("asinh", "arcsinh", FLOAT, "fc", 12),
    ("acosh", "arccosh", FLOAT, "fc", 12),
    ("atanh", "arctanh", FLOAT, "fc", 12),
    ("floor", "floor", SAME, "f", 1),
    ("ceil", "ceil", SAME, "f", 1),
    ("trunc", "trunc", SAME, "f", 1),
    ("round", "rint", SAME, "f", 1),
    ("maximum", "maximum", SAME, "bif", 1),
    ("minimum", "minimum", SAME, "bif", 1),
    ("fmax", "fmax", SAME, "bif", 1),
    ("fmin", "fmin", SAME, "bif", 1),
    ("pow", "power", SAME, "fc", 20),
    ("eq", "equal", SAME, "bifc", 1),
    ("ne", "not_equal", SAME, "bifc", 1),
    ("lt", "less", SAME, "bif", 1),
    ("le", "less_equal", SAME, "bif", 1),
    ("gt", "greater", SAME, "bif", 1),
    ("ge", "greater_equal", SAME, "bif", 1),
    ("logical_and", "logical_and", SAME, "bifc", 1),
    ("logical_or", "logical_or", SAME, "bifc", 1),
    ("logical_xor", "logical_xor", SAME, "bifc", 1),
    ("logical_not", "logical_not", SAME, "bifc", 1),
    ("bitwise_and", "bitwise_and", SAME, "bi", 1),
    ("bitwise_or", "bitwise_or", SAME, "bi", 1),
    ("bitwise_xor", "bitwise_xor", SAME, "bi", 1),
    ("bitwise_not", "invert", SAME, "bi", 1),
    ("left_shift", "left_shift", SAME, "i", 1),
    ("right_shift", "right_shift", SAME, "i", 1),
    ("isnan", "isnan", SAME, "bifc", 1),
    ("isinf", "isinf", SAME, "bifc", 1),
    ("isfinite", "isfinite", SAME, "bifc", 1),
    ("signbit", "signbit", SAME, "f", 1),
    ("conj", "conjugate", SAME, "c", 1),
    ("logaddexp", "logaddexp", FLOAT, "f", 30),
    ("hypot", "hypot", FLOAT, "f", 10),
    ("copysign", "copysign", FLOAT, "f", 1),
]

# Identities for dtypes up to this one.
_identities = {"conj": FLOAT64, "floor": INT64, "ceil": INT64, "trunc": INT64, "round": INT64}


def _register_ufuncs():
    for name, ufunc_name, rule, kinds, cost in _from_numpy:
        ufunc = getattr(numpy, ufunc_name)
        # Cheap real arithmetic is correctly rounded by any loop; the rest may differ between vector and scalar code
        # (complex products with fused multiply-add among them).
        index = define(name, ufunc.nin, rule, cost, cost <= 3, _identities.get(name, -1))
        _take(index, ufunc, kinds)


_register_ufuncs()


# --------------------------------------------------------------------------------------------------------------- chains

# Several cheap operations on the same elements, block by block, with intermediate values in registers.

cdef extern from "primitives/chains.h" nogil:
    int64_t (*run_steps[2])(const chain_step_t *steps, int64_t count, int64_t n)


cdef int64_t run_chain(bint double_precision, const chain_step_t *steps, int64_t count, int64_t n) noexcept nogil:
    return run_steps[double_precision](steps, count, n)


# ----------------------------------------------------------------------------------------------------------------- cast

cdef extern from "primitives/casts.h" nogil:
    loop_t cast_table[1][<int>DTYPES]

memcpy(cast_loops, cast_table, sizeof(cast_loops))


cdef void number_to_cell(const value_t *number, int dtype, void *cell) noexcept nogil:
    cdef char *arguments[2]
    cdef int64_t one = 1
    cdef int64_t steps[2]
    cdef double[2] parts
    cdef int source = INT64
    steps[0] = steps[1] = 0
    arguments[1] = <char *>cell
    if number.kind >= REAL:
        parts[0] = number.of.real
        parts[1] = number.imag if number.kind == COMPLEX else 0
        source = COMPLEX128
        arguments[0] = <char *>parts
    else:
        arguments[0] = <char *>&number.of.integer
    cast_loops[source][dtype](arguments, &one, steps, NULL)
