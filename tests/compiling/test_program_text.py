"""The text form of a Program round-trips, passes rewrite small programs, invalid ones are refused."""

import pytest

import cygrad
from cygrad._core.compiler import lowering
from cygrad._core.compiler.buffer_aliasing import alias_buffers
from cygrad._core.compiler.copy_removal import remove_copies
from cygrad._core.compiler.dead_code import remove_dead, remove_positions
from cygrad._core.compiler.fusion import fuse_expressions, fuse_loops
from cygrad._core.compiler.layout_assignment import assign_layouts
from cygrad._core.compiler.product_accumulation import accumulate_products
from cygrad._core.compiler.product_merging import merge_products
from cygrad._core.compiler.value_numbering import merge_equal, remove_unit_factors
from tests.compiling.program_text import parse
from tests.compiling.random_functions import numbers, random_function


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def after(text, *passes, fast=False):
    """The lines of a program after some passes, each verified."""
    return lines(str(lowering.optimize(parse(text, fast), passes)))


INPUTS = """
    %0: float32[4, 8] = tensor()
    %1: float32[4, 8] = tensor()
"""

PASSES = {
    "dead operations are removed": (INPUTS + """
    %2: float32[4, 8] = mul(%0, %1)
    %3: float32[4, 8] = exp(%0)
    return %2""", [remove_dead], INPUTS + """
    %2: float32[4, 8] = mul(%0, %1)
    return %2"""),
    "writes to inputs are kept": (INPUTS + """
    %0 := add(%0, %1)
    return""", [remove_dead], INPUTS + """
    %0 := add(%0, %1)
    return"""),
    "positions that are not read are not computed": ("""
    %0: float32[4, 8] = tensor()
    %1: float32[4], %2: int64[4] = max_dim(%0, 1, False)
    return %1""", [remove_positions], """
    %0: float32[4, 8] = tensor()
    %1: float32[4] = amax(%0, (1,), False)
    return %1"""),
    "multiplications by one are removed": ("""
    %0: float32[4] = tensor()
    %1: float32[4] strides [0] = constant(1.0)
    %2: float32[4] = mul(%0, %1)
    %3: float32[4] = exp(%2)
    return %3""", [remove_unit_factors], """
    %0: float32[4] = tensor()
    %1: float32[4] = exp(%0)
    return %1"""),
    "equal operations are computed once, views of their results too": (INPUTS + """
    %2: float32[4, 8] = exp(%0)
    %3: float32[4, 8] = exp(%0)
    %4: float32[8, 4] strides [1, 8] = view(%3, 0)
    %5: float32[4, 4] = matmul(%2, %4)
    return %5""", [merge_equal], """
    %0: float32[4, 8] = tensor()
    %1: float32[4, 8] = exp(%0)
    %2: float32[8, 4] strides [1, 8] = view(%1, 0)
    %3: float32[4, 4] = matmul(%1, %2)
    return %3"""),
    "operations before and after a write are not equal": ("""
    %0: float32[4] = tensor()
    %1: float32[4] = exp(%0)
    %0 := mul(%0, 2)
    %2: float32[4] = exp(%0)
    %3: float32[4] = sub(%2, %1)
    return %3""", [merge_equal], """
    %0: float32[4] = tensor()
    %1: float32[4] = exp(%0)
    %0 := mul(%0, 2)
    %2: float32[4] = exp(%0)
    %3: float32[4] = sub(%2, %1)
    return %3"""),
    "a clone that is the only reader is the result": ("""
    %0: float32[4] = tensor()
    %1: float32[4] = exp(%0)
    %2: float32[4] = clone(%1, None)
    return %2""", [remove_copies], """
    %0: float32[4] = tensor()
    %1: float32[4] = exp(%0)
    return %1"""),
    "a product is added to a result": ("""
    %0: float32[4, 4] = tensor()
    %1: float32[4, 4] = exp(%0)
    %2: float32[4, 4] = mm(%0, %0)
    %3: float32[4, 4] = add(%1, %2)
    return %3""", [accumulate_products], """
    %0: float32[4, 4] = tensor()
    %1: float32[4, 4] = exp(%0)
    %2: float32[4, 4] = accumulate(%1, %0, %0)
    return %2"""),
    "expressions are evaluated in their only reader": (INPUTS + """
    %2: float32[4, 8] = mul(%0, %1)
    %3: float32[4, 8] = add(%2, 1.0)
    %4: float32[4, 1] = sum(%3, (1,), True)
    return %4""", [fuse_expressions], INPUTS + """
    %2: float32[4, 1] = sum_to(add(mul(%0, %1), 1.0), (4, 1))
    return %2"""),
    "several large results are computed in one loop": ("""
    %0: float32[5000] = tensor()
    %1: float32[5000] = exp(%0)
    %2: float32[5000] = mul(%1, %0)
    %3: float32[5000] = add(%1, %2)
    return %2, %3""", [fuse_loops], """
    %0: float32[5000] = tensor()
    %1: float32[5000], %2: float32[5000] = loop(t0 = exp(%0); %1 = mul(t0, %0); %2 = add(t0, %1))
    return %1, %2"""),
    "parts are computed where cat puts them": ("""
    %0: float32[2, 16] = tensor()
    %1: float32[2, 16] = exp(%0)
    %2: float32[2, 16] = sin(%0)
    %3: float32[4, 16] = cat([%1, %2], 0)
    return %3""", [alias_buffers], """
    %0: float32[4, 16] = allocate()
    %1: float32[2, 16] = view(%0, 0)
    %2: float32[2, 16] = tensor()
    %1 <- exp(%2)
    %3: float32[2, 16] = view(%0, 128)
    %3 <- sin(%2)
    return %0"""),
}


