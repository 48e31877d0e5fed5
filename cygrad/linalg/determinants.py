"""Determinants and their logarithms."""


from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg.checks import square

__all__ = ["det", "logdet", "slogdet"]


def det(A, *, out=None):
    """Return the determinant of square matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (...).

    Raises
    ------
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Derivative: the conjugate of the cofactor matrix; ``conj(det(A)) * inv(A).mH`` for invertible matrices. The first
    three derivatives are also correct for singular matrices; higher ones are not finite there.

    Examples
    --------
    >>> cygrad.det(cygrad.tensor([[2., 1.], [1., 1.]]))
    tensor(1.)
    """
    return into("linalg.det", operators.linalg_det(square("linalg.det", A)), out)


def slogdet(A, *, out=None):
    """Return the sign of the determinant of square matrices, and the logarithm of its absolute value.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (sign, logabsdet)
        A named tuple. The sign of a complex matrix has absolute value 1. Singular matrices have 0 and -inf.

    Raises
    ------
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Derivative of the logarithm: ``inv(A).mH``; it is not finite for singular matrices. The sign of a real matrix has
    derivative 0.

    Examples
    --------
    >>> cygrad.slogdet(cygrad.tensor([[0., 1.], [1., 0.]]))
    linalg_slogdet(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    found = operators.linalg_slogdet(square("linalg.slogdet", A))
    return into("linalg.slogdet", found, out)


def logdet(input):
    """Return the logarithm of the determinant of square matrices.

    Parameters
    ----------
    input : Tensor
        Of shape (..., n, n).

    Returns
    -------
    Tensor
        Of shape (...): -inf if the determinant is 0, nan if it is negative.

    Raises
    ------
    RuntimeError
        If the input is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Derivative: ``inv(input).mH``.

    Examples
    --------
    >>> cygrad.logdet(cygrad.eye(3))
    tensor(0.)
    """
    sign, logarithm = operators.linalg_slogdet(square("logdet", input))
    if input.is_complex():
        return operators.add(operators.log(sign), logarithm)
    return operators.where(operators.eq(sign, -1.0), float("nan"), logarithm)
