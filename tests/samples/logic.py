"""Samples: logical and bitwise operations."""

import cygrad

from .sample import Sample, binary, fails, unary, without_gradient


def flags(make, dtype):
    return Sample((cygrad.tensor([[True], [False]]), cygrad.tensor([True, False])), check_gradient=False)


def bits(make, dtype):
    return Sample((cygrad.tensor([[6], [3]]), cygrad.tensor([5, 1, 0])), check_gradient=False)


def bits_and_number(make, dtype):
    return Sample((cygrad.tensor([6, 3]), 2), check_gradient=False)


def one_flag(make, dtype):
    return Sample((cygrad.tensor([True, False]),), check_gradient=False)


def one_integer(make, dtype):
    return Sample((cygrad.tensor([0, 5, -1]),), check_gradient=False)


def reductions(name):
    cases = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": (0, 1)}]
    return [
        lambda make, dtype, kwargs=kwargs: Sample(
            (cygrad.tensor([[True, False], [True, True]]),), kwargs, check_gradient=False
        )
        for kwargs in cases
    ] + without_gradient(unary())


SAMPLES = {name: [*without_gradient(binary()), flags, bits] for name in ("logical_and", "logical_or", "logical_xor")}
SAMPLES |= {
    name: [flags, bits, bits_and_number, fails(RuntimeError, name, (2,), (2,))]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
}
SAMPLES |= {name: [bits, bits_and_number] for name in ("bitwise_left_shift", "bitwise_right_shift")}
SAMPLES["logical_not"] = [*without_gradient(unary()), one_flag, one_integer]
SAMPLES["bitwise_not"] = [one_flag, one_integer, fails(RuntimeError, "bitwise_not", (2,))]
SAMPLES["all"] = reductions("all")
SAMPLES["any"] = reductions("any")
COMPLEX = {"logical_and", "logical_or", "logical_xor", "logical_not", "all", "any"}
HELPERS = {"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}
