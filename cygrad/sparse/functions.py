"""Operations with sparse tensors, composed of operations on indices and values."""

from numbers import Integral, Number

import cygrad
from cygrad import Tensor
from cygrad._core.table.docstrings import documented
from cygrad.sparse.tensor import COO, CSC, CSR, SparseTensor, made

__all__ = ["OPERATIONS", "addmm", "elementwise", "log_softmax", "mm", "sampled_addmm", "select", "softmax", "sum",
           "values_of", "write"]

# Element-wise functions that are zero at zero.
KEEP_ZERO = {
    "abs", "angle", "asin", "asinh", "atan", "atanh", "ceil", "conj", "deg2rad", "erf", "erfinv", "expm1", "floor",
    "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "neg", "negative", "positive", "pow",
    "rad2deg", "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    "leaky_relu", "dropout",
}


def _is_sparse(value):
    return isinstance(value, SparseTensor)


def elementwise(function, name, *args, **options):
    """Apply an element-wise function that is zero at zero; refuse others."""
    input = args[0] if args else None
    if not _is_sparse(input) or name.rstrip("_") not in KEEP_ZERO or any(map(_is_sparse, args[1:])):
        raise NotImplementedError(f"{name}: not supported for sparse tensors. Use to_dense() first.")
    others = (*args[1:], *options.values())
    if any(isinstance(value, Tensor) and value.ndim for value in others):
        raise NotImplementedError(f"{name}: sparse tensors support only numbers as further arguments (got a tensor). "
                                  "Use to_dense() first.")
    if name.startswith("pow") and not others[0] > 0:
        raise RuntimeError(f"{name}: the exponent must be positive, because zero stays zero (got {others[0]}). Use "
                           "to_dense() first.")
    input = input if name in ("neg", "negative", "positive", "conj") else input.coalesce()
    found = input.with_values(function(input._elements.clone() if name.endswith("_") else input._elements,
                                       *args[1:], **options))
    return write(name, args[0], found) if name.endswith("_") else found


def write(operation, tensor, found):
    """Replace the data of a tensor by a result of its layout and shape, in place."""
    if _is_sparse(tensor) is not _is_sparse(found):
        raise RuntimeError(f"{operation}: cannot write a result of layout {found.layout} into a tensor of layout "
                           f"{tensor.layout}. Use an operation that is not in-place.")
    if tensor.shape != found.shape or not cygrad.can_cast(found.dtype, tensor.dtype):
        raise RuntimeError(f"{operation}: the result type {found.dtype} with shape {tuple(found.shape)} cannot be cast "
                           f"to {tensor.dtype} with shape {tuple(tensor.shape)}. Convert one of them first.")
    if not _is_sparse(tensor):
        return tensor.copy_(found)
    if tensor.requires_grad and tensor.is_leaf and cygrad.is_grad_enabled():
        raise RuntimeError(f"{operation}: a leaf Tensor that requires grad is being used in an in-place operation. Use "
                           "no_grad() or detach().")
    tensor.__dict__.update(found.to(tensor.dtype).to_sparse(layout=tensor.layout).__dict__)
    return tensor


def _check(operation, wanted, *arguments):
    for argument in arguments:
        if not isinstance(argument, wanted):
            expected = "a sparse Tensor" if wanted is SparseTensor else "Tensors"
            raise TypeError(f"{operation}: expected {expected} (got {type(argument).__name__}).")


# -------------------------------------------------------------------------------------------------------- products

def mm(input, mat2, reduce="sum"):
    """
    Multiply two matrices, at least one of them sparse.

    Parameters
    ----------
    input, mat2 : Tensor
    reduce : {"sum"}

    Returns
    -------
    Tensor
        Sparse if both are.

    Examples
    --------
    >>> a = cygrad.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], (2, 2), requires_grad=True)
    >>> cygrad.sparse.mm(a, cygrad.tensor([[1.0], [4.0]])).sum().backward()
    >>> a.grad.to_dense()
    tensor([[0., 4.],
            [0., 4.]])
    """
    if reduce != "sum":
        raise NotImplementedError(f"sparse.mm: only sums are supported (got reduce={reduce!r}).")
    return matmul(input, mat2)