@pytest.mark.parametrize("what", PASSES)
def test_pass(what):
    text, passes, wanted = PASSES[what]
    assert after(text, *passes) == lines(wanted)


PRODUCTS = """
    %0: float32[8, 8] = tensor()
    %1: float32[8, 8] = tensor()
    %2: float32[8, 8] = mm(%0, %1)
    %3: float32[8, 8] = exp(%0)
    %4: float32[8, 8] = mm(%3, %1)
    %5: float32[8, 8] = sin(%0)
    %6: float32[8, 8] = mm(%5, %1)
    return %2, %4, %6"""


def test_products_by_one_matrix_are_merged_in_mode_fast_only():
    def stacked(*arrays):
        return sum(" stack(" in line or " slices(" in line for line in arrays)

    text = PRODUCTS.replace("return %2, %4, %6", "%7: float32[8, 8] = add(add(%2, %4), %6)\n    return %7")
    assert after(text, merge_products) == lines(text)
    assert stacked(*after(text, merge_products, fast=True)) == 2


def test_a_transposed_matrix_that_many_products_read_is_copied():
    text = """
    %0: float32[16, 16] = tensor()
    %1: float32[16, 16] strides [1, 16] = view(%0, 0)
    """ + "".join(f"\n    %{2 + 2 * i}: float32[512, 16] = tensor()"
                  f"\n    %{3 + 2 * i}: float32[512, 16] = mm(%{2 + 2 * i}, %1)" for i in range(3)) + """
    return %3, %5, %7"""
    assert sum("= copy(" in line for line in after(text, assign_layouts, fast=True)) == 1


@pytest.mark.parametrize("seed", range(40))
def test_programs_read_back(seed, monkeypatch):
    seen = []

    def show(program):
        text = str(program)
        if ".step(" not in text and "initial(" not in text:
            seen.append(text)
            assert str(parse(text, program.fast)) == text

    monkeypatch.setattr(lowering, "PASSES", [part for rewrite in lowering.PASSES for part in (rewrite, show)])
    compiled = cygrad.compile(random_function(seed), mode="fast" if seed % 2 else "default")
    inputs = [numbers(16, 16, seed=seed * 5 + place) for place in range(4)]
    for _ in range(2):
        compiled(*inputs)
    assert seen


INVALID = {
    "read before it is computed": "%0: float32[4] = tensor()\n%1: float32[4] = exp(%0)\n"
                                  "%2: float32[4] = sin(%1)\nreturn %2",
    "does not broadcast": "%0: float32[4] = tensor()\n%1: float32[3] = exp(%0)\nreturn %1",
    "several sizes": "%0: float32[4] = tensor()\n%1: float32[8], %2: float32[4] = "
                     "loop(%1 = exp(%0); %2 = sin(%0))\nreturn %1, %2",
}


@pytest.mark.parametrize("what", INVALID)
def test_invalid_programs_are_refused_with_the_name_of_the_pass(what):
    def breaks(program):
        if "before" in what:
            program.operations = program.operations[::-1]

    with pytest.raises(RuntimeError, match=rf"after breaks: .*{what}"):
        lowering.optimize(parse(INVALID[what]), [breaks])


@pytest.mark.parametrize(("text", "message"), [
    ("%0 = exp", "new array|expected"), ("%1: float32[4] = exp(%0)", "%0 is read before its line"),
    ("%0: float32[4]", "result = operation")])
def test_text_that_is_no_program_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)
