"""Samples: activation functions."""

import cygrad

from .sample import Sample, at, call, fails, only_floating, unary


def add(sample, *arguments):
    """The same with further arguments."""
    sample.args += arguments
    return sample


SAMPLES = {
    "sigmoid": unary(),
    "silu": unary(),
    "mish": unary(),
    "logsigmoid": [*unary(), call((3,), low=-200, high=-100)],
    "relu": [*unary(), at([[-1.0, 0.0, 1.0]], [0.0, 0.0, 1.0])],
    "relu6": [*unary(), call((4,), low=5, high=8), at([[0.0, 6.0, 3.0]], [0.0, 0.0, 1.0])],
    "hardtanh": [
        *unary(),
        *only_floating([call((4,), -0.5, 0.7)]),
        call((4,), 0, 1),
        at([[-1.0, 1.0, 0.5]], [0.0, 0.0, 1.0]),
    ],
    "leaky_relu": [*unary(), call((4,), 0.2), at([[0.0]], [0.01])],
    "elu": [*unary(), call((4,), 1.5), call((3,), low=800, high=1000)],
    "celu": [*unary(), call((4,), 1.5)],
    "selu": [*unary(), call((3,), low=800, high=1000)],
    "gelu": [*unary(), *unary(approximate="tanh")],
    "hardsigmoid": [*unary(), call((4,), low=2, high=4), at([[-3.0, 3.0, 0.0]], [0.0, 0.0, 1 / 6])],
    "hardswish": [*unary(), call((4,), low=-4, high=-3.1), at([[-3.0, 3.0, 0.0]], [0.0, 1.0, 0.5])],
    "hardshrink": [*unary(0.6), *unary(-2, -0.6), call((4,), 1.5, low=-1.4, high=1.4), at([[-0.5, 0.5]], [0.0, 0.0])],
    "softshrink": [*unary(0.6), *unary(-2, -0.6), call((4,), 1.5, low=-1.4, high=1.4), at([[-0.5, 0.5]], [0.0, 0.0]),
                   fails(RuntimeError, "must not be negative", (2,), -1.0)],
    "threshold": [
        *(lambda make, dtype, builder=builder: add(builder(make, dtype), 0.5, 7) for builder in unary(0.6)),
        call((4,), 3, -1),
        lambda make, dtype: at([[1.0, 2.0]], [0.0, 1.0], threshold=1.0, value=9.0)(make, dtype),
    ],
    "prelu": [
        call((2, 3), (1,)), call((2, 3, 2), (3,)), call((2, 3), (3,)), call((3,), (1,)), call((), (1,)),
        call((0, 3), (3,)),
        at([[[-1.0, 0.0, 1.0]], [0.5]], [[0.5, 0.5, 1.0]], [-1.0]),
        fails(RuntimeError, "one slope", (2, 3), (2,)),
        fails(RuntimeError, "one slope", (2, 3), (2, 3)),
        lambda make, dtype: Sample((make((2, 3)), cygrad.ones(3, dtype=cygrad.int64)), error=RuntimeError,
                                   match="must have the same dtype"),
    ],
    "glu": [call((2, 4)), call((4, 3), 0), lambda make, dtype: Sample((make((4, 2)).t(), 1)), call((2, 0)),
            call((2,), low=90, high=100), fails(RuntimeError, "must be even", (2, 3))],
    "softsign": [*unary(), call((3,), low=800, high=1000), call((3,), low=-1000, high=-800)],
    "softplus": [*unary(), call((4,), 2.0, 1.0), call((3,), low=800, high=1000)],
}
COMPLEX = {"sigmoid", "silu"}
HELPERS = {
    "hardtanh_backward": "hardtanh",
    "celu_backward": "celu", "elu_backward": "elu", "gelu_backward": "gelu", "gelu_tanh": "gelu",
    "gelu_tanh_backward": "gelu", "hardsigmoid_backward": "hardsigmoid", "hardswish_backward": "hardswish",
    "leaky_relu_backward": "leaky_relu", "log1p_exp": "softplus", "logistic": "logaddexp",
    "logistic_slope": "silu", "logsigmoid_backward": "logsigmoid",
    "mish_backward": "mish", "prelu_elementwise": "prelu", "relu_backward": "relu", "selu_backward": "selu",
    "shrink_backward": "softshrink", "sigmoid_backward": "sigmoid", "silu_backward": "silu",
    "softplus_backward": "softplus", "threshold_backward": "threshold",
}
BEYOND = {"hardsigmoid"}                 # PyTorch's 1/6 has single precision
