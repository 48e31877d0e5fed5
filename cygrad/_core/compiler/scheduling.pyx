"""
Scheduling of independent operations.

A barrier is an operation that depends on all before it and on which all after it depend; optimizer steps and externally
visible writes are barriers, too. Barriers split a program into sections. A section with enough work off its critical
path runs in parallel.
"""

from libc.stdint cimport int64_t
from cygrad._core.compiler.program cimport ArrayExpression, Operation, Program, array_at

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.executable import ParallelSection, primitive_cost

# Work is counted in element additions, as in the grain size of kernels.
KERNEL_COST = 4                   # per element that a kernel reads or writes
MULTIPLICATIONS_PER_ADDITION = 4  # of a product
MIN_PARALLEL_WORK = 1 << 19       # off the critical path of a section: about 15 microseconds
MIN_PARALLEL_FRACTION = 8         # ... and at least 1 / this of its total work
MIN_MEAN_WORK = 1 << 15           # per operation; scheduling one in parallel costs about 0.1 microseconds

cdef dict costs = {}              # primitive -> its cost


cdef object _multiplications(Program program, Operation operation):
    """Return the number of multiplications of a product or convolution, else 0."""
    name = operation.operator.name if operation.operator is not None else operation.kind.removesuffix("_into")
    first, second = (program.arrays[number] if isinstance(number, int) else None
                     for number in (operation.arguments + (None, None))[:2])
    result = program.arrays[(operation.results + (operation.target,))[0]]
    if name in ("mm", "matmul", "bmm", "mv", "linear"):
        return result.numel * (first.shape[len(first.shape) - 1] if first.shape else 1)
    if name in ("addmm", "accumulate"):
        return result.numel * second.shape[len(second.shape) - 1]
    if name.startswith("convolution"):
        images = result if name == "convolution" else first
        kernel = result if name == "convolution_weight_backward" else second
        return images.numel * kernel.numel // max(kernel.shape[0], 1)
    return 0


cdef object _work_of(Program program, Operation operation):
    """Estimate the work of an operation."""
    cdef int64_t cost = 0, total = 0, most = 0, size
    for numbers in (operation.reads(), operation.writes(), operation.results):
        for number in numbers:
            if number >= 0:
                size = array_at(program, number).size
                most, total = max(most, size), total + size
    expressions = operation.expressions()
    if expressions:
        for expression in expressions:
            for primitive, _ in (<ArrayExpression?>expression).form.code:
                if primitive not in costs:
                    costs[primitive] = primitive_cost(primitive)
                cost += costs[primitive]
        return most * cost
    if operation.kind in ("optimize", "allocate", "draw"):
        return 0
    return total * KERNEL_COST + _multiplications(program, operation) // MULTIPLICATIONS_PER_ADDITION


def barriers(before):
    """Return the positions of operations that depend on all before them and on which all after them depend."""
    n = len(before)
    last_need, first_user = [-1] * n, [n] * n
    for position, needs in enumerate(before):
        last_need[position] = max(needs, default=-1)
        for need in needs:
            first_user[need] = min(first_user[need], position)
    # Count operations before a position that nothing up to it needs, and after it those that need nothing from it on.
    ends, starts = [0] * (n + 1), [0] * (n + 1)
    for position in range(n):
        ends[position] += 1
        ends[first_user[position]] -= 1
        starts[last_need[position] + 1] += 1
        starts[position + 1] -= 1
    found, open_ends, open_starts = [], 0, 0
    for position in range(n):
        open_ends += ends[position]
        open_starts += starts[position]
        if open_ends == open_starts == 1:
            found.append(position)
    return found


def critical_path(before, work, start, stop):
    """Return the work on the longest chain of dependencies."""
    paths = []
    for position in range(start, stop):
        paths.append(work[position] + max(
            (paths[need - start] for need in before[position] if need >= start), default=0))
    return max(paths)


def parallel_sections(Program program not None):
    """Return the ParallelSections of a Program."""
    work = [_work_of(program, operation) for operation in program.operations]
    if sum(work) < MIN_PARALLEL_WORK or max(work) < MIN_MEAN_WORK:       # no section has this mean
        return []
    before, found = dependencies(program), []
    positions = [-1, *barriers(before), len(before)]
    for start, stop in zip([position + 1 for position in positions], positions[1:], strict=False):
        total = sum(work[start:stop])
        if stop - start < 2 or total < (stop - start) * MIN_MEAN_WORK:
            continue
        parallel_work = total - critical_path(before, work, start, stop)
        if parallel_work >= max(MIN_PARALLEL_WORK, total // MIN_PARALLEL_FRACTION):
            found.append(ParallelSection(start, [[need - start for need in needs if need >= start]
                                         for needs in before[start:stop]]))
    return found
