"""
Which operations threads share: those that need nothing of each other.

An operation that all before it lead to, and that all behind it need, leaves nothing to share at its place; so does an
optimizer, or another change that can be seen from outside. Between such places lie the stretches of a program. One in
which much work is not on the longest way through it is run by a team.
"""

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.regions import primitive_cost
from cygrad._core.compiler.stretch import Stretch

# Work is counted in additions of elements, as kernels do that cut their loops for threads.
OF_A_KERNEL = 4                   # for each element that a kernel reads or makes
MULTIPLICATIONS = 4               # of a product: as much as one addition
WORTH_A_TEAM = 1 << 19            # in a stretch, that is not on the longest way: some 15 microseconds
LEAST_SHARE = 8                   # ... of all work in it: an eighth
LEAST_MEAN = 1 << 15              # of an operation on average: for a team, each costs a tenth of a microsecond more

__all__ = ["shared"]


def multiplications(lowering, operation):
    """Those of a product or a convolution; 0 for others."""
    name = operation.operator.name if operation.operator is not None else operation.kind.removesuffix("_into")
    first, second = (lowering.arrays[number] if isinstance(number, int) else None
                     for number in (*operation.arguments, None, None)[:2])
    result = lowering.arrays[(*operation.results, operation.target)[0]]
    if name in ("mm", "matmul", "bmm", "mv", "linear"):
        return result.numel * (1, *first.shape)[-1]
    if name in ("addmm", "accumulate"):
        return result.numel * second.shape[-1]
    if name.startswith("convolution"):
        images = result if name == "convolution" else first
        kernel = result if name == "convolution_weight_backward" else second
        return images.numel * kernel.numel // max(kernel.shape[0], 1)
    return 0


def work_of(lowering, operation):
    """About how much an operation has to do."""
    elements = [lowering.arrays[number].numel
                for number in (*operation.reads(), *operation.writes(), *operation.results) if number >= 0]
    regions = [region for region, _, _ in operation.parts] if operation.kind == "sweep" else [operation.region]
    if regions != [None]:
        return max(elements) * sum(primitive_cost(primitive) for region in regions for primitive, _ in region.code)
    if operation.kind in ("optimize", "room", "draw"):
        return 0
    return sum(elements) * OF_A_KERNEL + multiplications(lowering, operation) // MULTIPLICATIONS


def cuts(before):
    """Places of operations that all before lead to and all behind need."""
    n = len(before)
    last_need, first_user = [-1] * n, [n] * n
    for place, needs in enumerate(before):
        last_need[place] = max(needs, default=-1)
        for need in needs:
            first_user[need] = min(first_user[need], place)
    # Of the operations up to a place those that none of these needs, and of those behind it those that need none.
    ends, starts = [0] * (n + 1), [0] * (n + 1)
    for place in range(n):
        ends[place] += 1
        ends[first_user[place]] -= 1
        starts[last_need[place] + 1] += 1
        starts[place + 1] -= 1
    found, open_ends, open_starts = [], 0, 0
    for place in range(n):
        open_ends += ends[place]
        open_starts += starts[place]
        if open_ends == open_starts == 1:
            found.append(place)
    return found


def longest_way(before, work, start, stop):
    """The most work of operations of a stretch that wait for each other."""
    ways = []
    for place in range(start, stop):
        ways.append(work[place] + max((ways[need - start] for need in before[place] if need >= start), default=0))
    return max(ways)


def shared(lowering):
    """The Stretches of the operations of a Lowering."""
    work = [work_of(lowering, operation) for operation in lowering.operations]
    if sum(work) < WORTH_A_TEAM:
        return []
    before, found = dependencies(lowering), []
    places = [-1, *cuts(before), len(before)]
    for start, stop in zip([place + 1 for place in places], places[1:], strict=False):
        total = sum(work[start:stop])
        if stop - start < 2 or total < (stop - start) * LEAST_MEAN:
            continue
        beside = total - longest_way(before, work, start, stop)
        if beside >= max(WORTH_A_TEAM, total // LEAST_SHARE):
            found.append(Stretch(start, [[need - start for need in needs if need >= start]
                                         for needs in before[start:stop]]))
    return found
