"""Singular values and vectors, eigenvalues and eigenvectors."""


from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg.checks import check_info, matrices, not_converged, square

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]


def _check_driver(operation, driver):
    if driver is not None:
        raise RuntimeError(f"{operation}: driver is not supported (got driver={driver!r}). Omit it.")


def svd(A, full_matrices=True, *, driver=None, out=None):
    """Return the singular value decomposition ``A = U @ diag(S) @ Vh``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    full_matrices : bool, default True
        Whether U is of shape (..., m, m) and Vh of shape (..., n, n); otherwise (..., m, k) and (..., k, n) with k =
        min(m, n).
    driver : None
        Not supported on the CPU; must be None.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (U, S, Vh)
        A named tuple; S, of shape (..., k), is real, nonnegative and in descending order.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is not a matrix of floating point or complex dtype; in backward, if a function of complex singular vectors
        depends
        on their phases.

    Notes
    -----
    Singular vectors are unique up to a common phase of the columns of U and V. The derivative is finite if singular
    values are distinct, and nonzero where A is complex or not square. That of S alone is always finite: use `svdvals`.
    J. Townsend, Differentiating the singular value decomposition (2016).

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
    """Return the singular values of matrices, in descending order.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    driver : None
        Not supported on the CPU; must be None.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., min(m, n)), real.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is not a matrix of floating point or complex dtype.

    Notes
    -----
    Derivative: ``U @ diag(grad) @ Vh``. If A requires grad, the vectors are computed in forward; the last bits of the
    values may then differ.

    Examples
    --------
    >>> cygrad.linalg.svdvals(cygrad.tensor([[0., 2.], [1., 0.]]))
    tensor([2., 1.])
    """
    _check_driver("linalg.svdvals", driver)
    A = matrices("linalg.svdvals", A)
    if is_grad_enabled() and A.requires_grad:      # backward needs the vectors
        _, found, _, info = operators.linalg_svd(A, False)
    else:
        found, info = operators.linalg_svdvals(A)
    check_info("linalg.svdvals", info, not_converged)
    return into("linalg.svdvals", found, out)


def eigh(A, UPLO="L", *, out=None):
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n), symmetric or Hermitian.
    UPLO : str, default 'L'
        Triangle that is read: 'L', the lower, or 'U', the upper one.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (eigenvalues, eigenvectors)
        A named tuple: real numbers in ascending order, of shape (..., n), and orthonormal columns, of shape (..., n,
        n). They are nan for matrices with nan or inf.

    Raises
    ------
    LinAlgError
        If the iteration does not converge.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype; in backward, if a function of complex
        eigenvectors
        depends on their phases.

    Notes
    -----
    Eigenvectors are unique up to a phase. Their derivative is finite if eigenvalues are distinct; that of eigenvalues
    alone is always finite: ``V @ diag(grad) @ V.mH``. Derivatives are those of a function of both triangles of A.

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
        Triangle that is read: 'L', the lower, or 'U', the upper one.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n), real; nan for matrices with nan or inf.

    Raises
    ------
    LinAlgError
        If the iteration does not converge.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

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
        Tensors that the results are written to.

    Returns
    -------
    (eigenvalues, eigenvectors)
        A named tuple, complex even for real matrices: of shape (..., n), in no particular order, and columns of norm 1,
        of shape (..., n, n).

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype; in backward, if a function of the eigenvectors
        depends
        on their phases.

    Notes
    -----
    Eigenvectors are unique up to a phase. The derivative exists if eigenvalues are distinct. C. Boeddeker
    and others, On the computation of complex-valued gradients (2017).

    Examples
    --------
    >>> cygrad.linalg.eig(cygrad.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    *found, info = operators.linalg_eig(square("linalg.eig", A))
    check_info("linalg.eig", info, _not_finite)
    return into("linalg.eig", named_result("linalg_eig", "eigenvalues", "eigenvectors")(*found), out, casts=True)


def eigvals(A, *, out=None):
    """Return eigenvalues of square matrices, in no particular order.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n), complex even for real matrices.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

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
    return into("linalg.eigvals", found, out, casts=True)
