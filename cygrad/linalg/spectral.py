"""Singular values, eigenvalues and their vectors."""


from cygrad._core.dispatch.named_results import named_result
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg.checks import check_info, matrices, not_converged, square

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]


def _check_driver(operation, driver):
    if driver is not None:
        raise RuntimeError(f"{operation}: driver is not supported (got driver="
                           f"{driver!r}). Leave it out.")


def svd(A, full_matrices=True, *, driver=None, out=None):
    """Return the singular value decomposition ``A = U @ diag(S) @ Vh``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    full_matrices : bool, default True
        Give U of shape (..., m, m) and Vh of shape (..., n, n); else (..., m, k) and (..., k, n), k = min(m, n).
    driver : None
        For other devices only.
    out : tuple of Tensor, optional
        Written to instead.

    Returns
    -------
    (U, S, Vh)
        A named tuple; S, of shape (..., k), is real, not negative, and falls.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is no matrix of a floating or complex dtype; in backward, if a function of complex singular vectors depends
        on their phases.

    Notes
    -----
    Singular vectors are determined up to a common factor of size 1 of the columns of U and V. The derivative is finite
    for different singular values, and, if A is not square or complex, that are not 0; of S alone for all: use
    `svdvals`. J. Townsend, Differentiating the singular value decomposition (2016).

    Examples
    --------
    >>> cygrad.linalg.svd(cygrad.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    _check_driver("linalg.svd", driver)
    *found, info = operators.linalg_svd(matrices("linalg.svd", A), full_matrices)
    check_info("linalg.svd", info, not_converged)
    return into("linalg.svd", named_result("linalg_svd", "U", "S", "Vh")(*found), out)


def svdvals(A, *, driver=None, out=None):
    """Return the singular values of matrices, the largest first.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    driver : None
        For other devices only.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Of shape (..., min(m, n)), real.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is no matrix of a floating or complex dtype.

    Notes
    -----
    Derivative: ``U @ diag(grad) @ Vh``.

    Examples
    --------
    >>> cygrad.linalg.svdvals(cygrad.tensor([[0., 2.], [1., 0.]]))
    tensor([2., 1.])
    """
    _check_driver("linalg.svdvals", driver)
    found, info = operators.linalg_svdvals(matrices("linalg.svdvals", A))
    check_info("linalg.svdvals", info, not_converged)
    return into("linalg.svdvals", found, out)


def eigh(A, UPLO="L", *, out=None):
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n), symmetric or Hermitian.
    UPLO : str, default 'L'
        Which triangle is read: 'L', the lower, or 'U', the upper one.
    out : tuple of Tensor, optional
        Written to instead.

    Returns
    -------
    (eigenvalues, eigenvectors)
        A named tuple: real numbers that grow, of shape (..., n), and orthonormal columns, of shape (..., n, n). They
        are nan for a matrix with nan or inf.

    Raises
    ------
    LinAlgError
        If the iteration fails.
    RuntimeError
        If A is no square matrix of a floating or complex dtype; in backward, if a function of complex eigenvectors
        depends on their phases.

    Notes
    -----
    Eigenvectors are determined up to a factor of size 1. Their derivative is finite for different eigenvalues; that of
    eigenvalues alone always is: ``V @ diag(grad) @ V.mH``. It is that of a function of all elements of A.

    Examples
    --------
    >>> cygrad.linalg.eigh(cygrad.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    *found, info = operators.linalg_eigh(square("linalg.eigh", A), UPLO)
    check_info("linalg.eigh", info, not_converged)
    return into("linalg.eigh", named_result("linalg_eigh", "eigenvalues", "eigenvectors")(*found), out)


def eigvalsh(A, UPLO="L", *, out=None):
    """Return eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n), symmetric or Hermitian.
    UPLO : str, default 'L'
        Which triangle is read: 'L', the lower, or 'U', the upper one.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Of shape (..., n), real; nan for a matrix with nan or inf.

    Raises
    ------
    LinAlgError
        If the iteration fails.
    RuntimeError
        If A is no square matrix of a floating or complex dtype.

    Notes
    -----
    Derivative: ``V @ diag(grad) @ V.mH``.

    Examples
    --------
    >>> cygrad.linalg.eigvalsh(cygrad.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    found, info = operators.linalg_eigvalsh(square("linalg.eigvalsh", A), UPLO)
    check_info("linalg.eigvalsh", info, not_converged)
    return into("linalg.eigvalsh", found, out)


def _not_finite(info):
    return "The matrix must be finite (got nan or infinite elements)." if info < 0 else not_converged(info)


def eig(A, *, out=None):
    """Return eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : tuple of Tensor, optional
        Written to instead.

    Returns
    -------
    (eigenvalues, eigenvectors)
        A named tuple, complex also for real matrices: of shape (..., n), in no order, and columns of size 1, of shape
        (..., n, n).

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is no square matrix of a floating or complex dtype; in backward, if a function of the eigenvectors depends
        on their phases.

    Notes
    -----
    Eigenvectors are determined up to a factor of size 1. The derivative exists for different eigenvalues. C. Boeddeker
    and others, On the computation of complex-valued gradients (2017).

    Examples
    --------
    >>> cygrad.linalg.eig(cygrad.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    *found, info = operators.linalg_eig(square("linalg.eig", A))
    check_info("linalg.eig", info, _not_finite)
    return into("linalg.eig", named_result("linalg_eig", "eigenvalues", "eigenvectors")(*found), out)


def eigvals(A, *, out=None):
    """Return eigenvalues of square matrices, in no particular order.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Of shape (..., n), complex also for real matrices.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is no square matrix of a floating or complex dtype.

    Notes
    -----
    Derivative: ``solve(V.mH, diag(grad) @ V.mH)`` with the eigenvectors V.

    Examples
    --------
    >>> cygrad.linalg.eigvals(cygrad.tensor([[0., -1.], [1., 0.]]))
    tensor([0.+1.j, 0.-1.j])
    """
    found, info = operators.linalg_eigvals(square("linalg.eigvals", A))
    check_info("linalg.eigvals", info, _not_finite)
    return into("linalg.eigvals", found, out)
