"""Sparse tensors from indices and values, and from dense tensors."""

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_integer, as_sizes
from cygrad.composite.dtypes import on_device
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.sparse.tensor import COO, CSC, CSR, made

__all__ = ["from_dense", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
           "sparse_csc_tensor", "sparse_csr_tensor", "spdiags"]


def _parts(indices, values, dtype, requires_grad):
    """Return indices and values as tensors; the values are a new leaf if requires_grad."""
    values = cygrad.as_tensor(values, dtype=dtype)
    values = values.to(dtype) if dtype is not None else values
    if requires_grad:
        values = values.detach().clone().requires_grad_()
    return [cygrad.as_tensor(part).to(cygrad.int64) for part in indices], values


@on_device
def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, is_coalesced=None, layout=None):
    """
    Return a sparse tensor from a list of indices.

    Parameters
    ----------
    indices : Tensor or sequence of shape (dimensions, elements)
        Values of duplicate indices are summed.
    values : Tensor or sequence of shape (elements, ...)
        Further dimensions of the values are dimensions of the tensor.
    size : sequence of int, optional
        Default: the smallest size for the indices. ``sparse_coo_tensor(size)`` and ``sparse_coo_tensor(size=size)`` are
        tensors of zeros.
    dtype : dtype, optional
    requires_grad : bool, default False
    is_coalesced : bool, optional
        Whether the indices are sorted and unique.
    device, pin_memory, check_invariants, layout : optional
        Accepted; indices are always checked.

    Returns
    -------
    SparseTensor

    Raises
    ------
    RuntimeError
        If shapes do not match, or an index is out of bounds.

    Examples
    --------
    >>> cygrad.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if indices is None and (size is None or values is not None):
        raise TypeError("sparse_coo_tensor: expected indices with values, or a size (got neither).")
    if values is None:
        size = as_sizes("sparse_coo_tensor", "size", size if indices is None else indices)
        indices = cygrad.zeros(len(size), 0, dtype=cygrad.int64)
        values = cygrad.zeros(0, dtype=dtype)
    (indices,), values = _parts([indices], values, dtype, requires_grad)
    indices = indices.reshape(-1, len(values)) if indices.ndim == 1 and size is None else indices
    if indices.ndim != 2 or values.ndim < 1 or indices.shape[1] != values.shape[0]:
        raise RuntimeError("sparse_coo_tensor: expected indices of shape (dimensions, elements) and one value for each "
                           f"element (got indices of {tuple(indices.shape)} and values of {tuple(values.shape)}).")
    count = indices.shape[0]
    if size is None:
        tops = indices.amax(1).tolist() if indices.shape[1] else [-1] * count
        size = [top + 1 for top in tops] + list(values.shape[1:])
    size = tuple(size)
    if len(size) != count + values.ndim - 1 or size[count:] != tuple(values.shape[1:]):
        raise RuntimeError(f"sparse_coo_tensor: the size does not match indices and values (got {size} for indices of "
                           f"{count} dimensions and values of {tuple(values.shape)}).")
    _check_range("sparse_coo_tensor", indices, size)
    return made(indices, values, size, bool(is_coalesced))


def _check_range(operation, indices, size):
    for dim, row in enumerate(indices if indices.shape[1] else ()):
        low, high = row.min().item(), row.max().item()
        if low < 0 or high >= size[dim]:
            raise RuntimeError(f"{operation}: index {low if low < 0 else high} is out of range for dimension {dim} of "
                               f"size {size[dim]}.")


def _compressed(operation, layout, dim, starts, others, values, size, dtype, requires_grad):
    (starts, others), values = _parts([starts, others], values, dtype, requires_grad)
    counts = starts.diff()
    if starts.ndim != 1 or others.ndim != 1 or len(others) != len(values) or not len(starts):
        raise RuntimeError(f"{operation}: expected a single matrix with one index per value (got indices of "
                           f"{tuple(starts.shape)} and {tuple(others.shape)} for values of {tuple(values.shape)}).")
    if starts[0] != 0 or starts[-1] != len(others) or (counts < 0).any():
        raise RuntimeError(f"{operation}: the compressed indices must increase from 0 to the number of values (got "
                           f"{starts.tolist()} for {len(others)}).")
    along = cygrad.repeat_interleave(cygrad.arange(len(counts)), counts)
    if size is None:
        reach = (others.max().item() + 1) if len(others) else 0
        size = (len(counts), reach) if dim == 0 else (reach, len(counts))
    if size[dim] != len(counts):
        raise RuntimeError(f"{operation}: the size does not match the compressed indices (got {tuple(size)}, expected "
                           f"{len(counts)} in dimension {dim}).")
    indices = cygrad.stack([along, others] if dim == 0 else [others, along])
    _check_range(operation, indices, size)
    return made(indices, values, tuple(size), True, layout)


@on_device
def sparse_csr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, layout=None):
    """
    Return a sparse matrix sorted by rows.

    Parameters
    ----------
    crow_indices : Tensor or sequence
        Row pointers: the start of each row in the other two, and the end of the last row.
    col_indices, values : Tensor or sequence
        The column and value of each element.
    size, dtype, requires_grad, **options
        As for `sparse_coo_tensor`.

    Returns
    -------
    SparseTensor

    Examples
    --------
    >>> cygrad.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0]).to_dense()
    tensor([[0., 0., 3.],
            [4., 5., 0.]])
    """
    return _compressed("sparse_csr_tensor", CSR, 0, crow_indices, col_indices, values, size, dtype, requires_grad)


@on_device
def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, layout=None):
    """Return a sparse matrix sorted by columns; see `sparse_csr_tensor`.

    Examples
    --------
    >>> cygrad.sparse_csc_tensor([0, 1, 2], [0, 1], [5.0, 6.0], (2, 2)).to_dense()
    tensor([[5., 0.],
            [0., 6.]])
    """
    return _compressed("sparse_csc_tensor", CSC, 1, ccol_indices, row_indices, values, size, dtype, requires_grad)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None,
                             **options):
    """Return a sparse matrix of the layout ``sparse_csr`` or ``sparse_csc``.

    Examples
    --------
    >>> cygrad.sparse_compressed_tensor([0, 1, 2], [0, 1], [5.0, 6.0], (2, 2), layout=cygrad.sparse_csr).to_dense()
    tensor([[5., 0.],
            [0., 6.]])
    """
    if layout not in (CSR, CSC):
        raise NotImplementedError(f"sparse_compressed_tensor: expected sparse_csr or sparse_csc (got {layout}).")
    factory = sparse_csr_tensor if layout is CSR else sparse_csc_tensor
    return factory(compressed_indices, plain_indices, values, size, dtype=dtype, **options)


def sparse_bsr_tensor(*args, **options):
    """Raise: block layouts are not supported.

    Examples
    --------
    >>> cygrad.sparse.sparse_bsr_tensor([0, 1], [0], [[[1.0]]])
    Traceback (most recent call last):
        ...
    NotImplementedError: sparse_bsr_tensor: block sparse layouts are not supported. Use sparse_csr_tensor.
    """
    raise NotImplementedError("sparse_bsr_tensor: block sparse layouts are not supported. Use sparse_csr_tensor.")


sparse_bsc_tensor = sparse_bsr_tensor


def from_dense(input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """
    Return the nonzero elements of a dense tensor, for ``Tensor.to_sparse``.

    Parameters
    ----------
    sparse_dim : int, optional
        Number of sparse dimensions; default: all.
    layout : layout, default sparse_coo
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"to_sparse: expected a Tensor (got {type(input).__name__}).")
    count = input.ndim if sparse_dim is None else as_integer("to_sparse", "sparse_dim", sparse_dim)
    if not 0 <= count <= input.ndim:
        raise IndexError(f"to_sparse: sparse_dim out of range (got {count}, expected to be in [0, {input.ndim}]).")
    there = input.detach() != 0
    if count < input.ndim:
        there = there.flatten(count).any(-1)
    places = there.nonzero()
    values = input[tuple(places.unbind(1))] if count else input.unsqueeze(0)
    found = made(places.t().contiguous(), values, tuple(input.shape), True)
    return found if layout in (None, COO) else found.to_sparse(layout=layout)