def matmul(input, other):
    """Return the product of a matrix and a matrix or vector."""
    _check("matmul", Tensor, input, other)
    if 2 not in (input.ndim, other.ndim) or min(input.ndim, other.ndim) < 1 or max(input.ndim, other.ndim) > 2 or (
            {part.sparse_dim() for part in (input, other) if _is_sparse(part)} != {2}):
        raise RuntimeError("matmul: expected sparse matrices, and matrices or a vector (got shapes "
                           f"{tuple(input.shape)} and {tuple(other.shape)}).")
    if input.shape[-1] != other.shape[0]:
        raise RuntimeError(f"matmul: the shapes do not match (got {tuple(input.shape)} and {tuple(other.shape)}).")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"matmul: both must have one dtype (got {input.dtype} and {other.dtype}).")
    if _is_sparse(input) and _is_sparse(other):
        return _sparse_product(input, other)
    if not _is_sparse(input):
        swapped = input.t() if input.ndim == 2 else input
        result = matmul(transpose(other, 0, 1), swapped)
        return result.t() if input.ndim == 2 else result
    rows, columns = input._indices()
    values = input._elements if other.ndim == 1 else input._elements.unsqueeze(1)
    result = other.new_zeros((input.shape[0], *other.shape[1:])).index_add(
        0, rows, other.index_select(0, columns) * values)
    return result


def _sparse_product(input, other):
    """Multiply two sparse matrices: each element of `input` by the matching row of `other`."""
    other = other.to_sparse_csr()
    counts = other.crow_indices().diff()
    rows, columns = input._indices()
    times = counts[columns]
    which = cygrad.repeat_interleave(cygrad.arange(len(columns)), times)          # of the first
    before = cygrad.repeat_interleave(times.cumsum(0) - times, times)
    place = other.crow_indices()[columns][which] + cygrad.arange(len(which)) - before
    indices = cygrad.stack([rows[which], other.col_indices()[place]])
    found = made(indices, input._elements[which] * other._elements[place], (input.shape[0], other.shape[1]))
    found = found.coalesce()
    return found if input.layout is COO else found.to_sparse(layout=input.layout)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """
    Compute ``beta * mat + alpha * mat1 @ mat2`` with dense or sparse factors.

    Examples
    --------
    >>> a = cygrad.eye(2).to_sparse()
    >>> cygrad.sparse.addmm(cygrad.ones(2, 2), a, cygrad.ones(2, 2))
    tensor([[2., 2.],
            [2., 2.]])
    """
    _check("addmm", Tensor, mat, mat1, mat2)
    product = matmul(mat1, mat2)
    mat, product = mat * beta if beta != 1 else mat, product * alpha if alpha != 1 else product
    found = add(mat, product) if _is_sparse(product) else mat + product
    return found if out is None else write("addmm", out, found)


