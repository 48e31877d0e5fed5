"""Sparse tensors compared with PyTorch: operations, gradients, embeddings."""

import copy
import pickle

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.filterwarnings("ignore:Sparse"), pytest.mark.filterwarnings("ignore:.*sparse")]
rng = np.random.default_rng(1)
INDICES = np.array([[0, 1, 1, 0, 3, 1], [2, 0, 2, 2, 4, 0]])
VALUES = rng.normal(size=6)
DENSE = rng.normal(size=(4, 5))
RIGHT = rng.normal(size=(5, 3))


def run(text, library, gradients=True):
    """The result of an expression as an array, and the gradients of values, a dense matrix and a factor."""
    names = {"v": VALUES, "d": DENSE, "r": RIGHT}
    leaves = {name: library.tensor(value, requires_grad=gradients) for name, value in names.items()}
    i = library.tensor(INDICES)
    s = library.sparse_coo_tensor(i, leaves["v"], (4, 5))
    result = eval(text, {"T": library, "s": s, "i": i, **leaves})
    result = result.to_dense() if result.layout is not library.strided else result
    if gradients:
        (result * library.arange(result.numel(), dtype=result.dtype).reshape(result.shape)).sum().backward()
    return [result.detach().numpy()] + [
        leaf.grad.numpy() if leaf.grad is not None else None for leaf in leaves.values()]


DIFFERENTIABLE = [
    "s.to_dense()", "s.coalesce().to_dense()", "T.sparse.mm(s, r)", "s @ r", "s.mm(r)", "T.mm(s, r)", "s @ r[:, 0]",
    "T.spmm(s, r)", "s + s", "s * 2", "3 * s", "s / 2", "-s", "s.t() @ d", "s.transpose(0, 1)", "d + s",
    "T.sparse.mm(s, s.t())", "T.sparse.sum(s)", "T.sparse.sum(s, 0)", "T.sparse.sum(s, [0, 1])",
    "T.sparse.softmax(s, 1)", "T.sparse.log_softmax(s, 0)", "s.coalesce().values()",
    "T.sparse.addmm(T.ones(4, 3, dtype=T.float64), s, r, beta=0.5, alpha=2.0)", "s - s.coalesce() * 3",
    "T.addmm(T.ones(4, 3, dtype=T.float64), s, r)",
    "d.sparse_mask(s.detach().coalesce())",
]
PLAIN = [
    "s[1]", "s.coalesce().abs()", "s.coalesce().sin()", "s.coalesce().pow(2)",
    "s.to_sparse_csr() @ r", "s.to_sparse_csr().to_dense()", "s.coalesce() * s.coalesce()", "s.float()",
    "s.coalesce().to_sparse_csc()", "d.to_sparse()", "(d * (d > 0)).to_sparse_csr() @ r", "T.eye(3).to_sparse(1)",
    "T.sparse.spdiags(d[:2], T.tensor([-1, 2]), (4, 5))", "T.tanh(s.coalesce())", "s.coalesce() * d",
    "T.sparse.sampled_addmm(s.to_sparse_csr(), T.ones(4, 2, dtype=T.float64), r.t()[:2])",
    "T.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], [1.0, 2, 3], (3, 4))", "s.clone().zero_()",
    "T.sparse_csc_tensor([0, 1, 3], [2, 0, 1], [1.0, 2, 3])", "T.sparse_coo_tensor((2, 3))",
    "T.cat([s, s * 2], 1)", "s.index_select(0, T.tensor([1, 1, 3]))",
    "T.sparse_coo_tensor([[0, 1]], [[1.0, 2], [3, 4]])", "s.coalesce().indices()", "s.to_sparse_csr().crow_indices()",
    "s.to_sparse_csr().col_indices()", "T.sparse.FloatTensor(i, v.float(), T.Size([4, 5]))", "d.clone().add_(s)",
    "s.coalesce().norm()", "s.clone().add_(s)", "s.to(T.float32).double()", "T.sparse.DoubleTensor(2, 3)",
]


