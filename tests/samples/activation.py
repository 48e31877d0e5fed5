"""Samples: activation functions."""

from .sample import at, call, only_floating, unary

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
    "softplus": [*unary(), call((4,), 2.0, 1.0), call((3,), low=800, high=1000)],
}
COMPLEX = {"sigmoid", "silu"}
HELPERS = {"gelu_tanh": "gelu"}
