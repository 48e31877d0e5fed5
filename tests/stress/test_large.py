"""Tensors of more than 2**31 elements; only `make stress` has the memory."""

import pytest

import cygrad

from .conftest import TIMES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(TIMES == 1, reason="for `make stress`: it takes 6 GiB")]

SIZE = 2**31 + 17


@pytest.fixture
def large():
    """Zeros of one byte each, but for the last element."""
    x = cygrad.zeros(SIZE, dtype=cygrad.int8)
    x[-1] = 3
    return x


def test_reductions_and_places(large):
    assert large.sum().item() == 3
    assert large.argmax().item() == SIZE - 1
    assert large.max().item() == 3
    assert large.count_nonzero().item() == 1
    assert large.nonzero().tolist() == [[SIZE - 1]]
    assert large.any().item()


def test_views_and_indices(large):
    assert large[SIZE - 1].item() == 3
    assert large[cygrad.tensor([SIZE - 1, 0])].tolist() == [3, 0]
    assert large.index_select(0, cygrad.tensor([SIZE - 1])).tolist() == [3]
    assert large[-5:].tolist() == [0, 0, 0, 0, 3]
    assert large.view(-1, 1)[-1].tolist() == [3]
    assert large.expand(2, SIZE)[1, -1].item() == 3
    assert large.as_strided((2,), (SIZE - 1,)).tolist() == [0, 3]


def test_element_wise_in_place(large):
    large.add_(1)
    assert (large[0].item(), large[2**31 + 3].item(), large[-1].item()) == (1, 1, 4)
    large[2**31:].fill_(5)
    assert (large[2**31 - 1].item(), large[2**31].item(), large[-1].item()) == (1, 5, 5)


def test_gradients_of_repeated_elements():
    """No memory for the elements, but as many additions into one gradient."""
    x = cygrad.ones(1, dtype=cygrad.float64, requires_grad=True)
    x.expand(SIZE).sum().backward()
    assert x.grad.item() == SIZE