def test_differentiable_functions():
    for text in DIFFERENTIABLE:
        for ours, theirs in zip(run(text, cygrad), run(text, torch), strict=True):
            if theirs is None:
                assert ours is None or not ours.any(), text
            else:
                np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=text)


def test_other_functions():
    for text in PLAIN:
        np.testing.assert_allclose(run(text, cygrad, False)[0], run(text, torch, False)[0], rtol=1e-6, atol=1e-9,
                                   err_msg=text)


def test_what_a_sparse_tensor_says_of_itself():
    found = []
    for library in (cygrad, torch):
        s = library.sparse_coo_tensor(INDICES, VALUES, (4, 5))
        csr = s.to_sparse_csr()
        found.append((s._nnz(), s.is_sparse, csr.is_sparse, csr.is_sparse_csr, tuple(s.shape), s.dim(), s.numel(),
                      s.sparse_dim(), s.dense_dim(), s.is_coalesced(), s.coalesce().is_coalesced(), s.requires_grad,
                      len(s), s.size(1), str(s.dtype).rpartition(".")[2], str(s.layout).rpartition(".")[2],
                      s.type().partition(".")[2], s.device.type, s.is_meta, s.is_leaf, s.grad,
                      library.is_tensor(s), str(s.float()).replace("torch", "cygrad").replace("Size([4, 5])", "(4, 5)")
                      .replace("cygrad.(", "("), isinstance(s, library.Tensor)))
    assert found[0] == found[1]


def test_a_leaf_gets_a_sparse_gradient():
    s = cygrad.sparse_coo_tensor(INDICES, VALUES, (4, 5), requires_grad=True)
    t = torch.sparse_coo_tensor(INDICES, VALUES, (4, 5), requires_grad=True)
    for library, tensor in ((cygrad, s), (torch, t)):
        library.sparse.mm(tensor, library.tensor(RIGHT)).square().sum().backward()
    assert s.is_leaf and s.grad.is_sparse and s.grad.shape == (4, 5)
    np.testing.assert_allclose(s.grad.to_dense().numpy()[3], t.grad.to_dense().numpy()[3])


def test_copies_and_pickles():
    s = cygrad.sparse_coo_tensor(INDICES, VALUES, (4, 5)).requires_grad_()
    for twin in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert cygrad.equal(twin.to_dense(), s.to_dense()) and twin.requires_grad and twin is not s


