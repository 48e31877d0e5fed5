"""The type of sparse tensors, and what each of its methods makes of indices and values."""

import math

import cygrad
from cygrad import Tensor
from cygrad._core.graph.tensor_type import make_subclass
from cygrad.printing import dtype_remarks, elements_text, history_remarks, with_remarks

__all__ = ["SparseTensor", "made"]

COO, CSR, CSC = (cygrad.sparse_coo, cygrad.sparse_csr, cygrad.sparse_csc)


def made(indices, values, size, coalesced=False, layout=COO):
    """A sparse tensor over indices (dimension, element) and values (element, ...), which are not checked."""
    empty = cygrad.empty(tuple(size), dtype=values.dtype, device="meta")
    tensor = make_subclass(SparseTensor, empty)
    tensor.__dict__.update(_places=indices, _elements=values, _sorted=coalesced or indices.shape[1] < 2,
                           _layout=layout)
    return tensor


class SparseTensor(Tensor):
    """
    A tensor of which only some elements are there; the others are zero. Made by `sparse_coo_tensor` and its like.

    Of the layout ``sparse_coo`` are those with a list of indices, in which the same may occur several times, meaning
    the sum, until `coalesce` adds them up; of ``sparse_csr`` and ``sparse_csc`` matrices sorted by rows or columns.

    Examples
    --------
    >>> cygrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """

    _overrides_functions = False                 # a custom Function is run as it is, and knows what it gets

    is_meta = is_cuda = is_quantized = is_nested = False
    is_cpu = True
    device = property(lambda self: cygrad.device("cpu"), doc="Where the values are.")
    layout = property(lambda self: self._layout, doc="How it is kept.")
    is_sparse = property(lambda self: self._layout is COO, doc="Whether it has a list of indices.")
    is_sparse_csr = property(lambda self: self._layout is CSR, doc="Whether it is sorted by rows.")

    def __new__(cls, *args, **options):
        """Refuse: indices and values are checked by the functions that make these."""
        raise TypeError("SparseTensor: cannot be called. Use sparse_coo_tensor(), sparse_csr_tensor() or to_sparse().")

    # ------------------------------------------------------------------------------------------------ what it holds

    def _indices(self):
        """The indices as they are, of shape (dimensions, elements)."""
        return self._places

    def _values(self):
        """The values as they are."""
        return self._elements

    def _nnz(self):
        """Return the number of stored elements."""
        return self._places.shape[1]

    def _need_coalesced(self, name):
        if not self._sorted:
            raise RuntimeError(f"{name}: the tensor has elements of the same index, or unsorted ones. Call coalesce() "
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
        """Whether no index occurs twice, and all are in order."""
        return self._sorted

    def _coalesced_(self, coalesced):
        """Say whether it is coalesced; -> itself."""
        self.__dict__["_sorted"] = coalesced
        return self

    def _flat_indices(self):
        """Return the indices of each element as one number."""
        flat = cygrad.zeros(self._nnz(), dtype=cygrad.int64)
        for dim, row in enumerate(self._places):
            flat = flat * self.shape[dim] + row
        return flat

    def coalesce(self):
        """The tensor with indices in order and none twice: elements of one index are added up."""
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
        indices = cygrad.stack(rest if self._layout is CSC else rest[::-1])
        return made(indices, values, self.shape, True, self._layout)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Return an ordinary tensor."""
        count, rest = self.sparse_dim(), self._elements.shape[1:]
        values = self._elements.to(cygrad.uint8) if self.dtype is cygrad.bool else self._elements
        dense = values.new_zeros((math.prod(self.shape[:count]), *rest)).index_add(0, self._flat_indices(), values)
        return dense.view(self.shape).to(self.dtype if dtype is None else dtype)

    # ------------------------------------------------------------------------------------------------ other layouts

    def to_sparse(self, *args, layout=None, blocksize=None, dense_dim=None):
        """Return the tensor in another sparse layout, by default with a list of indices."""
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
                             lambda self, wanted: self.requires_grad_(wanted), doc="Whether gradients are wanted.")
    grad_fn = property(lambda self: self._elements.grad_fn, doc="What has made the values.")
    is_leaf = property(lambda self: self._elements.is_leaf, doc="Whether no operation made the values.")

    @property
    def grad(self):
        """The gradient: a sparse tensor with the indices of this one."""
        found = self._elements.grad
        return None if found is None else made(self._places, found, self.shape, self._sorted, self._layout)

    @grad.setter
    def grad(self, value):
        if not isinstance(value, SparseTensor | None):
            raise TypeError(f"grad: of a sparse tensor it is a sparse one or None (got {type(value).__name__}).")
        self._elements.grad = None if value is None else value._values()

    def requires_grad_(self, requires_grad=True):
        """Say whether gradients are wanted; -> itself."""
        self._elements.requires_grad_(requires_grad)
        return self

    def as_gradient(self, target):
        """Return what is passed to the node `target` if a backward has this result: None if a leaf has added it."""
        from cygrad.sparse.gradients import as_gradient
        return as_gradient(self.clone(), target)           # the caller may have other references

    def retain_grad(self):
        """Keep the gradient though an operation has made the tensor."""
        self._elements.retain_grad()

    def register_hook(self, hook):
        """Call ``hook(gradient)`` when the gradient of the values is known; -> handle."""
        return self._elements.register_hook(hook)

    def with_values(self, values):
        """Return a tensor with the same indices and other values."""
        return made(self._places, values, (*self.shape[:self.sparse_dim()], *values.shape[1:]), self._sorted,
                    self._layout)

    def detach(self):
        """Return the same outside the graph."""
        return self.with_values(self._elements.detach())

    data = property(detach, doc="The same outside the graph.")

    def clone(self, *, memory_format=None):
        """Return a copy."""
        return made(self._places.clone(), self._elements.clone(), self.shape, self._sorted, self._layout)

    def to(self, *args, **options):
        """The tensor with values in another dtype; there is one device."""
        return self.with_values(self._elements.to(*args, **options))

    def cpu(self, memory_format=None):
        """Itself."""
        return self

    def type(self, dtype=None, non_blocking=False):
        """The name of the type of tensors; or the tensor with values of another one."""
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
        """Become a copy of another sparse tensor."""
        if not isinstance(src, SparseTensor):
            raise TypeError(f"copy_: into a sparse tensor only a sparse one is copied (got {type(src).__name__}).")
        self.__dict__.update(_places=src._indices().clone(), _elements=src._values().detach().clone().to(self.dtype),
                             _sorted=src.is_coalesced())
        return self

    def zero_(self):
        """Forget all elements; -> itself."""
        self.__dict__.update(_places=self._places[:, :0], _elements=self._elements.detach()[:0], _sorted=True)
        return self

    def is_shared(self):
        """Whether other processes see the memory."""
        return self._elements.is_shared()

    def share_memory_(self):
        """Move indices and values to where other processes can see them; -> itself."""
        self._places.share_memory_()
        self._elements.share_memory_()
        return self

    def pin_memory(self, device=None):
        """Itself: there is no other device."""
        return self

    def numel(self):
        """Elements, those that are zero included."""
        return math.prod(self.shape)

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        if not isinstance(index, int):
            raise NotImplementedError("getitem: only one integer is an index of a sparse tensor here (got "
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
        from cygrad.sparse.functions import OPERATIONS, elementwise
        name = getattr(func, "__name__", str(func))
        if name in OPERATIONS:
            return OPERATIONS[name](*args, **(kwargs or {}))
        return elementwise(func, name, *args, **(kwargs or {}))


def _converter(dtype, name):
    def convert(self, memory_format=None):
        return self.to(dtype)
    convert.__name__, convert.__doc__ = name, f"The tensor with values of {name}."
    return convert


for _name in ("float", "double", "int", "long", "short", "bool"):
    setattr(SparseTensor, _name, _converter(getattr(cygrad, _name), _name))
