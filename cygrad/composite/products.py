"""addmv and others, tensordot, Kronecker and cross products."""

from functools import lru_cache
from math import prod

from cygrad._core.arrays.dtype import promote_types
from cygrad._core.graph.argument_errors import as_dim
from cygrad._core.graph.boxing import check_numbers
from cygrad._core.graph.early_forms import factors_first
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import SHORT, computes_in, in_float32
from cygrad.composite.out_forms import as_tensor_argument, category, inplace, into
from cygrad.composite.shapes import broadcast_shapes

LARGE = 4096                      # elements

__all__ = ["addbmm", "addmv", "addr", "baddbmm", "chain_matmul", "inner", "kron", "tensordot"]

# Shared parameter descriptions.
_PARAMETERS = {
    "beta, alpha": "number, default 1\n    If beta is 0, `input` is ignored, including nan.",
}


# ---- beta * input + alpha * product

def _check_ndim(operation, **tensors):
    for name, (value, ndim) in tensors.items():
        if as_tensor_argument(operation, name, value).ndim != ndim:
            raise RuntimeError(f"{operation}: {name} must have {ndim} dimension{'s' * (ndim > 1)} (got shape "
                               f"{tuple(value.shape)}).")


def _combined(operation, input, product, beta, alpha, out):
    """Return ``beta * input + alpha * product``; do not read `input` if beta is 0."""
    as_tensor_argument(operation, "input", input)
    if not input.is_complex() and (isinstance(alpha, complex) or isinstance(beta, complex)):
        raise RuntimeError(f"{operation}: beta and alpha must be real for Tensors of {input.dtype} (got {beta} and "
                           f"{alpha}). Convert the Tensors first.")
    if operation == "addr" and bool in (type(alpha), type(beta)) and category(input):
        raise RuntimeError(f"addr: Boolean beta and alpha are only for Boolean results (got {beta} and {alpha}).")
    if not (input.is_floating_point() or input.is_complex()):
        if operation == "addr" and (isinstance(alpha, float) or isinstance(beta, float)):
            raise RuntimeError(f"addr: beta and alpha must be integers for integer Tensors (got {beta} and {alpha}).")
        kind = int if category(input) else bool
        beta, alpha = kind(beta), kind(alpha)
    if not (alpha == 1 and beta == 1):
        check_numbers(operation, input.dtype, beta, alpha)
    shape = tuple(product.shape)
    if broadcast_shapes(tuple(input.shape), shape) != shape:
        raise RuntimeError(f"{operation}: input must broadcast to the product (got shapes {tuple(input.shape)} and "
                           f"{shape}).")
    if input.dtype is not product.dtype:
        raise RuntimeError(f"{operation}: expected Tensors of one dtype (got {input.dtype} and {product.dtype}).")
    scaled = product if alpha == 1 else operators.mul(product, alpha)
    if beta == 0:
        if input.requires_grad:                    # record input, with gradient 0
            nothing = operators.masked_fill(input, operators.ne(operators.mul(input.detach(), 0), 1), 0)
            scaled = operators.add(scaled, nothing)
    else:
        scaled = operators.add(input if beta == 1 else operators.mul(input, beta), scaled)
    return into(operation, scaled, out, casts=operation == "addr")


@documented(_PARAMETERS)
def addmv(input, mat, vec, *more, beta=1, alpha=1, out=None):
    """Add a matrix-vector product: ``beta * input + alpha * (mat @ vec)``.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to that of the product.
    mat, vec : Tensor
        Of shape (n, m) and (m,).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.addmv(cygrad.ones(1), cygrad.tensor([[1., 2.]]), cygrad.tensor([3., 4.]))
    tensor([12.])
    """
    if more:
        return factors_first(addmv, (input, mat, vec, *more), ("beta", "alpha"), out=out)
    _check_ndim("addmv", mat=(mat, 2), vec=(vec, 1))
    if mat.dtype in SHORT and input.dtype is mat.dtype is vec.dtype:
        return in_float32(addmv, input, mat, vec, beta=beta, alpha=alpha, out=out)
    return _combined("addmv", input, operators.mv(mat, vec), beta, alpha, out)