def _addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """
    Compute ``beta * input + alpha * mat1 @ mat2`` at the elements of a sparse matrix `input`.

    Examples
    --------
    >>> mask = cygrad.eye(2).to_sparse_csr()
    >>> cygrad.sparse.sampled_addmm(mask, cygrad.ones(2, 3), cygrad.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    _check("sampled_addmm", SparseTensor, input)
    _check("sampled_addmm", Tensor, mat1, mat2)
    if input.shape != (*mat1.shape[:-1], *mat2.shape[1:]):
        raise RuntimeError(f"sampled_addmm: the product must have the shape of input (got {tuple(mat1.shape)} and "
                           f"{tuple(mat2.shape)}, expected a product of {tuple(input.shape)}).")
    rows, columns = input._indices()
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    found = input.with_values(input._elements * beta + products * alpha)
    return found if out is None else write("sampled_addmm", out, found)


# ------------------------------------------------------------------------------------------------------ arithmetic

def add(input, other, *, alpha=1):
    """Return the sum of tensors of one shape; sparse if both are."""
    if not _is_sparse(other):
        if not isinstance(other, Tensor) or other.shape != input.shape:
            raise RuntimeError("add: a sparse tensor does not broadcast (got shape "
                               f"{tuple(getattr(other, 'shape', ()))}, expected {tuple(input.shape)}).")
        return _into_dense(other * alpha if alpha != 1 else other, input, 1)
    if not isinstance(input, Tensor) or input.shape != other.shape:
        raise RuntimeError(f"add: the shapes must be the same (got {tuple(getattr(input, 'shape', ()))} and "
                           f"{tuple(other.shape)}).")
    if not _is_sparse(input):
        return _into_dense(input, other, alpha)
    if input._indices() is other._indices():
        return input.with_values(cygrad.add(input._elements, other._elements, alpha=alpha))
    values = other._elements * alpha if alpha != 1 else other._elements
    dtype = cygrad.promote_types(input.dtype, other.dtype)
    input, values = input.to(dtype), values.to(dtype)
    return made(cygrad.cat([input._indices(), other._indices()], 1), cygrad.cat([input._elements, values]),
                input.shape, layout=input.layout).coalesce()


def _into_dense(dense, sparse, alpha, in_place=False):
    count = sparse.sparse_dim()
    dtype = cygrad.promote_types(dense.dtype, sparse.dtype)
    if sparse.dtype != dtype:
        sparse = sparse.to(dtype)
    if dense.dtype != dtype:
        if in_place:
            raise RuntimeError(f"add_: the result type {dtype} cannot be cast to {dense.dtype} (got a sparse tensor of "
                               f"{sparse.dtype}). Convert one of them first.")
        dense = dense.to(dtype)
    flat = dense.view(-1, *dense.shape[count:]) if in_place else dense.reshape(-1, *dense.shape[count:])
    added = (flat.index_add_ if in_place else flat.index_add)(0, sparse._flat_indices(), sparse._elements, alpha=alpha)
    return dense if in_place else added.view(dense.shape)


def add_(input, other, *, alpha=1):
    """Add in place."""
    return write("add_", input, add(input, other, alpha=alpha)) if _is_sparse(input) else (
        _into_dense(input, other, alpha, True))


def sub(input, other, *, alpha=1):
    """Return the difference."""
    return add(input, other, alpha=-alpha) if _is_sparse(other) or not _is_sparse(input) else add(input, -alpha * other)


def sub_(input, other, *, alpha=1):
    """Subtract in place."""
    return add_(input, other, alpha=-alpha)


def mul(input, other):
    """Multiply by a number or, element-wise, by a tensor of the same shape."""
    if not _is_sparse(input):
        input, other = other, input
    if isinstance(other, Number) or other.ndim == 0:
        return input.with_values(input._elements * other)
    if not _is_sparse(other):
        dense = cygrad.broadcast_to(other, input.shape)
        return input.with_values(input._elements * dense[tuple(input._indices())])
    if input.shape != other.shape or input.sparse_dim() != other.sparse_dim():
        raise RuntimeError(f"mul: sparse tensors must have the same shape and sparse dimensions (got "
                           f"{tuple(input.shape)} and {tuple(other.shape)}, of which {input.sparse_dim()} and "
                           f"{other.sparse_dim()} are sparse).")
    input, other = input.coalesce(), other.coalesce()
    mine, its = input._flat_indices(), other._flat_indices()
    place = cygrad.searchsorted(its, mine).clamp(max=max(len(its) - 1, 0))
    common = its[place] == mine if len(its) else cygrad.zeros(len(mine), dtype=cygrad.bool)
    values = input._elements[common] * other._elements[place[common]]
    return made(input._indices()[:, common], values, input.shape, True, input.layout)


def div(input, other, *, rounding_mode=None):
    """Return the quotient by a number."""
    if not _is_sparse(input) or (isinstance(other, Tensor) and other.ndim):
        raise NotImplementedError("div: sparse tensors can be divided by numbers only. Use to_dense() first.")
    return input.coalesce().with_values(cygrad.div(input.coalesce()._elements, other, rounding_mode=rounding_mode))


def _in_place(name, function):
    def changed(input, *args, **options):
        found = function(input, *args, **options)
        return write(name, input, found if _is_sparse(input) else found.to_dense())
    return changed


# ------------------------------------------------------------------------------------------------ shapes and parts

def _dimension(operation, input, dim):
    if not isinstance(dim, Integral) or not -input.ndim <= dim < input.ndim:
        raise IndexError(f"{operation}: dimension out of range (got {dim!r}, expected to be in [{-input.ndim}, "
                         f"{input.ndim - 1}]).")
    return dim % input.ndim


def transpose(input, dim0, dim1):
    """Return the tensor with two of its dimensions exchanged."""
    order = list(range(input.ndim))
    dim0, dim1 = _dimension("transpose", input, dim0), _dimension("transpose", input, dim1)
    if max(dim0, dim1) >= input.sparse_dim():
        raise RuntimeError(f"transpose: only sparse dimensions can be exchanged (got {dim0} and {dim1}, of "
                           f"{input.sparse_dim()}).")
    order[dim0], order[dim1] = dim1, dim0
    layout = {CSR: CSC, CSC: CSR}.get(input.layout, COO)
    return made(input._indices()[order[:input.sparse_dim()]], input._elements, [input.shape[dim] for dim in order],
                layout is not COO, layout)


def t(input):
    """Return a matrix with rows and columns exchanged."""
    if input.ndim > 2 or input.dense_dim():
        raise RuntimeError("t: expected a tensor with at most two sparse and no dense dimensions (got "
                           f"{input.sparse_dim()} and {input.dense_dim()}). Use transpose().")
    return transpose(input, 0, 1) if input.ndim == 2 else input


def index_select(input, dim, index):
    """Select slices along a sparse dimension."""
    dim = _dimension("index_select", input, dim)
    rows = input._indices()[dim]
    wanted = cygrad.atleast_1d(index)
    where = (wanted.unsqueeze(1) == rows).nonzero()
    indices = input._indices()[:, where[:, 1]]
    indices = cygrad.cat([indices[:dim], where[:, :1].t(), indices[dim + 1:]])
    size = [len(wanted) if place == dim else length for place, length in enumerate(input.shape)]
    return made(indices, input._elements[where[:, 1]], size)


def select(input, dim, index):
    """Select an entry along a sparse dimension; dense if it is the only one."""
    dim = _dimension("select", input, dim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select: index {index} is out of range for dimension {dim} of size {size}.")
    there = input._indices()[dim] == index % size
    places = [place for place in range(input.sparse_dim()) if place != dim]
    if not places:
        return input._elements[there].sum(0)
    return made(input._indices()[places][:, there], input._elements[there],
                [length for place, length in enumerate(input.shape) if place != dim], input.is_coalesced())


def cat(tensors, dim=0):
    """Concatenate sparse tensors along a sparse dimension."""
    tensors = [part.to_sparse() if _is_sparse(part) else part for part in tensors]
    if not all(map(_is_sparse, tensors)):
        raise NotImplementedError("cat: cannot concatenate sparse and dense tensors. Use to_dense() first.")
    dim, begin, indices = _dimension("cat", tensors[0], dim), 0, []
    for part in tensors:
        if any(part.ndim != tensors[0].ndim or (size != first and place != dim)
               for place, (size, first) in enumerate(zip(part.shape, tensors[0].shape, strict=False))):
            raise RuntimeError(f"cat: the shapes must match except in dimension {dim} (got {tuple(part.shape)}, "
                               f"expected {tuple(tensors[0].shape)}).")
        moved = part._indices().clone()
        moved[dim] += begin
        begin += part.shape[dim]
        indices.append(moved)
    size = [begin if place == dim else length for place, length in enumerate(tensors[0].shape)]
    return made(cygrad.cat(indices, 1), cygrad.cat([part._elements for part in tensors]), size)


def sparse_mask(input, mask):
    """Return the elements of a tensor at the indices of a sparse one."""
    if not _is_sparse(mask):
        raise TypeError(f"sparse_mask: the mask must be a sparse tensor (got {type(mask).__name__}).")
    if input.shape != mask.shape:
        raise RuntimeError(f"sparse_mask: the mask must have the shape of input (got {tuple(mask.shape)}, expected "
                           f"{tuple(input.shape)}).")
    if _is_sparse(input):
        return mul(input, mask.with_values(cygrad.ones_like(mask._elements)))
    return mask.with_values(input[tuple(mask._indices())])


# ------------------------------------------------------------------------------------------------------ reductions

@documented()
def sum(input, dim=None, dtype=None):
    """
    Sum all elements, or along dimensions; the result is sparse if a sparse dimension remains.

    Parameters
    ----------
    input : SparseTensor
    dim : int or tuple of int, optional
    dtype : dtype, optional

    Examples
    --------
    >>> cygrad.sparse.sum(cygrad.eye(3).to_sparse())
    tensor(3.)
    """
    _check("sum", SparseTensor, input)
    input = input if dtype is None else input.to(dtype)
    if dim is None or (isinstance(dim, tuple) and not dim):
        return input._elements.sum()
    dims = {_dimension("sum", input, one) for one in ((dim,) if isinstance(dim, int) else dim)}
    count = input.sparse_dim()
    inner = [one - count + 1 for one in dims if one >= count]
    values = input._elements.sum(inner) if inner else input._elements
    left = [one for one in range(count) if one not in dims]
    if not left:
        return values.sum(0)
    size = [input.shape[one] for one in range(input.ndim) if one not in dims]
    return made(input._indices()[left], values, size, input.is_coalesced() and len(left) == count).coalesce()


def _sum(input, dim=None, keepdim=False, *, dtype=None):
    found = sum(input, dim, dtype)
    if not keepdim:
        return found
    raise NotImplementedError("sum: keepdim is not supported for sparse tensors. Use to_dense() first.")


def softmax(input, dim, *, dtype=None):
    """
    Compute the softmax along a sparse dimension over the stored elements; others count as -inf.

    Examples
    --------
    >>> cygrad.sparse.softmax(cygrad.eye(2).to_sparse(), dim=1).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _softmax(input, dim, dtype, False)


