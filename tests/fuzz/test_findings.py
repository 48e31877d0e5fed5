"""Regression tests of findings of the fuzzer."""

import copy

import numpy as np
import pytest

import cygrad as t

LEAF = t.ones(2, requires_grad=True)


class Plain(t.Tensor):
    """Subclass that handles every operation as Tensor does."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


def endless():
    found = []
    found.append(found)
    return found


def sparse(*shape):
    return t.ones(shape).to_sparse()


REFUSED = {
    **{f"array_api.{name}": (lambda name=name: getattr(t.array_api, name)([1.0]), TypeError, f"^{name}: argument 'x'")
       for name in ("argmax", "argsort", "clip", "cumulative_sum", "diff", "expand_dims", "flip", "full_like", "imag",
                    "max", "nonzero", "permute_dims", "real", "reshape", "roll", "round", "sort", "squeeze", "std",
                    "sum", "take", "tile", "tril", "unique_all")},
    "array_api.to_device": (lambda: t.array_api.to_device([1.0], "cpu"), TypeError, "^to_device"),
    "array_api.linalg": (lambda: t.array_api.linalg.det([[1.0]]), TypeError, "^det: argument 'x'"),
    "array_api.fft": (lambda: t.array_api.fft.fftshift([1.0]), TypeError, "^fftshift: argument 'x'"),
    "vander": (lambda: t.linalg.vander([1, 2]), TypeError, "^linalg.vander: argument 'x'"),
    **{f"sizes by {kind}": (lambda sizes=sizes: t.ones(3).repeat(sizes), TypeError, f"^repeat: .*got {kind}")
       for kind, sizes in (("Tensor", t.zeros(1, dtype=t.int32).expand(2**16, 2**16)), ("ndarray", np.ones((2, 2))))},
    "weights of no dimension": (
        lambda: t.operators.operators.fft_weigh(t.ones(1, 1, dtype=t.complex64), [], 3, 2.0), RuntimeError,
        "at least one dimension"),
    "multi_dot": (lambda: t.linalg.multi_dot([t.ones(2, 2), [1]]), TypeError, r"^linalg.multi_dot.*tensors\[1\]"),
    "tensorsolve": (lambda: t.linalg.tensorsolve(t.eye(2), [1, 2]), TypeError, "^linalg.tensorsolve: argument 'B'"),
    "tensorinv": (lambda: t.linalg.tensorinv(t.float32, 1), TypeError, "^linalg.tensorinv: argument 'A'"),
    "cholesky_inverse": (lambda: t.cholesky_inverse(t.ones(2)), RuntimeError, "^cholesky_inverse: L must"),
    "ufunc method": (lambda: LEAF.__array_ufunc__(np.add, "mean", LEAF), TypeError,
                     "unknown method of ufuncs .got 'mean'"),
    "spdiags": (lambda: t.sparse.spdiags(t.ones(1, 3), [0], (3, 3)), TypeError, "^spdiags: argument 'offsets'"),
    "spdiags' shape": (lambda: t.sparse.spdiags(t.ones(1, 3), t.zeros(1), 0), ValueError, "^spdiags: shape"),
    "spdiags' offsets": (lambda: t.sparse.spdiags(t.ones(2, 3), t.zeros(1), (3, 3)), ValueError, "^spdiags: expected"),
    **{f"Tensor.{name}": (lambda name=name: getattr(t.Tensor, name)(1.0, *[0.5] * (name == "geometric_")), TypeError,
                          f"^{name}: argument 'input' must be a Tensor")
       for name in ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
                    "uniform_")},
    "cauchy_": (lambda: t.zeros(2).cauchy_(t.ones(2)), TypeError, "^cauchy_: median must be a number"),
    "lp_pool": (lambda: t.nn.LPPool2d(0, 2)(t.ones(1, 2, 2)), ValueError, "^lp_pool2d: norm_type"),
    "gather": (lambda: t.gather(1000, 0, t.zeros(1, dtype=t.int64), sparse_grad=True), TypeError, "^gather: argument"),
    "numpy": (lambda: np.asarray(t.ones(2, device="meta").as_subclass(Plain)), RuntimeError, "^numpy: .*meta"),
    "vmap": (lambda: t.vmap(lambda x: x[endless()])(t.ones(2, 2)), ValueError, "nested more than"),
    "tree": (lambda: t.vmap(lambda x: (x, endless()))(t.ones(2, 2)), ValueError, "contains itself"),
    "clamp_probs": (lambda: t.distributions.ContinuousBernoulli(t.ones(2, dtype=t.uint32), validate_args=False),
                    TypeError, "floating dtype .got cygrad.uint32"),
    "clamp_probs of masks": (lambda: t.distributions.utils.clamp_probs(t.ones(2, dtype=t.bool)), TypeError,
                             "floating dtype"),
    "normal distribution of a module": (lambda: t.distributions.MultivariateNormal(t, t.eye(2)), TypeError, "'loc'"),
    **{name: (lambda name=name: getattr(t.nn.init, name)(t), TypeError, f"^{name}: argument 'tensor'")
       for name in ("kaiming_normal_", "kaiming_uniform_", "xavier_normal_", "xavier_uniform_")},
    "sparse type": (lambda: t.sparse.SparseTensor((4,)), TypeError, "cannot be called"),
    "sparse sum with a number": (lambda: sparse(2) + 3, RuntimeError, "^add: a sparse tensor does not broadcast"),
    "number with a sparse tensor": (lambda: 3 + sparse(2), RuntimeError, "^add: "),
    "index_select with sparse positions": (lambda: t.ones(3, 3).index_select(0, sparse(2)), TypeError, "^index_select"),
    "sparse product of dense tensors": (lambda: t.sparse.addmm(LEAF, t.ones(2), t.ones(2, 2)), RuntimeError,
                                        "^matmul: expected sparse"),
    "multinomial": (lambda: t.multinomial(t.ones(2), 1, out=float), TypeError, "^multinomial: argument 'out'"),
    "type_as": (lambda: sparse(2).type_as([1]), TypeError, "^type_as"),
    **{f"sparse {name}": (function, IndexError, f"^{name}: dimension out of range") for name, function in {
        "transpose": lambda: sparse().transpose(0, -1), "cat": lambda: t.cat([sparse(), sparse()]),
        "select": lambda: sparse(2, 2).select(2, 0), "sum": lambda: t.sparse.sum(sparse(2, 2), 2),
        "softmax": lambda: t.sparse.softmax(sparse(2, 2), -3),
        "index_select": lambda: sparse(2, 2).index_select(5, t.tensor([0]))}.items()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


def test_sparse_tensors_are_copied_and_pickled_without_their_constructor():
    x = sparse(2, 3)
    assert copy.deepcopy(x).to_dense().tolist() == copy.copy(x).to_dense().tolist() == [[1.0] * 3] * 2


def test_nothing_to_fill():
    x = t.ones(2, 4, 0)
    assert t.nn.init.xavier_normal_(x) is t.nn.init.xavier_uniform_(x) is x
    assert t.nn.init.xavier_uniform_(t.ones(0, 0)).shape == (0, 0)


def test_namespaces_hold_what_they_offer():
    assert not hasattr(t.fft, "all_spelled")
    assert not hasattr(t.linalg, "all_spelled")
