"""
NumPy's ufuncs on Tensors: a row for each, NumPy's promotion, and the arguments of calls.

Python's operators between an ndarray and a Tensor come here, too, and cannot be told from calls. So for the ufuncs of
operators an ndarray or a NumPy scalar with a Tensor means what it means to the Tensor's own operator:
``numpy.multiply(array, tensor)`` is ``array * tensor`` and ``tensor * array``.
"""

import sys

import numpy as np

import cygrad
from cygrad import Tensor, composite, special
from cygrad._core.table.operator import Operator, operators
from cygrad.numpy_protocols.arrays import (
    NUMBERS,
    NotNumeric,
    as_tensor,
    by_bits,
    cast,
    full_name,
    has_history,
    numpy_dtype,
    our_dtype,
    plain_arrays,
)
from cygrad.numpy_protocols.outputs import write

__all__ = ["SLOTS", "UFUNCS", "call", "general", "row_of"]


def _cbrt(x):
    return cygrad.sign(x) * cygrad.abs(x) ** (1 / 3)


def _divmod(x, y):
    return cygrad.floor_divide(x, y), cygrad.remainder(x, y)


def _modf(x):
    whole = cygrad.trunc(x)
    return cygrad.where(cygrad.isinf(x), cygrad.copysign(cygrad.zeros_like(x), x), x - whole), whole


def _reciprocal(x):
    return operators.reciprocal(x) if x.is_floating_point() or x.is_complex() else cygrad.div(
        1, x, rounding_mode="trunc")


def _sign(x):
    result = cygrad.sgn(x)
    return cygrad.where(cygrad.isnan(x), x.detach(), result) if x.is_floating_point() else result


def _matmul(x, y):
    return by_bits(cygrad.matmul, x, y)


def _vecdot(x, y):
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"vecdot: vectors must have the same length (got shapes {tuple(x.shape)} and "
                         f"{tuple(y.shape)}).")
    return cast((cygrad.conj(x) * y).sum(-1), x.dtype)


# Functions of Tensors of the dtypes that NumPy promotes to: rows with the key `numpy`, and compositions of rows.
UFUNCS = {
    **{getattr(np, name): operator for operator in vars(operators).values() if isinstance(operator, Operator)
       and not operator.is_inplace for name in operator.row["numpy"]},
    np.sign: _sign, np.cbrt: _cbrt, np.divmod: _divmod, np.modf: _modf, np.reciprocal: _reciprocal, np.vecdot: _vecdot,
    np.matmul: _matmul,
    np.frexp: composite.FUNCTIONS["frexp"], np.ldexp: composite.FUNCTIONS["ldexp"],
}
if hasattr(np, "matvec"):
    UFUNCS[np.matvec] = lambda x, y: cygrad.matmul(x, y.unsqueeze(-1)).squeeze(-1)
    UFUNCS[np.vecmat] = lambda x, y: cygrad.matmul(cygrad.conj(x).unsqueeze(-2), y).squeeze(-2)
# Those of scipy.special, by name.
_OF_SCIPY = """
    digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e i1 i1e j0:bessel_j0
    j1:bessel_j1 k0:modified_bessel_k0 k0e:scaled_modified_bessel_k0 k1:modified_bessel_k1 k1e:scaled_modified_bessel_k1
    log1p log_ndtr logit ndtr ndtri psi:digamma xlog1py xlogy y0:bessel_y0 y1:bessel_y1
"""
# Ufuncs of Python's operators: the methods with a Tensor on the left and on the right.
_OPERATORS = """
    add:add:radd subtract:sub:rsub multiply:mul:rmul divide:truediv:rtruediv floor_divide:floordiv:rfloordiv
    remainder:mod:rmod power:pow:rpow matmul:matmul:rmatmul bitwise_and:and:rand bitwise_or:or:ror bitwise_xor:xor:rxor
    left_shift:lshift:rlshift right_shift:rshift:rrshift less:lt:gt less_equal:le:ge greater:gt:lt greater_equal:ge:le
    equal:eq:eq not_equal:ne:ne
"""
SLOTS = {getattr(np, name): (getattr(Tensor, f"__{slot}__"), getattr(Tensor, f"__{reflected}__"))
         for name, slot, reflected in (names.split(":") for names in _OPERATORS.split())}
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_SCIPY = {name: getattr(special, ours or name)
          for name, _, ours in (names.partition(":") for names in _OF_SCIPY.split())}
_resolved = {}


def _as_operator(ufunc, value, tensor):
    """Return whether the Tensor operator replaces the ufunc for these arguments."""
    return (isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc") or (
        type(value) in (int, float) and isinstance(tensor, Tensor) and (
            tensor.is_floating_point() or (type(value) is int and ufunc in COMPARISONS)))


def general(self, ufunc, method, inputs, options):
    """Compute a ufunc of Tensors whose operands may need promotion, or that is more than a call."""
    if method == "__call__" and not options:
        if ufunc in SLOTS:
            first, second = inputs
            if _as_operator(ufunc, first, second):
                return SLOTS[ufunc][1](second, first)
            if _as_operator(ufunc, second, first):
                return SLOTS[ufunc][0](first, second)
        return call(ufunc, *inputs)
    if not all(isinstance(value, (Tensor, np.ndarray, np.generic, list, tuple, slice, *NUMBERS)) for value in inputs):
        return NotImplemented
    if method == "__call__":
        return call(ufunc, *inputs, **options)
    from cygrad.numpy_protocols import ufunc_methods

    if method not in ufunc_methods.METHODS:
        raise TypeError(f"__array_ufunc__: unknown method of ufuncs (got {method!r}, expected '__call__', "
                        f"{', '.join(map(repr, ufunc_methods.METHODS))}).")
    return ufunc_methods.METHODS[method](ufunc, *inputs, **options)


