"""Functions that change shapes, composed of view operators."""

import functools

import numpy as np

from cygrad._core.arrays.array import Size
from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad._core.dispatch.binding import equal_parts, transposing
from cygrad._core.graph.argument_errors import as_dim, as_integer, as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import MAX_PARTS, as_tensor_argument

__all__ = ["PROPERTIES", "broadcast_shapes", "broadcast_tensors", "chunk", "complex", "conj", "expand_as", "imag",
           "polar", "real", "reshape_as", "split", "split_with_sizes", "tile", "unique", "unsafe_chunk", "unsafe_split",
           "unsafe_split_with_sizes", "view_as"]

_RETURNED = "Tensor\n    A view."

METHODS = ["chunk", "conj", "expand_as", "reshape_as", "split", "split_with_sizes", "tile", "unique", "unsafe_chunk",
           "unsafe_split", "unsafe_split_with_sizes", "view_as"]


# ---- like another tensor

@documented(returns=_RETURNED)
def expand_as(input, other):
    """Return the tensor expanded to the shape of another tensor, without a copy.

    Parameters
    ----------
    input, other : Tensor

    Examples
    --------
    >>> cygrad.tensor([1., 2.]).expand_as(cygrad.zeros(2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return operators.expand(input, tuple(as_tensor_argument("expand_as", "other", other).shape))


@documented(returns=_RETURNED)
def view_as(input, other):
    """Return a view in the shape of another tensor.

    Parameters
    ----------
    input, other : Tensor
        With the same number of elements.

    Examples
    --------
    >>> cygrad.arange(4).view_as(cygrad.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return operators.view(input, tuple(as_tensor_argument("view_as", "other", other).shape))


@documented()
def reshape_as(input, other):
    """Return the tensor reshaped to the shape of another tensor, without a copy if possible.

    Parameters
    ----------
    input, other : Tensor
        With the same number of elements.

    Examples
    --------
    >>> cygrad.arange(4).reshape_as(cygrad.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return operators.reshape(input, tuple(as_tensor_argument("reshape_as", "other", other).shape))


# ---- broadcasting

def broadcast_shapes(*shapes):
    """Return the broadcast shape of several shapes.

    Parameters
    ----------
    *shapes : tuple of int or int

    Returns
    -------
    tuple of int

    Raises
    ------
    RuntimeError
        If two sizes differ and neither is 1.

    Examples
    --------
    >>> cygrad.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    result = []                        # from the last dimension to the first
    for shape in shapes:
        sizes = as_sizes("broadcast_shapes", "shapes", shape, 1)
        for position, size in enumerate(reversed(sizes)):
            if size < 0:
                raise RuntimeError(f"broadcast_shapes: sizes must not be negative (got {sizes}).")
            if position == len(result):
                result.append(size)
            elif result[position] == 1:
                result[position] = size
            elif size not in (1, result[position]):
                raise RuntimeError(f"broadcast_shapes: shapes {', '.join(str(s) for s in shapes)} cannot be broadcast "
                                   f"(got sizes {result[position]} and {size} in dimension {-1 - position}).")
    return Size(reversed(result))


def broadcast_tensors(*tensors):
    """Broadcast tensors to a common shape.

    Parameters
    ----------
    *tensors : Tensor

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> a, b = cygrad.broadcast_tensors(cygrad.zeros(2, 1), cygrad.zeros(3))
    >>> a.shape == b.shape == (2, 3)
    True
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[tuple(as_tensor_argument("broadcast_tensors", "tensors", tensor).shape)
                               for tensor in tensors])
    return tuple(operators.expand(tensor, shape) for tensor in tensors)


@documented()
def tile(input, *dims):
    """Repeat a tensor along dimensions.

    Parameters
    ----------
    *dims : int or tuple of int
        Number of repetitions along each dimension, or along the last ones if there are fewer.

    Examples
    --------
    >>> cygrad.tile(cygrad.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    ndim = as_tensor_argument("tile", "input", input).ndim
    return operators.repeat(input, (1,) * (ndim - len(dims)) + tuple(dims))


# ---- splitting

def _size_of(input, dim, operation):
    """Return the size of a dimension that may be negative."""
    if as_tensor_argument(operation, "input", input).ndim == 0:
        raise RuntimeError(f"{operation}: expected at least one dimension (got shape ()).")
    return input.shape[as_dim(operation, dim, input.ndim)]


def _in_chunks(input, chunk, dim):
    """Return chunks of equal size; the last one may be smaller."""
    size = _size_of(input, dim, "split")
    whole, rest = divmod(size, chunk) if chunk else (1, 0)
    if whole > MAX_PARTS:
        raise RuntimeError(f"split: too many parts (got {whole}, expected at most {MAX_PARTS}).")
    sizes = [chunk] * whole + [rest] * (rest > 0)
    return operators.split(input, tuple(sizes) or (0,), dim)


def split(input, split_size_or_sections=None, dim=0, *, axis=None, split_size=None):
    """Split a tensor along a dimension.

    Parameters
    ----------
    input : Tensor
    split_size_or_sections : int or sequence of int
        Size of all parts, of which the last may be smaller; or the size of each part.
    dim : int, default 0
    split_size : optional
        Alias of the second parameter.

    Returns
    -------
    tuple of Tensor
        Views. In-place operations on them raise in grad mode.

    Raises
    ------
    RuntimeError
        If sizes are negative or their sum is not the size of the dimension.

    Examples
    --------
    >>> cygrad.split(cygrad.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> cygrad.split(cygrad.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    dim = dim if axis is None else axis
    split_size_or_sections = split_size if split_size_or_sections is None else split_size_or_sections
    found = equal_parts(input, split_size_or_sections, dim, False)
    if found is not None:
        return found
    if isinstance(split_size_or_sections, (list, tuple)):
        return operators.split(input, tuple(split_size_or_sections), dim)
    if isinstance(split_size_or_sections, bool) or not hasattr(split_size_or_sections, "__index__"):
        raise TypeError("split: split_size_or_sections must be an integer or a sequence of integers (got "
                        f"{split_size_or_sections!r}).")
    chunk = as_integer("split", "split_size_or_sections", split_size_or_sections)
    size = _size_of(input, dim, "split")
    if chunk < 0 or (chunk == 0 and size):
        raise RuntimeError(f"split: the size of parts must be positive (got {chunk} for a dimension of size {size}).")
    return _in_chunks(input, chunk, dim)


def split_with_sizes(input, split_sizes, dim=0):
    """Split a tensor into parts of given sizes along a dimension.

    Parameters
    ----------
    input : Tensor
    split_sizes : sequence of int
    dim : int, default 0

    Returns
    -------
    tuple of Tensor
        Views, as for `split`.

    Examples
    --------
    >>> cygrad.split_with_sizes(cygrad.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return operators.split(input, as_sizes("split_with_sizes", "split_sizes", split_sizes), dim)


def chunk(input, chunks, dim=0, *, axis=None):
    """Split a tensor into at most `chunks` parts of equal size.

    Parameters
    ----------
    input : Tensor
    chunks : int
        Number of parts; fewer if the size is not divisible, and the last part may be smaller.
    dim : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `chunks` is not positive.

    Examples
    --------
    >>> cygrad.chunk(cygrad.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    dim = dim if axis is None else axis
    found = equal_parts(input, chunks, dim, True)
    if found is not None:
        return found
    if (chunks := as_integer("chunk", "chunks", chunks)) <= 0:
        raise RuntimeError(f"chunk: the number of parts must be positive (got {chunks}).")
    size = _size_of(input, dim, "chunk")
    if size == 0:                      # `chunks` empty chunks
        return operators.split(input, (0,) * chunks, dim)
    return _in_chunks(input, -(-size // chunks), dim)


def _unsafe(function):
    """Return the function that returns copies of the parts instead of views."""
    @functools.wraps(function)
    def unsafe(input, *args, **kwargs):
        input = as_tensor_argument(unsafe.__name__, "input", input)
        parts = function(input.detach(), *args, **kwargs)         # check the arguments
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        return operators.unsafe_split(input, tuple(part.shape[dim] for part in parts), dim)

    unsafe.__name__ = unsafe.__qualname__ = f"unsafe_{function.__name__}"
    return unsafe


unsafe_chunk, unsafe_split, unsafe_split_with_sizes = _unsafe(chunk), _unsafe(split), _unsafe(split_with_sizes)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Return the unique elements.

    Parameters
    ----------
    input : Tensor
    sorted : bool, default True
        Accepted; the result is always sorted.
    return_inverse : bool, default False
        Whether to return the index in the result of each element too.
    return_counts : bool, default False
        Whether to return the number of occurrences too.
    dim : int, optional
        Dimension of slices to compare; the flattened tensor by default.

    Returns
    -------
    Tensor, or tuple of Tensor

    Examples
    --------
    >>> cygrad.unique(cygrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        found = operators.unique(input, sorted, return_inverse, return_counts)
    else:
        found = _unique_slices(input, dim)
    wanted = (True, return_inverse, return_counts)
    results = tuple(result for result, is_wanted in zip(found, wanted, strict=False) if is_wanted)
    return results if len(results) > 1 else results[0]


def _unique_slices(input, dim):
    """Return the unique slices along a dimension, the inverse indices and the counts."""
    size = _size_of(input, dim, "unique")
    values, inverse, counts = np.unique(numpy_view(input), axis=dim, return_inverse=True, return_counts=True,
                                        equal_nan=False)
    values = operators.underived(from_numpy(np.ascontiguousarray(values)), input, "unique")
    return (values, from_numpy(inverse.reshape(size).astype(np.int64)),
            from_numpy(counts.astype(np.int64)))


# ---- transposes

def _all_reversed(self):
    """Reverse the order of the dimensions; for a matrix its transpose.

    Examples
    --------
    >>> cygrad.ones(2, 3).T.shape
    (3, 2)
    """
    if self.ndim not in (0, 2):
        warn_user(f"T: reversing the dimensions of a tensor of shape {tuple(self.shape)} is deprecated. Use mT "
                  "for batches of matrices, or permute().")
    return operators.transpose_all(self)


def _matrix_transpose(self):
    """Return the transposes of a batch of matrices.

    Examples
    --------
    >>> cygrad.ones(5, 2, 3).mT.shape
    (5, 3, 2)
    """
    _check_matrices(self, "mT")
    return operators.matrix_transpose(self)


def _check_matrices(input, operation):
    if input.ndim < 2:
        raise RuntimeError(f"{operation}: expected a matrix or a batch of matrices (got shape {tuple(input.shape)}).")


def _adjoint(self):
    """Return the conjugate transposes of a batch of matrices.

    Examples
    --------
    >>> cygrad.tensor([[[1j, 2]]]).mH.shape
    (1, 2, 1)
    """
    _check_matrices(self, "mH")
    transposed = operators.matrix_transpose(self)
    return operators.conj(transposed) if self.is_complex() else transposed


def _matrix_adjoint(self):
    """Return the conjugate transpose of a matrix.

    Examples
    --------
    >>> cygrad.tensor([[1j, 2]]).H
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if self.ndim not in (0, 2):
        raise RuntimeError(f"H: expected a matrix (got shape {tuple(self.shape)}). Use mH for batches of matrices.")
    return _adjoint(self) if self.ndim else operators.conj(self)


# ---- complex parts

def _of_parts(operation, out, **parts):
    """Call the operator with two parts, which must be floating and of one dtype."""
    first, second = (as_tensor_argument(operation, name, part) for name, part in parts.items())
    if not first.is_floating_point() or second.dtype is not first.dtype:
        raise RuntimeError(f"{operation}: {' and '.join(parts)} must be floating point and have the same dtype (got "
                           f"{first.dtype} and {second.dtype}). Convert with to().")
    if out is None:
        return getattr(operators, operation)(first, second)
    if as_tensor_argument(operation, "out", out).dtype is not first.dtype.to_complex():
        raise RuntimeError(f"{operation}: expected out of dtype {first.dtype.to_complex()} (got {out.dtype}).")
    return getattr(operators, operation)(first, second, out=out)


def complex(real, imag, *, out=None):
    return _of_parts("complex", out, real=real, imag=imag)


def polar(abs, angle, *, out=None):
    return _of_parts("polar", out, abs=abs, angle=angle)


complex.__doc__, polar.__doc__ = operators.complex.__doc__, operators.polar.__doc__


@documented()
def real(input):
    """Return the real parts.

    Returns
    -------
    Tensor
        A view if `input` is complex, else `input`.

    Examples
    --------
    >>> cygrad.real(cygrad.tensor([1 + 2j]))
    tensor([1.])
    """
    return operators.real_view(input) if as_tensor_argument("real", "input", input).is_complex() else input


@documented()
def conj(input):
    """Return the complex conjugates.

    Returns
    -------
    Tensor
        `input` if it is real.

    Notes
    -----
    Derivative: the conjugate gradient.

    Examples
    --------
    >>> cygrad.conj(cygrad.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return operators.conj(input) if as_tensor_argument("conj", "input", input).is_complex() else input


@documented(returns=_RETURNED)
def imag(input):
    """Return the imaginary parts.

    Parameters
    ----------
    input : Tensor
        Complex.

    Raises
    ------
    RuntimeError
        If `input` is real.

    Examples
    --------
    >>> cygrad.imag(cygrad.tensor([1 + 2j]))
    tensor([2.])
    """
    if not as_tensor_argument("imag", "input", input).is_complex():
        raise RuntimeError(f"imag: expected a complex Tensor (got {input.dtype}).")
    return operators.imag_view(input)


def _imag(self):
    """Imaginary parts; zeros for real elements, as in NumPy.

    Examples
    --------
    >>> cygrad.tensor([1 + 2j]).imag
    tensor([2.])
    """
    return imag(self) if self.is_complex() else self.new_zeros(self.shape)


def _set_real(self, value):
    self.real.copy_(value if isinstance(value, Tensor) else self.real.new_tensor(value))


def _set_imag(self, value):
    self.imag.copy_(value if isinstance(value, Tensor) else self.imag.new_tensor(value))


PROPERTIES = {
    "T": property(transposing(_all_reversed)),
    "mT": property(_matrix_transpose),
    "H": property(_matrix_adjoint),
    "mH": property(_adjoint),
    "real": property(real, _set_real),
    "imag": property(_imag, _set_imag),
}