@documented(_PARAMETERS)
def addr(input, vec1, vec2, *more, beta=1, alpha=1, out=None):
    """Add an outer product: ``beta * input + alpha * outer(vec1, vec2)``.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to that of the product.
    vec1, vec2 : Tensor
        Vectors.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.addr(cygrad.zeros(2, 2), cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    if more:
        return factors_first(addr, (input, vec1, vec2, *more), ("beta", "alpha"), out=out)
    _check_ndim("addr", vec1=(vec1, 1), vec2=(vec2, 1))
    if vec1.dtype in SHORT and input.dtype is vec1.dtype is vec2.dtype:
        return in_float32(addr, input, vec1, vec2, beta=beta, alpha=alpha, out=out)
    product = operators.outer(vec1, vec2)
    if as_tensor_argument("addr", "input", input).dtype is not product.dtype:
        dtype = promote_types(input.dtype, product.dtype)
        input, product = input.to(dtype), product.to(dtype)
    return _combined("addr", input, product, beta, alpha, out)


@computes_in("lower")
@documented(_PARAMETERS)
def baddbmm(input, batch1, batch2, *more, beta=1, alpha=1, out=None):
    """Add batched matrix products: ``beta * input + alpha * (batch1 @ batch2)``.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to that of the product.
    batch1, batch2 : Tensor
        Of shape (b, n, m) and (b, m, p).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.baddbmm(cygrad.zeros(1), cygrad.ones(1, 1, 2), cygrad.ones(1, 2, 1))
    tensor([[[2.]]])
    """
    if more:
        return factors_first(baddbmm, (input, batch1, batch2, *more), ("beta", "alpha"), out=out)
    _check_ndim("baddbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    if batch1.dtype in SHORT and input.dtype is batch1.dtype is batch2.dtype:
        return in_float32(baddbmm, input, batch1, batch2, beta=beta, alpha=alpha, out=out)
    return _combined("baddbmm", input, operators.bmm(batch1, batch2), beta, alpha, out)


@computes_in("lower")
@documented(_PARAMETERS)
def addbmm(input, batch1, batch2, *more, beta=1, alpha=1, out=None):
    """Add the sum of batched matrix products: ``beta * input + alpha * (batch1 @ batch2).sum(0)``.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to that of the sum.
    batch1, batch2 : Tensor
        Of shape (b, n, m) and (b, m, p).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.addbmm(cygrad.zeros(1), cygrad.ones(3, 1, 2), cygrad.ones(3, 2, 1))
    tensor([[6.]])
    """
    if more:
        return factors_first(addbmm, (input, batch1, batch2, *more), ("beta", "alpha"), out=out)
    _check_ndim("addbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    if batch1.dtype in SHORT and input.dtype is batch1.dtype is batch2.dtype:
        return in_float32(addbmm, input, batch1, batch2, beta=beta, alpha=alpha, out=out)
    product = operators.sum(operators.bmm(batch1, batch2), (0,), dtype=batch1.dtype)
    return _combined("addbmm", input, product, beta, alpha, out)


# ---- chains and contractions

@documented(_PARAMETERS)
def chain_matmul(*matrices, out=None):
    """Return the product of several matrices in the optimal order.

    Parameters
    ----------
    *matrices : Tensor
        Of two dimensions.

    Raises
    ------
    RuntimeError
        If an argument is not a matrix, or sizes do not match.

    Examples
    --------
    >>> cygrad.chain_matmul(cygrad.ones(1, 2), cygrad.ones(2, 3), cygrad.ones(3, 1))
    tensor([[6.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul: expected at least one matrix (got none).")
    for matrix in matrices:
        _check_ndim("chain_matmul", matrix=(matrix, 2))
    # Cost of the product of matrices i to j, and its optimal split (Cormen et al., section 14.2).
    sizes, count = [matrix.shape[0] for matrix in matrices] + [matrices[-1].shape[1]], len(matrices)
    cost, where = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], where[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def product(i, j):
        if i == j:
            return matrices[i]
        k = where[i, j]
        return operators.mm(product(i, k), product(k + 1, j))

    return into("chain_matmul", product(0, count - 1), out)


def _dims_of(dims, a, b):
    """Return the contracted dimensions of both as nonnegative numbers."""
    if hasattr(dims, "tolist"):
        dims = dims.tolist()
    if hasattr(dims, "__index__"):
        count = dims.__index__()
        if count < 0:
            raise RuntimeError(f"tensordot: dims must not be negative (got {count}).")
        if count > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot: too many dims (got {count} for shapes {tuple(a.shape)} and "
                               f"{tuple(b.shape)}).")
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    if not isinstance(dims, (list, tuple)) or len(dims) != 2:
        raise TypeError(f"tensordot: argument 'dims' must be an integer or a pair of lists of integers (got {dims!r}).")
    first, second = (list(part) if isinstance(part, (list, tuple)) else [part] for part in dims)
    for listed, tensor in ((first, a), (second, b)):
        for place, dim in enumerate(listed):
            listed[place] = as_dim("tensordot", dim, tensor.ndim)
    if len(first) != len(second):
        raise RuntimeError(f"tensordot: expected the same number of dims of both (got {len(first)} and {len(second)}).")
    return first, second


def tensordot(a, b, dims=2, out=None):
    """Contract dimensions of two tensors.

    Parameters
    ----------
    a, b : Tensor
    dims : int or two sequences of int, default 2
        Number of last dimensions of `a` and first dimensions of `b` to contract, or the dimensions of both.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        With the other dimensions of `a`, then those of `b`.

    Raises
    ------
    RuntimeError
        If sizes do not match.

    Examples
    --------
    >>> cygrad.tensordot(cygrad.ones(2, 3), cygrad.ones(3, 4), dims=1).shape
    (2, 4)
    """
    as_tensor_argument("tensordot", "a", a)
    as_tensor_argument("tensordot", "b", b)
    first, second = _dims_of(dims, a, b)
    for i, j in zip(first, second, strict=True):
        size, other = a.shape[i], b.shape[j]
        if size != other and 1 not in (size, other):
            raise RuntimeError(f"tensordot: contracted dimensions must match (got sizes {size} and {other}).")
        if size == 1 and other != 1:
            b = operators.sum(b, (j,), True, dtype=b.dtype)
        elif other == 1 and size != 1:
            a = operators.sum(a, (i,), True, dtype=a.dtype)
    rows = [k for k in range(a.ndim) if k not in first]
    columns = [k for k in range(b.ndim) if k not in second]
    shape = tuple(a.shape[k] for k in rows) + tuple(b.shape[k] for k in columns)
    inner = prod(a.shape[k] for k in first)
    left = operators.reshape(operators.permute(a, (*rows, *first)), (prod(a.shape[k] for k in rows), inner))
    right = operators.reshape(operators.permute(b, (*second, *columns)), (inner, prod(b.shape[k] for k in columns)))
    return into("tensordot", operators.reshape(operators.mm(left, right), shape), out)


def inner(input, other, *, out=None):
    """Contract the last dimensions of two tensors, without conjugation.

    Parameters
    ----------
    input, other : Tensor
        With last dimensions of equal size; 0-dimensional tensors multiply.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        With the other dimensions of `input`, then those of `other`.

    Raises
    ------
    RuntimeError
        If the sizes differ.

    Examples
    --------
    >>> cygrad.inner(cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor(11.)
    """
    as_tensor_argument("inner", "input", input)
    as_tensor_argument("inner", "other", other)
    if input.ndim == 0 or other.ndim == 0:
        return into("inner", operators.mul(input, other), out)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner: the last dimensions must match (got shapes {tuple(input.shape)} and "
                           f"{tuple(other.shape)}).")
    return tensordot(input, other, ([input.ndim - 1], [other.ndim - 1]), out=out)


def kron(input, other, *, out=None):
    """Return the Kronecker product: each element of `input` times `other`.

    Parameters
    ----------
    input, other : Tensor
        The one with fewer dimensions gets leading dimensions of size 1.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Each size is the product of the two sizes.

    Examples
    --------
    >>> cygrad.kron(cygrad.eye(2), cygrad.tensor([[1., 2.]]))
    tensor([[1., 2., 0., 0.],
            [0., 0., 1., 2.]])
    """
    as_tensor_argument("kron", "input", input)
    as_tensor_argument("kron", "other", other)
    shape, own, rows, repeated = _kron_shapes(tuple(input.shape), tuple(other.shape))
    factors = [operators.reshape(*pair) for pair in zip((input, other), own, strict=True)]
    if rows is not None:
        factors = [operators.reshape(operators.expand(*pair), row)
                   for *pair, row in zip(factors, repeated, rows, strict=True)]
    return into("kron", operators.reshape(operators.mul(*factors), shape), out, casts=True)


@lru_cache(maxsize=256)
def _kron_shapes(first, second):
    """
    Return the shape of the result, and pairs of shapes of the operands: their own, as rows of the result, and before.

    Both are repeated in rows of the result if these copies are small next to it, else the last two pairs are None: long
    rows take less time than short ones, in backward too.
    """
    ndim = max(len(first), len(second))
    first, second = (1,) * (ndim - len(first)) + first, (1,) * (ndim - len(second)) + second
    shape = tuple([a * b for a, b in zip(first, second, strict=True)])
    own = tuple([size for part in first for size in (part, 1)]), tuple([size for part in second for size in (1, part)])
    if prod(shape) < LARGE or 4 * (prod(first) * second[-1] + prod(second) * first[-1]) > prod(shape):
        return shape, own, None, None
    return (shape, own, [(*each[:-2], shape[-1]) for each in own],
            [(*each[:-2], first[-1], second[-1]) for each in own])


METHODS = {
    **{function.__name__: function for function in (addbmm, addmv, addr, baddbmm, inner, kron)},
    **{f"{function.__name__}_": inplace(function) for function in (addmv, addr, baddbmm)},
    "addbmm_": inplace(addbmm, grows=True),
}
