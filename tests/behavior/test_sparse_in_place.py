"""In-place operations and out= of sparse tensors: the right values, or an error."""

import pytest

import cygrad
from cygrad import nn


def eye(dtype=cygrad.float32):
    return cygrad.eye(2, dtype=dtype).to_sparse()


def test_adding_a_dense_tensor_in_place_is_refused():
    sparse = eye()
    for change in (sparse.add_, sparse.sub_):
        with pytest.raises(RuntimeError, match="layout"):
            change(cygrad.ones(2, 2))
    assert sparse.to_dense().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("change", [lambda x: x.div_(2), lambda x: x.mul_(2.5), lambda x: x.mul_(eye()),
                                    lambda x: x.add_(eye()), lambda x: x.sub_(eye())])
def test_results_of_a_higher_category_are_not_truncated(change):
    with pytest.raises(RuntimeError, match="cannot be cast"):
        change(eye(cygrad.int64))


def test_in_place_results_keep_the_dtype():
    sparse = eye()
    sparse += eye(cygrad.float64)
    assert sparse.dtype is sparse.to_dense().dtype is sparse.coalesce().values().dtype is cygrad.float32
    assert sparse.to_dense().tolist() == [[2, 0], [0, 2]]


def test_a_dense_tensor_is_multiplied_in_place_by_a_sparse_one():
    dense = cygrad.full((2, 2), 3.0)
    dense *= eye()
    assert dense.tolist() == [[3, 0], [0, 3]]


def test_copying_a_sparse_tensor_into_a_dense_one_is_refused():
    with pytest.raises(TypeError, match="copy_: expected a sparse Tensor"):
        cygrad.ones(2, 2).copy_(eye())
    with pytest.raises(RuntimeError, match="copy_: the shapes"):
        eye().copy_(cygrad.eye(3).to_sparse())


def test_leaves_that_require_grad_are_not_changed():
    with pytest.raises(RuntimeError, match="leaf"):
        eye().requires_grad_().add_(eye())


def test_out_is_written():
    out = cygrad.zeros(2, 2).to_sparse()
    assert cygrad.add(eye(), eye(), out=out) is out
    assert out.to_dense().tolist() == [[2, 0], [0, 2]]
    assert cygrad.mul(eye(), 3.0, out=out) is out
    assert out.to_dense().tolist() == [[3, 0], [0, 3]]
    dense = cygrad.zeros(2, 2)
    assert cygrad.sparse.addmm(cygrad.ones(2, 2), eye(), cygrad.ones(2, 2), out=dense) is dense
    assert dense.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(RuntimeError, match="layout"):
        cygrad.add(eye(), eye(), out=dense)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: eye() * cygrad.eye(3).to_sparse(), r"^mul: .*same shape.*\(2, 2\) and \(3, 3\)"),
    (lambda: cygrad.cat([eye(), cygrad.eye(3).to_sparse()]), r"^cat: .*\(got \(3, 3\), expected \(2, 2\)\)"),
    (lambda: cygrad.ones(3, 3).sparse_mask(eye()), r"^sparse_mask: .*\(got \(2, 2\), expected \(3, 3\)\)"),
    (lambda: cygrad.ones(2, 2, 2).to_sparse().t(), r"^t: expected .* two sparse and no dense .*\(got 3 and 0\)"),
    (lambda: cygrad.sparse.sampled_addmm(eye(), cygrad.ones(3, 2), cygrad.ones(2, 2)), r"^sampled_addmm: .*\(3, 2\)"),
    (lambda: eye().pow(0), r"^pow: the exponent must be positive.*got 0"),
    (lambda: eye().pow(-1), r"^pow: the exponent must be positive.*got -1"),
    (lambda: eye().norm(-1), r"^norm: .*negative orders .*order -1")])
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_softmax_along_a_dense_dimension():
    sparse = cygrad.sparse_coo_tensor([[1]], [[0.0, 0.0, 0.0, 0.0]], (2, 4))
    assert cygrad.sparse.softmax(sparse, 1).to_dense().tolist() == [[0] * 4, [0.25] * 4]


def test_zeros_like_is_sparse():
    zeros = cygrad.zeros_like(eye(), dtype=cygrad.float64)
    assert zeros.is_sparse and zeros.dtype is cygrad.float64
    assert zeros.to_dense().tolist() == [[0, 0], [0, 0]]


def test_linear_takes_sparse_matrices():
    weight, bias = cygrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), cygrad.tensor([1.0, 0.0, 0.0])
    dense = cygrad.tensor([[1.0, 0.0], [0.0, 2.0]])
    assert nn.functional.linear(dense.to_sparse(), weight, bias).tolist() == [[2, 3, 5], [5, 8, 12]]
    layer = nn.Linear(2, 3)
    layer.weight = nn.Parameter(weight.to_sparse())
    input = dense.requires_grad_()
    layer(input).sum().backward()
    assert input.grad.tolist() == [[9, 12], [9, 12]]
    assert layer.weight.grad.to_dense().tolist() == [[1, 2]] * 3
