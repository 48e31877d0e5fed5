"""Products, powers and exponentials of matrices, and products of vectors."""

from collections.abc import Iterable

from cygrad._core.creation.creation import tensor
from cygrad._core.graph.argument_errors import as_integer, described
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite import products
from cygrad.composite.out_forms import as_tensor_argument, into
from cygrad.linalg.checks import check_info, floating, singular, square

__all__ = ["cross", "diagonal", "matmul", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]


def matmul(input, other, *, out=None):
    """Multiply matrices; alias of `cygrad.matmul`.

    Parameters
    ----------
    input, other : Tensor
        Of shape (..., n, m) and (..., m, p), or vectors.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n, p).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.linalg.matmul(cygrad.eye(2), cygrad.ones(2))
    tensor([1., 1.])
    """
    return operators.matmul(input, other, out=out)


@documented()
def multi_dot(tensors, *, out=None):
    """Return the product of several matrices, in the order of least cost.

    Parameters
    ----------
    tensors : sequence of Tensor
        At least two matrices; the first and last can be vectors, taken as a row and a column.

    Raises
    ------
    RuntimeError
        If there are fewer than two, or shapes do not match.

    Examples
    --------
    >>> cygrad.linalg.multi_dot([cygrad.ones(2), cygrad.ones(2, 3), cygrad.ones(3, 1)])
    tensor([6.])
    """
    if not isinstance(tensors, Iterable):
        raise TypeError(f"linalg.multi_dot: argument 'tensors' must be a list of Tensors (got {described(tensors)}).")
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"linalg.multi_dot: expected at least 2 tensors (got {len(tensors)}).")
    for place, value in enumerate(tensors):
        as_tensor_argument("linalg.multi_dot", f"tensors[{place}]", value)
    if any(tensor.ndim != 2 for tensor in tensors[1:-1]) or any(tensors[k].ndim not in (1, 2) for k in (0, -1)):
        raise RuntimeError("linalg.multi_dot: expected matrices, or vectors as first and last operand (got shapes "
                           f"{[tuple(tensor.shape) for tensor in tensors]}).")
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if row:
        tensors[0] = operators.unsqueeze(tensors[0], 0)
    if column:
        tensors[-1] = operators.unsqueeze(tensors[-1], -1)
    found = products.chain_matmul(*tensors)
    if column:
        found = operators.squeeze(found, (-1,))
    return into("linalg.multi_dot", operators.squeeze(found, (0,)) if row else found, out)


def matrix_power(A, n, *, out=None):
    """Return the n-th power of square matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, m).
    n : int
        Exponent; negative for powers of the inverse.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., m, m).

    Raises
    ------
    LinAlgError
        If n is negative and a matrix is singular.
    RuntimeError
        If A is not a square matrix, or n is negative and A has integers.

    Notes
    -----
    Composed of about ``2 * log2(n)`` products; so is its derivative.

    Examples
    --------
    >>> cygrad.linalg.matrix_power(cygrad.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.matrix_power: argument 'A' must be a Tensor (got {type(A).__name__}).")
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.matrix_power: A must hold square matrices (got shape {tuple(A.shape)}).")
    if (n := as_integer("linalg.matrix_power", "n", n)) < 0:
        A, info = operators.linalg_inv_ex(square("linalg.matrix_power", A))
        check_info("linalg.matrix_power", info, singular)
        n = -n
    if n == 0:
        if A.is_floating_point() or A.is_complex():
            found = operators.where(tensor(False), A, operators.identity_like(A.detach()))
        else:
            found = operators.cast(operators.identity_like(operators.mul(A.detach(), 1.0)), A.dtype)
        return into("linalg.matrix_power", found, out)
    found, power = None, A
    while n:
        if n & 1:
            found = power if found is None else operators.matmul(found, power)
        n >>= 1
        if n:
            power = operators.matmul(power, power)
    return into("linalg.matrix_power", operators.clone(A) if found is A else found, out)


def matrix_exp(A):
    """Return the exponential of square matrices: ``1 + A + A @ A / 2 + ...``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).

    Returns
    -------
    Tensor
        Of shape (..., n, n); nan for a matrix with nan or inf.

    Raises
    ------
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Computed by scaling, a Padé approximant and squaring (N. J. Higham, 2005). Derivative: a block of the exponential of
    a matrix with twice as many rows.

    Examples
    --------
    >>> cygrad.linalg.matrix_exp(cygrad.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return operators.linalg_matrix_exp(square("linalg.matrix_exp", A))


def vecdot(x, y, *, dim=-1, out=None):
    """Return inner products of vectors along a dimension, the first one conjugated.

    Parameters
    ----------
    x, y : Tensor
        Broadcast against each other.
    dim : int, default -1
        Dimension of the vectors.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Without dimension `dim`.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast, or x is not floating point or complex.

    Notes
    -----
    Derivative: the other vector, conjugated for `y`.

    Examples
    --------
    >>> cygrad.linalg.vecdot(cygrad.tensor([[1., 2.], [3., 4.]]), cygrad.tensor([1., 1.]))
    tensor([3., 7.])
    """
    floating("linalg.vecdot", x)
    floating("linalg.vecdot", y)
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected vectors of the same dtype (got {x.dtype} and {y.dtype}).")
    return into("linalg.vecdot", operators.sum(operators.mul(operators.conj(x), y), (dim,)), out)


@documented()
def cross(input, other, *, dim=-1, out=None):
    """Return the cross product of vectors of three elements.

    Parameters
    ----------
    input, other : Tensor
        Of the same number of dimensions; broadcast against each other.
    dim : int, default -1
        Dimension of the vectors, of size 3.

    Raises
    ------
    RuntimeError
        If the dimension is not of size 3.

    Examples
    --------
    >>> cygrad.linalg.cross(cygrad.tensor([1., 0., 0.]), cygrad.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    return operators.cross(input, other, dim, out=out)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Return the diagonals of matrices, as a view.

    Parameters
    ----------
    A : Tensor
        Of two dimensions or more.
    offset : int, default 0
        Positive above the main diagonal, negative below it.
    dim1, dim2 : int, default -2 and -1
        Dimensions of the matrices.

    Returns
    -------
    Tensor
        The diagonals in the last dimension.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> cygrad.linalg.diagonal(cygrad.eye(2))
    tensor([1., 1.])
    """
    return operators.diagonal(A, offset, dim1, dim2)


def vander(x, N=None):
    """Return the matrix of powers 0, 1, ..., N - 1 of the elements of vectors.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n).
    N : int, optional
        Number of powers, at least 2; by default n.

    Returns
    -------
    Tensor
        Of shape (..., n, N).

    Raises
    ------
    RuntimeError
        If x is 0-dim, or N less than 2.

    Notes
    -----
    Derivative: that of a cumulative product.

    Examples
    --------
    >>> cygrad.linalg.vander(cygrad.tensor([1., 2.]), N=3)
    tensor([[1., 1., 1.],
            [1., 2., 4.]])
    """
    as_tensor_argument("linalg.vander", "x", x)
    if x.ndim == 0:
        x = operators.reshape(x, (1,))
    count = x.shape[-1] if N is None else as_integer("linalg.vander", "N", N)
    if count <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1 (got {count}).")
    first = operators.unsqueeze(x, -1)
    powers = operators.cumprod(operators.expand(first, (*x.shape, count - 1)), -1)
    return operators.cat([powers.new_full((*x.shape, 1), 1), powers], -1)
