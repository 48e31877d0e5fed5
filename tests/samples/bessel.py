"""Samples: Bessel functions."""

from .sample import at, call, unary

FAR = call((4,), low=10, high=60)
# Differentiable here, but not in PyTorch.
BEYOND = {
    "airy_ai",
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
    # PyTorch's has errors of up to 3e-6; at 12 and -12 the asymptotic series begin.
    "airy_ai": [*unary(-2, 3), call((3,), low=-9, high=-4), call((3,), low=11, high=13), call((3,), low=-14, high=-11)],
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
HELPERS = {"airy_ai_slope": "airy_ai", "bessel_gap": "i0e"}