def test_refusals():
    s = cygrad.sparse_coo_tensor(INDICES, VALUES, (4, 5))
    for error, match, wrong in (
            (NotImplementedError, "exp: .* to_dense", lambda: s.exp()),
            (RuntimeError, "coalesce", lambda: s.indices()),
            (RuntimeError, "out of range", lambda: cygrad.sparse_coo_tensor([[5]], [1.0], (4,))),
            (RuntimeError, "out of range", lambda: cygrad.sparse_coo_tensor([[-1]], [1.0])),
            (RuntimeError, "one value for each", lambda: cygrad.sparse_coo_tensor([[0, 1]], [1.0])),
            (RuntimeError, "size does not match", lambda: cygrad.sparse_coo_tensor([[0]], [1.0], (2, 2))),
            (RuntimeError, "increase from 0", lambda: cygrad.sparse_csr_tensor([0, 3], [0], [1.0])),
            (RuntimeError, "do not match", lambda: s @ cygrad.ones(3, 3, dtype=cygrad.float64)),
            (RuntimeError, "one dtype", lambda: s @ cygrad.ones(5, 3)),
            (NotImplementedError, "block sparse", lambda: cygrad.sparse_bsr_tensor([0], [0], [1.0])),
            (IndexError, "out of range", lambda: s[7])):
        with pytest.raises(error, match=match):
            wrong()


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"maximize": True}), ("Adagrad", {"lr_decay": 0.1}),
    ("SparseAdam", {}), ("SparseAdam", {"betas": (0.5, 0.8), "maximize": True}),
])
def test_optimizers_with_sparse_gradients_of_embeddings(name, options, bag):
    table, found = rng.normal(size=(7, 3)), []
    for library in (cygrad, torch):
        layer = library.nn.EmbeddingBag(7, 3, sparse=True, mode="sum") if bag else (
            library.nn.Embedding(7, 3, sparse=True, padding_idx=4))
        layer.weight.data = library.tensor(table)
        optimizer = getattr(library.optim, name)(layer.parameters(), lr=0.1, **options)
        for step in range(4):
            optimizer.zero_grad()
            index = library.tensor([[1, 2, 2], [4, 5 - step, 1]])
            layer(index).square().sum().backward()
            assert layer.weight.grad.is_sparse
            optimizer.step()
        found.append((layer.weight.detach().numpy(), layer.weight.grad.to_dense().numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_sparse_gradients_of_embeddings_meet_others():
    index = cygrad.tensor([1, 1, 3])
    layer = cygrad.nn.Embedding(5, 2, sparse=True)
    layer(index).sum().backward()
    layer(index).sum().backward()
    expected = cygrad.tensor([[0.0], [4.0], [0.0], [2.0], [0.0]]).expand(5, 2)
    assert layer.weight.grad.is_sparse and cygrad.equal(layer.weight.grad.to_dense(), expected)
    # It is dense in autograd.grad, in hooks, and for non-leaves.
    assert cygrad.equal(cygrad.autograd.grad(layer(index).sum(), layer.weight)[0], expected / 2)
    seen = []
    handle = layer.weight.register_hook(seen.append)
    layer.weight.grad = None
    layer(index).sum().backward()
    handle.remove()
    assert cygrad.equal(seen[0], expected / 2) and cygrad.equal(layer.weight.grad, expected / 2)
    layer(index).sum().backward()                       # added to a dense one
    assert not layer.weight.grad.is_sparse and cygrad.equal(layer.weight.grad, expected)
    table = cygrad.ones(5, 2, requires_grad=True)
    cygrad.nn.functional.embedding(index, table * 2, sparse=True).sum().backward()
    assert cygrad.equal(table.grad, expected)
    (first,) = cygrad.autograd.grad(layer(index).square().sum(), layer.weight, create_graph=True)
    assert cygrad.equal(cygrad.autograd.grad(first.sum(), layer.weight)[0], expected)
    layer.weight.grad = None
    layer(index).sum().backward()
    layer.weight.sum().backward()                       # dense: both add up
    assert not layer.weight.grad.is_sparse and cygrad.equal(layer.weight.grad, expected / 2 + 1)
    layer.weight.grad = None
    layer(index).sum().backward()
    with pytest.raises(RuntimeError, match="sparse gradients are not supported"):
        cygrad.optim.Adam(layer.parameters()).step()
    with pytest.raises(RuntimeError, match="weight_decay"):
        cygrad.optim.SGD(layer.parameters(), weight_decay=0.1).step()


OPTIMIZERS = {
    "SGD": {}, "momentum": {"momentum": 0.9, "nesterov": True}, "Adagrad": {}, "SparseAdam": {}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gather_with_sparse_gradients(name):
    def train(lib):
        weight = lib.tensor(DENSE, requires_grad=True)
        index = lib.tensor([[0, 1], [1, 1], [3, 0]])
        kind = {"momentum": "SGD"}.get(name, name)
        optimizer = getattr(lib.optim, kind)([weight], lr=0.1, **OPTIMIZERS[name])
        for _ in range(3):
            optimizer.zero_grad()
            weight.gather(1, index, sparse_grad=True).pow(2).sum().backward()
            optimizer.step()
        gradient = weight.grad
        return gradient._indices().numpy(), gradient.coalesce().values().numpy(), weight.detach().numpy()

    for ours, theirs in zip(train(cygrad), train(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_gather_elsewhere_is_as_ever():
    x, index = cygrad.tensor(DENSE, requires_grad=True), cygrad.tensor([[0, 1]])
    (x * 2).gather(1, index, sparse_grad=True).sum().backward()           # no leaf: dense
    assert isinstance(x.grad, cygrad.Tensor) and x.grad.sum() == 4
    out = cygrad.empty(1, 2, dtype=cygrad.float64)
    assert cygrad.gather(x.detach(), 1, index, sparse_grad=True, out=out) is out
    assert cygrad.gather(x, 1, index).grad_fn.name() == "GatherBackward0"


def test_a_sum_of_sparse_tensors_has_each_index_once_in_any_order():
    def of(*places, value=1.0):
        return cygrad.sparse_coo_tensor([places], [value] * len(places), (4,))
    first, second = of(3, 1), of(1, 0, value=2.0)
    for found in (first + second, second + first, first - -second):
        assert found.is_coalesced() and found.indices().tolist() == [[0, 1, 3]]
        assert found.values().tolist() == [2, 3, 1]
    values = cygrad.tensor([1.0, 2.0], requires_grad=True)
    added = cygrad.sparse_coo_tensor([[3, 1]], values, (4,)) + second
    (added.values() * cygrad.tensor([5.0, 7.0, 11.0])).sum().backward()
    assert values.grad.tolist() == [11, 7]


def test_gradients_of_a_sparse_leaf_accumulate_without_growing():
    table = cygrad.nn.Embedding(4, 2, sparse=True)
    for _ in range(3):
        table(cygrad.tensor([2, 0])).sum().backward()
    assert table.weight.grad._nnz() == 2 and table.weight.grad.to_dense()[2].tolist() == [3, 3]


def test_raw_values_of_a_sparse_tensor_are_detached():
    s = cygrad.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,)).requires_grad_()
    assert s.coalesce().values().requires_grad and not s._values().requires_grad
    with pytest.raises(RuntimeError, match="does not have a grad_fn"):
        s._values().sum().backward()
    s._values().mul_(3)
    assert s.to_dense().tolist() == [3, 0, 6]


def test_a_sparse_tensor_without_sparse_dimensions_is_coalesced():
    s = cygrad.sparse_coo_tensor(cygrad.empty(0, 3, dtype=cygrad.int64), cygrad.ones(3, 2), (2,)).coalesce()
    assert s._nnz() == 1 and s.indices().shape == (0, 1) and s.values().tolist() == [[3, 3]]
    empty = cygrad.sparse_coo_tensor(cygrad.empty(0, 0, dtype=cygrad.int64), cygrad.ones(0, 2), (2,)).coalesce()
    assert empty._nnz() == 0 and empty.to_dense().tolist() == [0, 0]


def test_sparse_matrices_are_transposed_and_decomposed():
    dense = cygrad.tensor([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    matrix = dense.to_sparse()
    assert matrix.mT.is_sparse and matrix.mT.to_dense().tolist() == dense.T.tolist()
    z = cygrad.tensor([[1.0 + 2.0j, 0.0]]).to_sparse()
    assert z.mH.to_dense().tolist() == [[1 - 2j], [0]]
    exact = cygrad.linalg.svdvals(dense)
    assert cygrad.allclose(cygrad.svd_lowrank(matrix, q=3)[1], exact, atol=1e-5)
    assert cygrad.allclose(cygrad.svd_lowrank(matrix.mT, q=3)[1], exact, atol=1e-5)
    centered = cygrad.linalg.svdvals(dense - dense.mean(0))
    assert cygrad.allclose(cygrad.pca_lowrank(matrix, q=3)[1], centered, atol=1e-5)
    symmetric = matrix.t() @ matrix
    assert cygrad.allclose(cygrad.lobpcg(symmetric, k=1)[0], exact[:1].square(), atol=1e-4)


def test_custom_functions_refuse_sparse_tensors_that_require_grad():
    class Product(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, sparse, dense):
            ctx.save_for_backward(sparse)
            return sparse @ dense

        @staticmethod
        def backward(ctx, grad):
            sparse, = ctx.saved_tensors
            return None, sparse.t() @ grad

    sparse = cygrad.eye(2).to_sparse().requires_grad_()
    dense = cygrad.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Product: custom Functions do not compute gradients of sparse tensors"):
        Product.apply(sparse, dense)
    with cygrad.no_grad():
        assert not Product.apply(sparse, dense).requires_grad
    Product.apply(sparse.detach(), dense).sum().backward()
    assert dense.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
