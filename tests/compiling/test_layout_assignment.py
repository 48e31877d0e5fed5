"""Transposed matrices read by many products are copied once, with bit-identical results."""

import pytest

import cygrad
from cygrad import optim
from cygrad._core.kernels.linalg.matmul import same_bits_by_rows
from cygrad.compiling import explain

FUNCTIONAL = cygrad.nn.functional


def copies(function, *tensors, mode="default", calls=3):
    """Check a compiled function against eager; return the number of matrices that it copies."""
    step = cygrad.compile(function, mode=mode)
    for _ in range(calls):
        for expected, found in zip(function(*tensors), step(*tensors), strict=True):
            if mode == "default":
                assert expected.numpy().tobytes() == found.numpy().tobytes()
            else:
                assert cygrad.allclose(expected, found, atol=1e-5)
            assert expected.stride() == found.stride() and expected._version == found._version
    assert explain(step).executions == calls - 1
    return sum(" = copy(" in line for line in explain(step).programs[0])


def numbers(*shape, seed=0, dtype=cygrad.float32):
    generator = cygrad.Generator().manual_seed(seed)
    return cygrad.randn(*shape, generator=generator, dtype=dtype) * 0.25


def chain(product, turns=10):
    """A function of rows that multiplies them again and again."""
    def function(x, *matrices):
        results = [x]
        for _ in range(turns):
            results.append(product(results[-1], *matrices).tanh())
        return results[1:]
    return function


in_blocks = same_bits_by_rows(4, 64, 64, 64)          # where there are vectors of eight numbers


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize(("product", "n"), [
    (lambda x, matrix: x @ matrix.t(), 64),
    (lambda x, matrix: x.mm(matrix.t()), 100),
    (lambda x, matrix: FUNCTIONAL.linear(x, matrix), 64),
    (lambda x, matrix: FUNCTIONAL.linear(x, matrix, matrix[0]), 80),
    (lambda x, matrix: FUNCTIONAL.linear(x, matrix, matrix[:, 3]), 129),
    (lambda x, matrix: FUNCTIONAL.linear(x, matrix) + x @ matrix.t(), 64),
])
def test_a_matrix_of_many_products(product, n, dtype):
    assert copies(chain(product), numbers(64, n, dtype=dtype), numbers(n, n, seed=1, dtype=dtype)) == in_blocks


def test_backward_through_time():
    def function(x, weight, start):
        weight = weight.clone().requires_grad_()
        state = start
        for row in x:
            state = (row + state @ weight).tanh()
        return cygrad.autograd.grad(state.sum(), weight)

    assert copies(function, numbers(40, 16, 64), numbers(64, 64, seed=1), numbers(16, 64, seed=2)) == in_blocks


@pytest.mark.parametrize(("function", "x"), [
    (chain(lambda x, matrix: x @ matrix), numbers(64, 64)),                           # it is row-major
    (chain(lambda x, matrix: x @ matrix.t(), 2), numbers(400, 64)),                   # few products
    (chain(lambda x, matrix: x @ matrix.t()), numbers(16, 64)),                       # few rows together
    (chain(lambda x, matrix: x @ matrix.t(), 100), numbers(8, 64)),                   # BLAS multiplies few rows
    (chain(lambda x, matrix: x[:, ::2].repeat_interleave(2, 1).t().contiguous().t() @ matrix.t(), 3), numbers(50, 64)),
])
def test_matrices_that_are_read_where_they_lie(function, x):
    assert copies(function, x, numbers(64, 64, seed=1)) == 0


def test_fast_mode_copies_what_rounds_otherwise():
    function = chain(lambda x, matrix: x @ matrix.t(), 100)
    assert copies(function, numbers(8, 64), numbers(64, 64, seed=1) * 0.25, mode="fast") == 1


def test_what_is_changed_between_products_is_copied_anew():
    def function(x, matrix):
        matrix, results = matrix.clone(), [x]
        for turn in range(30):
            if turn == 15:
                matrix.mul_(-1)
            results.append((results[-1] @ matrix.t()).tanh())
        return results[1:]

    assert copies(function, numbers(64, 64), numbers(64, 64, seed=1)) == 2 * in_blocks


def test_steps_that_train_the_matrix():
    def make():
        weight, x = numbers(64, 64, seed=1).requires_grad_(), numbers(30, 32, 64)
        optimizer = optim.SGD([weight], lr=0.1)

        def step():
            optimizer.zero_grad()
            state = x[0]
            for row in x:
                state = (row + state @ weight.t()).tanh()
            state.square().sum().backward()
            optimizer.step()
            return state.detach()
        return weight, step

    (expected, eager), (found, step) = make(), make()
    compiled = cygrad.compile(step)
    for _ in range(4):
        assert cygrad.equal(eager(), compiled()) and cygrad.equal(expected, found)
    assert sum(" = copy(" in line for line in explain(compiled).programs[0]) == in_blocks
