"""Samples: Bessel functions."""

from .sample import at, call, unary

FAR = call((4,), low=10, high=60)
# Differentiable here, but not in PyTorch.
BEYOND = {
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
}
SAMPLES = {
    "i0": [*unary(), FAR],
    "i0e": [*unary(0.3, 3), call((3,), low=-3, high=-0.3), FAR, at([[0.0]], [0.0])],
    "i1": [*unary(0.3, 3), call((3,), low=-3, high=-0.3), FAR, at([[0.0]], [0.5])],
    "i1e": [*unary(0.3, 3), call((3,), low=-3, high=-0.3), FAR, at([[0.0]], [0.5])],
    "modified_bessel_k0": [*unary(0.3, 4), FAR],
    "modified_bessel_k1": [*unary(0.3, 4), FAR],
    "scaled_modified_bessel_k0": [*unary(0.3, 4), FAR],
    "scaled_modified_bessel_k1": [*unary(0.3, 4), FAR],
    "bessel_j0": [*unary(), FAR],
    "bessel_j1": [*unary(0.3, 4), FAR, at([[0.0]], [0.5])],
    "bessel_y0": [*unary(0.3, 4), FAR],
    "bessel_y1": [*unary(0.3, 4), FAR],
    "spherical_bessel_j0": [*unary(0.3, 3), call((3,), low=-3, high=-0.3), FAR, at([[0.0]], [0.0])],
}
