"""view(dtype) of batched tensors, and results without a batch."""

import pytest

import cygrad
from tests.reference import torch


def test_views_as_a_dtype_of_batches_are_those_of_each_entry():
    x = cygrad.tensor([[1.0, -2.0], [0.5, 3.0]])
    for dtype in (cygrad.int32, cygrad.int16, cygrad.uint8, cygrad.float32, cygrad.complex64):
        def view(entry, dtype=dtype):
            return entry.view(dtype)
        expected = cygrad.stack([entry.view(dtype) for entry in x])
        assert cygrad.equal(cygrad.vmap(view)(x), expected)
    assert cygrad.equal(cygrad.vmap(cygrad.vmap(lambda number: number.view(cygrad.int32)))(x), x.view(cygrad.int32))
    with pytest.raises(RuntimeError, match="view"):
        cygrad.vmap(lambda number: number.view(cygrad.int16))(x[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nextafter_under_vmap_and_of_parameters_is_that_of_pytorch(dtype):
    def run(lib, vmap):
        x = lib.tensor([[1.0, -2.0], [0.0, 65000.0]], dtype=getattr(lib, dtype))
        y = lib.tensor([[2.0, -3.0], [-1.0, 0.0]], dtype=getattr(lib, dtype))
        results = (vmap(lib.nextafter)(x, y), vmap(lib.nextafter, in_dims=(0, None))(x, y[0]),
                   vmap(lib.nextafter, in_dims=(None, 1), out_dims=1)(x[0], y), lib.nextafter(lib.nn.Parameter(x), y))
        return [result.double().tolist() for result in results]
    assert run(cygrad, cygrad.vmap) == run(torch, torch.func.vmap)


def test_a_result_without_elements_is_refused_unless_arguments_have_none():
    with pytest.raises(NotImplementedError, match="has no batching rule"):
        cygrad.vmap(lambda entry: cygrad.empty(2, device="meta"))(cygrad.ones(3))
    assert cygrad.vmap(lambda entry: entry * 2)(cygrad.ones(3, 2, device="meta")).is_meta
