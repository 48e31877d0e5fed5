"""Samples: the gamma function and its relatives."""

import cygrad
from cygrad._core.table.operator import operators

from .sample import Sample, binary, call, fails, unary


def fixed_first(builders):
    """The same samples, with nothing to be differentiated in the first argument."""

    def wrapped(builder):
        def build(make, dtype):
            sample = builder(make, dtype)
            if sample is not None:
                sample.fixed = (0,)
            return sample

        return build

    return [wrapped(builder) for builder in builders]


def orders(*numbers):
    """Builders with the order as first argument."""
    builders = []
    for n in numbers:
        builders += [
            call(n, (2, 3), low=0.5, high=3),
            call(n, (), low=0.5, high=3),
            call(n, (0, 3)),
            lambda make, dtype, n=n: Sample((n, make((3, 2), 0.5, 3).t())),
        ]
    return builders


SAMPLES = {
    "lgamma": [*unary(0.5, 4), call((3,), low=-0.9, high=-0.1)],
    "digamma": [*unary(0.5, 4), call((3,), low=-0.9, high=-0.1), call((3,), low=9, high=40)],
    "polygamma": [
        *orders(1, 2, 5),
        call(1, (3,), low=-0.9, high=-0.1),
        call(0, (3,), low=0.5),
        fails(RuntimeError, "negative", -1, (2,)),
    ],
    "mvlgamma": [
        call((2, 3), 2, low=1, high=4),
        call((3,), 1, low=0.5),
        call((), 3, low=1.5, high=4),
        call((0, 2), 2),
        fails(RuntimeError, "p must", (2,), 0),
    ],
    "zeta": fixed_first([*binary(2, 6, 0.5, 4), call((3,), 2.0, low=2, high=5), call((3,), (3,), low=4, high=20)]),
    "igamma": fixed_first([*binary(0.5, 4), call((5,), (5,), low=10, high=30)]),
    "igammac": fixed_first([*binary(0.5, 4), call((5,), (5,), low=10, high=30)]),
    "stirling_remainder": [*orders(0, 1, 2, 5), call(0, (3,), low=9, high=40), call(1, (3,), low=9, high=40)],
    "lgamma_less_digamma": [call((2, 3), 1, low=0.5, high=4), call((4,), -1, low=5, high=40), call((0, 3), 2)],
    "gamma_divergence": [*binary(0.5, 4), call((5,), (5,), low=5, high=40), call((5,), (5,), low=20, high=22)],
    "digamma_divergence": [*binary(0.5, 4), call((5,), (5,), low=5, high=40), call((5,), (5,), low=20, high=22)],
    "deviance": [call((9,), (9,), (9,), low=0.5, high=4), call((3,), (3,), (3,), low=20, high=22),
                 call((2, 3), (3,), (), low=1, high=9), call((0,), (0,), (0,))],
}
SAMPLES["lgamma"].append(call((2,), low=20, high=80))
HELPERS = {"gamma_density": "igamma", "atanh_excess": "deviance"}
INTERNAL = ["stirling_remainder", "lgamma_less_digamma", "gamma_divergence", "digamma_divergence", "deviance"]
WRAPPED = {name: lambda library, name=name: getattr(operators, name) if library is cygrad else None
           for name in INTERNAL}