def row_of(ufunc):
    """Return the function of Tensors for a ufunc, or None."""
    found = UFUNCS.get(ufunc)
    name = ufunc.__name__
    if found is None and name in _SCIPY and getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        found = UFUNCS[ufunc] = _SCIPY[name]
    return found


def call(ufunc, *inputs, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True, **options):
    """
    Compute a ufunc of Tensors, arrays and numbers, with NumPy's promotion.

    Parameters
    ----------
    ufunc : numpy.ufunc
    *inputs : Tensor, ndarray, sequence or number
    out, where, dtype, casting, order, subok
        As NumPy has them; `order` and `subok` change nothing.
    **options
        What else NumPy knows; refused.

    Returns
    -------
    Tensor or tuple of Tensor
    """
    row = row_of(ufunc)
    if options and ufunc in (np.matmul, np.vecdot) and set(options) == {"axis"}:
        inputs = [cygrad.movedim(as_tensor(value), options["axis"], -1) for value in inputs]
        options = {}
    if options:
        raise TypeError(f"{full_name(ufunc)}: not supported for Tensors with {', '.join(sorted(options))}.")
    if row is None:
        return _without_row(ufunc, inputs, {"out": out, "where": where, "dtype": dtype, "casting": casting})
    try:
        operands = [value if isinstance(value, Tensor) or type(value) in NUMBERS else as_tensor(value)
                    for value in inputs]
    except NotNumeric:
        return _without_row(ufunc, inputs, {"out": out, "where": where, "dtype": dtype, "casting": casting})
    computed, given = _dtypes(ufunc, operands, dtype, casting)
    operands = [cast(value, wanted) if isinstance(value, Tensor) else cygrad.full((), value, dtype=wanted)
                for value, wanted in zip(operands, computed, strict=True)]
    if where is not True:
        return _where(ufunc, row, operands, given, as_tensor(where), out, casting)
    result = row(*operands)
    result = (tuple(map(cast, result, given)) if isinstance(result, tuple) else cast(result, given[0]))
    return result if out is None else write(full_name(ufunc), result, out if ufunc.nout > 1 else out[0], casting)


def _dtypes(ufunc, operands, dtype, casting):
    """Return the dtypes of operands and result, as in NumPy's loops."""
    key = (ufunc, dtype, casting, *[value.dtype if isinstance(value, Tensor) else type(value) for value in operands])
    found = _resolved.get(key)
    if found is None:
        kinds = [numpy_dtype(value) if isinstance(value, Tensor) else np.dtype(bool) if type(value) is bool
                 else type(value) for value in operands]
        if all(kind in NUMBERS for kind in kinds):
            kinds = list(map(np.dtype, kinds))
        if dtype is None:
            loop = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), casting=casting)
        else:
            wanted = np.dtype(our_dtype(dtype).name)
            loop = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), casting=casting,
                                        signature=(*[None] * ufunc.nin, *[wanted] * ufunc.nout))
        loop = list(map(our_dtype, loop))
        found = _resolved[key] = loop[:ufunc.nin], loop[ufunc.nin:]
    return found


def _where(ufunc, row, operands, given, where, out, casting):
    """Compute only where the mask is true: elsewhere `out` is kept, and has no derivative."""
    if ufunc.nout > 1 or ufunc.signature is not None:
        raise TypeError(f"{full_name(ufunc)}: not supported for Tensors with where.")
    shape = cygrad.broadcast_shapes(where.shape, *[value.shape for value in operands])
    where = where.expand(shape)
    chosen = cast(row(*[value.expand(shape)[where] for value in operands]), given[0])
    if out is None or out[0] is None:
        start = cygrad.zeros(shape, dtype=chosen.dtype)
    else:
        start = as_tensor(out[0])
        if not np.can_cast(numpy_dtype(chosen), numpy_dtype(start), casting):
            raise TypeError(f"{full_name(ufunc)}: the result cannot be cast to out (got a result of {chosen.dtype} and "
                            f"an out of {start.dtype}, with casting {casting!r}).")
    result = start.clone().index_put_((where,), cast(chosen, start.dtype))
    return result if out is None or out[0] is None else write(full_name(ufunc), result, out[0], casting)


def _without_row(ufunc, inputs, options):
    options = {name: value for name, value in options.items() if value is not None}
    if has_history(inputs):
        raise TypeError(f"{full_name(ufunc)}: is not supported, and a tensor that requires grad would lose its "
                        "history as a NumPy array. Use supported functions, or detach().")
    if any(isinstance(target, Tensor) for target in options.get("out", ())):
        raise TypeError(f"{full_name(ufunc)}: is not supported and cannot write into a Tensor. Pass an ndarray as out.")
    return ufunc(*plain_arrays(tuple(inputs)), **options)
