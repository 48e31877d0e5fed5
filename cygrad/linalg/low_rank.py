"""Approximations of low rank, by random directions (Halko, Martinsson and Tropp, 2011)."""

import cygrad
from cygrad.linalg.checks import matrices

__all__ = ["pca_lowrank", "svd_lowrank"]


def _basis(A, q, niter):
    """Orthonormal columns that nearly span the range of A, after some rounds of power iteration."""
    draw = cygrad.randn(A.shape[-1], q, dtype=A.dtype)
    basis = cygrad.linalg.qr(A @ draw).Q
    for _ in range(niter):
        basis = cygrad.linalg.qr(A @ cygrad.linalg.qr(A.mH @ basis).Q).Q
    return basis


def _check(operation, A, q, niter):
    m, n = matrices(operation, A).shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(f"{operation}: q must be an upper bound of the rank, from 0 to {min(m, n)} (got {q}).")
    if niter < 0:
        raise ValueError(f"{operation}: niter must not be negative (got {niter}).")


def svd_lowrank(A, q=6, niter=2, M=None):
    """
    The largest singular values of matrices, with their vectors, by random directions.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    q : int, default 6
        How many singular values; somewhat more than the rank.
    niter : int, default 2
        Rounds of power iteration: more make it more exact.
    M : Tensor, optional
        What is subtracted from A before; it broadcasts to its shape.

    Returns
    -------
    (U, S, V)
        ``U @ S.diag() @ V.mH`` is nearly A.

    Raises
    ------
    ValueError
        If `q` is no possible rank, or `niter` is negative.

    Notes
    -----
    It is composed of products, QR and SVD, and so is its derivative.

    Examples
    --------
    >>> import cygrad
    >>> U, S, V = cygrad.svd_lowrank(cygrad.ones(5, 4), q=2)
    >>> cygrad.allclose(U @ S.diag() @ V.mH, cygrad.ones(5, 4), atol=1e-5)
    True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    _check("svd_lowrank", A, q, niter)
    if M is not None:
        A = A - M.expand(A.shape)
    basis = _basis(A, q, niter)
    U, S, Vh = cygrad.linalg.svd(basis.mH @ A, full_matrices=False)
    return basis @ U, S, Vh.mH


def pca_lowrank(A, q=None, center=True, niter=2):
    """
    Principal components of matrices whose rows are samples, by random directions.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    q : int, optional
        How many components; default: 6, or as many as there can be.
    center : bool, default True
        Subtract the mean of the rows first.
    niter : int, default 2
        Rounds of power iteration.

    Returns
    -------
    (U, S, V)
        The columns of V are the principal directions; see `svd_lowrank`.

    Raises
    ------
    ValueError
        If `q` is no possible rank, or `niter` is negative.

    Notes
    -----
    It is composed of products, QR and SVD, and so is its derivative.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> cygrad.allclose(cygrad.pca_lowrank(x, q=1)[1], cygrad.tensor([10.0]).sqrt())
    True
    """
    q = min(6, *matrices("pca_lowrank", A).shape[-2:]) if q is None else q
    _check("pca_lowrank", A, q, niter)
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)
