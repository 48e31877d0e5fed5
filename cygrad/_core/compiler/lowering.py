"""
Lower a trace to a program, and run the passes.

Dead results are removed, common subexpressions are computed once, redundant copies are dropped, and element-wise
operations with a single reader are fused into it, so intermediate values stay in registers. Each value goes through the
same operations as before, so results are bit-identical, unless mode "fast" merges products.
"""

from cygrad._core.compiler.buffer_aliasing import alias_buffers
from cygrad._core.compiler.copy_removal import remove_copies
from cygrad._core.compiler.dead_code import remove_dead, remove_positions
from cygrad._core.compiler.executable import debug_build
from cygrad._core.compiler.fusion import fuse_expressions, fuse_loops
from cygrad._core.compiler.layout_assignment import assign_layouts
from cygrad._core.compiler.product_accumulation import accumulate_products
from cygrad._core.compiler.product_merging import merge_products
from cygrad._core.compiler.program import Program, operation_of
from cygrad._core.compiler.value_numbering import copy_constants, fold_constants, merge_equal, remove_unit_factors

# Functions that rewrite a Program, in the order in which they run.
PASSES = (copy_constants, remove_dead, fold_constants, remove_unit_factors, merge_equal, remove_copies, remove_dead,
          remove_positions, merge_products, assign_layouts, accumulate_products, fuse_expressions, fuse_loops,
          alias_buffers)
VERIFY = debug_build()            # each pass


def lower(tracer, outgoing, start=0, stop=None, fast=False):
    """
    Return the optimized Program of steps of a trace.

    Parameters
    ----------
    tracer : Tracer
    outgoing : set of int
        Array numbers of the outputs.
    start, stop : int
        Range of steps; results of earlier steps are inputs.
    fast : bool
        Allow other orders of summation.
    """
    operations = [operation_of(step) for step in tracer.steps[start:stop]]
    return optimize(Program(tracer.arrays, tracer.buffers, operations, outgoing, start, fast, tracer.snapshot))


def optimize(program, passes=None):
    """Run passes, by default all, on a program and return it; debug builds verify it after each."""
    for rewrite in PASSES if passes is None else passes:
        rewrite(program)
        if VERIFY:
            program.verify(rewrite.__name__)
    return program
