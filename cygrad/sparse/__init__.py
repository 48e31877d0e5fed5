"""
Sparse tensors: the nonzero elements and their indices.

A sparse tensor has two dense ones, indices and values, and is computed by operations on these. Gradients flow through
the values, so they need no further rules. Operations without a sparse form raise an error; use `to_dense`.

Examples
--------
>>> a = cygrad.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> (a @ cygrad.ones(3, 1)).tolist()
[[3.0], [9.0]]
"""

from cygrad._core import public_dir as _public_dir
from cygrad.sparse.factories import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spdiags,
)
from cygrad.sparse.functions import addmm, log_softmax, mm, sampled_addmm, softmax, sum
from cygrad.sparse.legacy import (
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    check_sparse_tensor_invariants,
)
from cygrad.sparse.tensor import SparseTensor

__all__ = [
    "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "ShortTensor",
    "SparseTensor", "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
    "sparse_csr_tensor", "spdiags", "sum",
]

__dir__ = _public_dir(__name__)
