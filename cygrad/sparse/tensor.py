"""The class of sparse tensors."""

import math

import cygrad
from cygrad import Tensor
from cygrad._core.graph.type_slots import make_subclass
from cygrad.optim.parameter_checks import sparse_tensors
from cygrad.printing import dtype_remarks, elements_text, history_remarks, with_remarks

__all__ = ["SparseTensor", "made"]

COO, CSR, CSC = (cygrad.sparse_coo, cygrad.sparse_csr, cygrad.sparse_csc)


def made(indices, values, size, coalesced=False, layout=COO):
    """Create a sparse tensor of indices (dimension, element) and values (element, ...), without checks."""
    empty = cygrad.empty(tuple(size), dtype=values.dtype, device="meta")
    tensor = make_subclass(SparseTensor, empty)
    sparse_tensors[:] = [True]
    tensor.__dict__.update(_places=indices, _elements=values, _sorted=coalesced or indices.shape[1] < 2,
                           _layout=layout)
    return tensor


class SparseTensor(Tensor):
    """
    A tensor that stores its nonzero elements only. Created by `sparse_coo_tensor` and its relatives.

    The layout ``sparse_coo`` has a list of indices; `coalesce` sums the values of duplicates.
    ``sparse_csr`` and ``sparse_csc`` are matrices sorted by rows or columns.

    Examples
    --------
    >>> cygrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """

    _overrides_functions = False                 # custom Functions get sparse tensors unchanged

    is_meta = is_cuda = is_quantized = is_nested = False
    is_cpu = True
    device = property(lambda self: cygrad.device("cpu"), doc="Device of the values.")
    layout = property(lambda self: self._layout, doc="Layout of the tensor.")
    is_sparse = property(lambda self: self._layout is COO, doc="Whether the layout is ``sparse_coo``.")
    is_sparse_csr = property(lambda self: self._layout is CSR, doc="Whether the layout is ``sparse_csr``.")

    def __new__(cls, *args, **options):
        """Refuse, because the factory functions check indices and values."""
        raise TypeError("SparseTensor: cannot be called. Use sparse_coo_tensor(), sparse_csr_tensor() or to_sparse().")

    # --------------------------------------------------------------------------------------------------------- data

    def _indices(self):
        """Return the indices, of shape (dimensions, elements)."""
        return self._places

    def _values(self):
        """Return the values, detached; those of `values` are differentiable."""
        return self._elements.detach()

    def _nnz(self):
        """Return the number of stored elements."""
        return self._places.shape[1]

    def _need_coalesced(self, name):
        if not self._sorted:
            raise RuntimeError(f"{name}: the tensor has duplicate or unsorted indices. Call coalesce() "
                               "first.")

    def indices(self):
        """Return the indices of a coalesced tensor."""
        self._need_coalesced("indices")
        return self._places

    def values(self):
        """Return the values of a coalesced tensor."""
        self._need_coalesced("values")
        return self._elements

    def _compressed(self, name, dim, layout):
        if self._layout is not layout:
            raise RuntimeError(f"{name}: expected a tensor of layout {layout} (got {self._layout}).")
        counts = cygrad.bincount(self._places[dim], minlength=self.shape[dim])
        return cygrad.cat([counts.new_zeros(1), counts.cumsum(0)])

    def crow_indices(self):
        """Return the CSR row pointers."""
        return self._compressed("crow_indices", 0, CSR)

    def ccol_indices(self):
        """Return the CSC column pointers."""
        return self._compressed("ccol_indices", 1, CSC)

    def col_indices(self):
        """Return the columns of the elements."""
        return self._places[1]

    def row_indices(self):
        """Return the rows of the elements."""
        return self._places[0]

    def sparse_dim(self):
        """Return the number of sparse dimensions."""
        return self._places.shape[0]

    def dense_dim(self):
        """Return the number of dense dimensions."""
        return self.ndim - self._places.shape[0]

    def is_coalesced(self):
        """Return whether the indices are sorted and unique."""
        return self._sorted

    def _coalesced_(self, coalesced):
        """Set whether the tensor is coalesced; return it."""
        self.__dict__["_sorted"] = coalesced
        return self

    def _flat_indices(self):
        """Return the indices of each element as one number."""
        flat = cygrad.zeros(self._nnz(), dtype=cygrad.int64)
        for dim, row in enumerate(self._places):
            flat = flat * self.shape[dim] + row
        return flat

    def coalesce(self):
        """Return the tensor with sorted, unique indices; values of duplicates are summed."""
        if self._sorted:
            return self
        order = reversed(range(self.sparse_dim())) if self._layout is CSC else range(self.sparse_dim())
        sizes = [self.shape[dim] for dim in order]
        flat, rest = cygrad.zeros(self._nnz(), dtype=cygrad.int64), []
        for dim, size in zip(reversed(range(len(sizes))) if self._layout is CSC else range(len(sizes)), sizes,
                             strict=True):
            flat = flat * size + self._places[dim]
        found, place = cygrad.unique(flat, return_inverse=True)
        values = self._elements.new_zeros((len(found), *self._elements.shape[1:])).index_add(0, place, self._elements)
        for size in reversed(sizes):
            rest.append(found % size)
            found = found // size
        indices = cygrad.stack(rest if self._layout is CSC else rest[::-1]) if rest else self._places[:, :len(found)]
        return made(indices, values, self.shape, True, self._layout)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Return a dense tensor."""
        count, rest = self.sparse_dim(), self._elements.shape[1:]
        values = self._elements.to(cygrad.uint8) if self.dtype is cygrad.bool else self._elements
        dense = values.new_zeros((math.prod(self.shape[:count]), *rest)).index_add(0, self._flat_indices(), values)
        return dense.view(self.shape).to(self.dtype if dtype is None else dtype)

    # ------------------------------------------------------------------------------------------------ other layouts

    def to_sparse(self, *args, layout=None, blocksize=None, dense_dim=None):
        """Return the tensor in another sparse layout, by default ``sparse_coo``."""
        layout = COO if layout is None else layout
        if layout is self._layout:
            return self
        source = made(self._places, self._elements, self.shape, False, layout)
        if layout is COO:
            return source._coalesced_(self._layout is CSR)
        if self.ndim != 2 or self.sparse_dim() != 2:
            raise RuntimeError(f"to_sparse: layout {layout} is for matrices (got shape {tuple(self.shape)}).")
        return source.coalesce()._coalesced_(True)

    def to_sparse_coo(self):
        """Return the tensor with a list of indices."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim=None):
        """Return a matrix sorted by rows."""
        return self.to_sparse(layout=CSR)

    def to_sparse_csc(self, dense_dim=None):
        """Return a matrix sorted by columns."""
        return self.to_sparse(layout=CSC)

    # -------------------------------------------------------------------------------------------------- gradients

    requires_grad = property(lambda self: self._elements.requires_grad,
                             lambda self, flag: self.requires_grad_(flag), doc="Whether gradients are computed.")
    grad_fn = property(lambda self: self._elements.grad_fn, doc="Node that created the values.")
    is_leaf = property(lambda self: self._elements.is_leaf, doc="Whether no recorded operation created the values.")

    @property
    def grad(self):
        """The gradient: a sparse tensor with the indices of this one."""
        found = self._elements.grad
        return None if found is None else made(self._places, found, self.shape, self._sorted, self._layout)

    @grad.setter
    def grad(self, value):
        if not isinstance(value, SparseTensor | None):
            raise TypeError(f"grad: expected a sparse tensor or None (got {type(value).__name__}).")
        self._elements.grad = None if value is None else value._elements

    def requires_grad_(self, requires_grad=True):
        """Set `requires_grad`; return the tensor."""
        self._elements.requires_grad_(requires_grad)
        return self

    def as_gradient(self, target):
        """Return what is passed to the node `target` if a backward has this result: None if a leaf has added it."""
        from cygrad.sparse.gradients import as_gradient
        return as_gradient(self.clone(), target)           # the caller may have other references

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradients of this tensor to the leaves' ``.grad``, as ``autograd.backward``."""
        cygrad.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self):
        """Retain the gradient of a non-leaf."""
        self._elements.retain_grad()

    def register_hook(self, hook):
        """Register a hook on the gradient of the values; return its handle."""
        return self._elements.register_hook(hook)

    def with_values(self, values):
        """Return a tensor with the same indices and other values."""
        return made(self._places, values, (*self.shape[:self.sparse_dim()], *values.shape[1:]), self._sorted,
                    self._layout)

    def detach(self):
        """Return a detached tensor."""
        return self.with_values(self._elements.detach())

    data = property(detach, doc="The detached tensor.")

    def clone(self, *, memory_format=None):
        """Return a copy."""
        return made(self._places.clone(), self._elements.clone(), self.shape, self._sorted, self._layout)

    def to(self, *args, **options):
        """Return the tensor with values in another dtype."""
        return self.with_values(self._elements.to(*args, **options))

    def cpu(self, memory_format=None):
        """Return self."""
        return self

    def type(self, dtype=None, non_blocking=False):
        """Return the name of the tensor type, or the tensor with values of another type."""
        if dtype is not None:
            return self.with_values(self._elements.type(dtype))
        before, _, name = self._elements.type().rpartition(".")
        return f"{before}.sparse.{name}"

    def type_as(self, other):
        """Return the tensor with values in the dtype of another tensor."""
        if not isinstance(other, Tensor):
            raise TypeError(f"type_as: argument 'other' must be a Tensor (got {type(other).__name__}).")
        return self.to(other.dtype)

    def copy_(self, src, non_blocking=False):
        """Copy another sparse tensor into this one."""
        if not isinstance(src, SparseTensor):
            raise TypeError(f"copy_: expected a sparse tensor (got {type(src).__name__}).")
        if self.shape != src.shape:
            raise RuntimeError(f"copy_: the shapes must be the same (got {tuple(src.shape)}, expected "
                               f"{tuple(self.shape)}).")
        self.__dict__.update(_places=src._indices().clone(), _elements=src._elements.detach().clone().to(self.dtype),
                             _sorted=src.is_coalesced())
        return self

    def zero_(self):
        """Remove all elements; return the tensor."""
        self.__dict__.update(_places=self._places[:, :0], _elements=self._elements.detach()[:0], _sorted=True)
        return self

    def is_shared(self):
        """Return whether the memory is shared with other processes."""
        return self._elements.is_shared()

    def share_memory_(self):
        """Move indices and values to shared memory; return the tensor."""
        self._places.share_memory_()
        self._elements.share_memory_()
        return self

    def pin_memory(self, device=None):
        """Return the tensor."""
        return self

    def numel(self):
        """Return the number of elements, zeros included."""
        return math.prod(self.shape)

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        if not isinstance(index, int):
            raise NotImplementedError("getitem: a sparse tensor supports a single integer as index (got "
                                      f"{index!r}). Use index_select(), or to_dense() first.")
        return cygrad.sparse.functions.select(self, 0, index)

    def numpy(self, *args, **options):
        """Refuse: NumPy has no sparse arrays."""
        raise TypeError(f"numpy: NumPy has no sparse arrays (got one of layout {self.layout}). Use to_dense() first.")

    tolist = item = numpy

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __reduce_ex__(self, protocol):
        return made, (self._places, self._elements, tuple(self.shape), self._sorted, self._layout)

    def __deepcopy__(self, memo):
        memo[id(self)] = copy = self.detach().clone().requires_grad_(self.requires_grad)
        return copy

    def __repr__(self, *, tensor_contents=None):
        parts = [("indices", self._places)] if self._layout is COO else [
            ("crow_indices", self.crow_indices()), ("col_indices", self._places[1])] if self._layout is CSR else [
            ("ccol_indices", self.ccol_indices()), ("row_indices", self._places[0])]
        texts = []
        for name, part in [*parts, ("values", self._elements.detach())]:
            size = "" if part.numel() else f", size={tuple(part.shape)}"
            texts.append(f"{name}=tensor({elements_text(part, 15 + len(name))}{size})")
        remarks = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}", *dtype_remarks(self), f"layout={self._layout}",
                   *history_remarks(self)]
        return with_remarks("tensor(" + ",\n       ".join(texts), 7, remarks, self._layout is COO)

    __str__ = __repr__

    def __format__(self, specification):
        return repr(self)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from cygrad.sparse.functions import OPERATIONS, elementwise, write
        name, options = getattr(func, "__name__", str(func)), dict(kwargs or {})
        out = options.pop("out", None)
        found = OPERATIONS[name](*args, **options) if name in OPERATIONS else elementwise(func, name, *args, **options)
        return found if out is None else write(name, out, found)


def _converter(dtype, name):
    def convert(self, memory_format=None):
        return self.to(dtype)
    convert.__name__, convert.__doc__ = name, f"Return the tensor with values of {name}."
    return convert


for _name in ("float", "double", "int", "long", "short", "bool"):
    setattr(SparseTensor, _name, _converter(getattr(cygrad, _name), _name))