def spdiags(diagonals, offsets, shape, layout=None):
    """
    Return a sparse matrix with given diagonals.

    Parameters
    ----------
    diagonals : Tensor of shape (diagonals, length)
        Element j of each is in column j.
    offsets : Tensor
        Positions of the diagonals; 0 is the main one.
    shape : (int, int)
    layout : layout, optional

    Examples
    --------
    >>> cygrad.sparse.spdiags(cygrad.ones(1, 3), cygrad.tensor([0]), (3, 3)).to_dense()
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    as_tensor_argument("spdiags", "diagonals", diagonals)
    as_tensor_argument("spdiags", "offsets", offsets)
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ValueError(f"spdiags: shape must be the numbers of rows and columns (got {shape!r}).")
    diagonals, offsets = cygrad.atleast_2d(diagonals), cygrad.atleast_1d(offsets)
    if diagonals.ndim != 2 or offsets.shape != diagonals.shape[:1]:
        raise ValueError(f"spdiags: expected one offset per diagonal (got shapes {tuple(offsets.shape)} and "
                         f"{tuple(diagonals.shape)}).")
    columns = cygrad.arange(diagonals.shape[1]).expand(diagonals.shape)
    rows = columns - offsets.unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    found = made(cygrad.stack([rows[inside], columns[inside]]), diagonals[inside], tuple(shape))
    return found if layout in (None, COO) else found.to_sparse(layout=layout)