def log_softmax(input, dim, *, dtype=None):
    """
    Compute the logarithm of `softmax`.

    Examples
    --------
    >>> cygrad.sparse.log_softmax(cygrad.eye(2).to_sparse(), dim=1).to_dense()
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _softmax(input, dim, dtype, True)


def _softmax(input, dim, dtype, logarithm):
    _check("softmax", SparseTensor, input)
    input = (input if dtype is None else input.to(dtype)).coalesce()
    along = _dimension("softmax", input, dim)
    if along >= input.sparse_dim():
        function = cygrad.log_softmax if logarithm else cygrad.softmax
        return input.with_values(function(input._elements, along - input.sparse_dim() + 1))
    rest = [one for one in range(input.sparse_dim()) if one != along]
    group = cygrad.zeros(input._nnz(), dtype=cygrad.int64)
    for one in rest:
        group = group * input.shape[one] + input._indices()[one]
    found, group = cygrad.unique(group, return_inverse=True)
    values = input._elements
    shape = (len(found), *values.shape[1:])
    index = group.view(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    largest = values.detach().new_full(shape, -float("inf")).scatter_reduce(0, index, values.detach(), "amax")
    shifted = values - largest[group]
    total = values.new_zeros(shape).index_add(0, group, shifted.exp())[group]
    return input.with_values(shifted - total.log() if logarithm else shifted.exp() / total)


def _norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    p = 2 if p == "fro" else p
    if dim is not None or keepdim or not (isinstance(p, Number) and p >= 0):
        raise NotImplementedError("norm: sparse tensors do not support `dim`, `keepdim` and negative orders (got "
                                  f"dim={dim}, keepdim={keepdim} and order {p}). Use to_dense() first.")
    return cygrad.linalg.vector_norm(input.coalesce()._elements, p, dtype=dtype)


def linear(input, weight, bias=None):
    """Return ``input @ weight.t() + bias`` of matrices, one of them sparse."""
    product = matmul(input, weight.t())
    return product if bias is None else product + bias


OPERATIONS = {
    "linear": linear, "matmul": matmul, "mm": matmul, "mv": matmul, "addmm": _addmm, "add": add, "add_": add_,
    "sub": sub, "sub_": sub_, "mul": mul, "multiply": mul, "mul_": _in_place("mul_", mul), "div": div,
    "div_": _in_place("div_", div), "true_divide": div,
    "transpose": transpose, "t": t, "matrix_transpose": lambda input: transpose(input, -2, -1),
    "adjoint": lambda input: transpose(input, -2, -1).conj(),
    "index_select": index_select, "select": select, "cat": cat, "sum": _sum,
    "vector_norm": _norm, "norm": _norm, "linalg_vector_norm": _norm,
    "clone": SparseTensor.clone, "detach": SparseTensor.detach, "softmax": softmax, "log_softmax": log_softmax,
    "cast": lambda input, dtype: input.to(dtype), "copy_": SparseTensor.copy_,
    "zeros_like": lambda input, dtype=None, **options: input.detach().to(dtype or input.dtype).zero_(),
}


def _of_sparse(name, function):
    def checked(input, *args, **options):
        _check(name, SparseTensor, input)
        return function(input, *args, **options)
    return checked


# Operators that are dispatched here for any sparse argument, but support sparse first arguments only.
OF_SPARSE = ("transpose", "t", "matrix_transpose", "adjoint", "index_select", "select", "vector_norm", "norm",
             "linalg_vector_norm", "clone", "detach", "cast", "copy_")
OPERATIONS.update({name: _of_sparse(name, OPERATIONS[name]) for name in OF_SPARSE})


# ---- backward

def values_of(operation, outputs, gradients=None, inputs=()):
    """Replace sparse outputs, their gradients and sparse inputs of a backward by their values."""
    gradients = [None] * len(outputs) if gradients is None else gradients
    pairs = [(output._elements, _at_indices(operation, number, output, gradient)) if _is_sparse(output)
             else (output, gradient)
             for number, (output, gradient) in enumerate(zip(outputs, gradients, strict=True))]
    return ([output for output, _ in pairs], [gradient for _, gradient in pairs],
            [place._elements if _is_sparse(place) else place for place in inputs])


def _at_indices(operation, number, output, gradient):
    """Return the elements of the gradient of a sparse output at its indices; elsewhere it must be zero."""
    if not isinstance(gradient, Tensor):
        return gradient
    if gradient.shape != output.shape:
        raise RuntimeError(f"{operation}: Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and "
                           f"output[{number}] has a shape of {output.shape}.")
    dense = gradient.to_dense() if _is_sparse(gradient) else gradient
    indices = tuple(output._indices())
    if (dense.detach().clone().index_put_(indices, dense.new_zeros(())) != 0).any():
        raise RuntimeError(f"{operation}: the gradient of sparse output {number} has elements that the output does not "
                           "have. Multiply it by a mask of its indices.")
    return dense[indices]
