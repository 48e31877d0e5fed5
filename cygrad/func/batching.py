"""
Batching rules of operators, named by the key `vmap` of their row.

A rule takes a `Call`, with the batch in the first dimension of batched tensors. It returns results of the same form, or
NotImplemented for arguments that it does not support; then entries are processed one by one.

elementwise   operands are aligned, so that they broadcast as their entries would; the default of element-wise rows
leading       the operator works on the last dimensions, with any number before them
dims          arguments count dimensions or sizes: from one further on; the default of rows with such arguments
scan          like dims, and a tensor without dimensions counts as one element
new_dim       like dims, and the result has one dimension more
folded        the first dimension counts independent images: the batch is merged with it
planes        the last dimensions are an image: all dimensions before them are merged
loop: ...     entry after entry, and the results stacked; the text says why
family.name   a function in `_core/table/ops`, next to the rows of a family
"""

from copy import copy
from functools import cache
from importlib import import_module

from numpy import ndarray

from cygrad._core.arrays.dtype import promote_types
from cygrad._core.creation.creation import as_tensor
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import Operator, operators
from cygrad._core.table.signature import DIMS, INT, INTS, TENSORS
from cygrad.func.batched import Batched, entry, value_at

__all__ = ["Call", "call", "refuse_change", "row_function"]

# Arguments that are the shape of a result, and those whose number of sizes is that of the dimensions of an image.
SHAPES = {"shape", "size"}
PLANES = ("n", "kernel_size", "output_size", "size")


def row_function(path):
    """Return the function next to the rows of a family that a row names as ``"family.name"``."""
    family, _, name = path.partition(".")
    return getattr(import_module(f"cygrad._core.table.ops.{family}"), name)


class Operation:
    """A function of the table: its row, and the rule for batches."""

    def __init__(self, function, row, inplace):
        self.function, self.inplace, self.name = function, inplace, row["name"]
        self.names, self.kinds, *_, by_name = zip(*row["arguments"], strict=True)
        self.positional = by_name.count(False)
        rule = row["vmap"] or "loop: "
        self.rule = (Call.one_by_one if rule.startswith("loop: ") else row_function(rule) if "." in rule
                     else getattr(Call, rule))

    def __call__(self, arguments):
        """Return the function itself."""
        positional = self.positional
        return self.function(*arguments[:positional], **dict(zip(self.names[positional:], arguments[positional:],
                                                                 strict=True)))


class Call:
    """One call of an operation for a batch."""

    def __init__(self, operation, level, arguments):
        self.operation, self.level, self.size = operation, level, level.size
        self.args: list = []
        self.batched: list = []
        for value in arguments:
            if isinstance(value, (list, tuple)):
                found = [value_at(part, level) for part in value]
                self.batched.append([part is not None for part in found])
                self.args.append([given if part is None else part for given, part in zip(value, found, strict=True)])
            else:
                if isinstance(value, ndarray):        # the same for all entries
                    value = as_tensor(value)
                found = value_at(value, level)
                self.batched.append(found is not None)
                self.args.append(value if found is None else found)

    def tensors(self):
        """Return (index, tensor, whether it is batched) of the arguments that are one tensor."""
        return [(place, value, self.batched[place]) for place, value in enumerate(self.args)
                if isinstance(value, Tensor)]

    def rank(self, place):
        """Return the number of dimensions of an entry."""
        return self.args[place].ndim - self.batched[place]

    def shape(self, place):
        """Return the shape of an entry."""
        shape = tuple(self.args[place].shape)
        return shape[1:] if self.batched[place] else shape

    def sizes(self, place):
        """Return an argument of type int[] as a tuple."""
        return listed(self.args[place])

    def is_empty(self):
        """Return whether a tensor has no elements."""
        return any(0 in value.shape for _, value, _ in self.tensors())

    def spread(self, place):
        """Return an argument with all entries in its first dimension."""
        return self._spread(self.args[place], self.batched[place])

    def _spread(self, value, batched):
        return value if batched else operators.expand(value, (self.size, *value.shape))

    def _spread_list(self, place):
        return [self._spread(*pair) for pair in zip(self.args[place], self.batched[place], strict=True)]

    @staticmethod
    def pad(value, batched, rank):
        """Return a tensor whose entries have dimensions of size 1 in front of their own, `rank` of them in all."""
        if not batched or value.ndim > rank:
            return value
        return operators.reshape(value, (value.shape[0], *[1] * (rank + 1 - value.ndim), *value.shape[1:]))

    def padded(self, place, rank):
        """Return an argument whose entries have dimensions of size 1 in front of their own."""
        return self.pad(self.args[place], self.batched[place], rank)

    @staticmethod
    def counted(dims, rank):
        """Return dimensions of an entry as those of the batch; None if one is out of range."""
        found = [dim.__index__() for dim in listed(dims)]
        if not all(-rank <= dim < rank for dim in found):
            return None
        found = [dim % rank + 1 for dim in found]
        return tuple(found) if isinstance(dims, (list, tuple)) else found[0]

    def named(self, name):
        """Return the index of an argument."""
        return self.operation.names.index(name)

    def run(self, arguments=None):
        """Call the operator."""
        return self.operation(self.args if arguments is None else arguments)

    def instead(self, operator):
        """Return the call of another operator with the same arguments."""
        other = copy(self)
        other.operation = operation_of(operator)
        return other

    # ---- rules

    def aligned(self):
        """Return the arguments, with operands aligned to broadcast as their entries would."""
        tensors = self.tensors()
        rank = max(self.rank(place) for place, _, _ in tensors)
        arguments = list(self.args)
        for place, _, _ in tensors:
            arguments[place] = self.padded(place, rank)
        return arguments

    def elementwise(self):
        """Align operands; 0-dim entries do not determine the dtype, as in single calls."""
        arguments = self.aligned()
        tensors = self.tensors()
        if len({value.dtype for _, value, _ in tensors}) > 1:
            wide = [value.dtype for place, value, _ in tensors if self.rank(place)]
            if wide:
                common = wide[0]
                for dtype in wide[1:]:
                    common = promote_types(common, dtype)
                for place, value, batched in tensors:
                    if batched and not self.rank(place) and kind(value.dtype) and kind(value.dtype) <= kind(common):
                        arguments[place] = operators.cast(arguments[place], common)
        return self.run(arguments)

    def leading(self):
        """Treat the batch as another leading dimension; operands get the same number of them."""
        tensors = self.tensors()
        if not tensors:
            return self.run([self._spread_list(place) if isinstance(value, list) else value
                             for place, value in enumerate(self.args)])
        if len(tensors) == 1:
            return self.run()
        rank = max(self.rank(place) for place, _, _ in tensors)
        arguments = list(self.args)
        for place, _, _ in tensors:
            wanted = rank - (self.operation.names[place] == "pivots")        # one vector for each matrix
            arguments[place] = self.pad(self.spread(place), True, wanted)
        return self.run(arguments)

    def dims(self, scan=False, rank=None, shared=None):
        """
        Count dimensions from the one after the batch; shapes begin with the batch size.

        Parameters
        ----------
        scan : bool
            Whether the operator takes a 0-dim tensor as one element.
        rank : int, optional
            Number of dimensions: by default that of `shape`, or else of the first argument.
        shared : int, optional
            Index of an argument that must not be batched.
        """
        operation, arguments = self.operation, list(self.args)
        lifted = flat = None
        if rank is None:
            rank = self._counted_rank()
        if rank is None or (shared is not None and self.batched[shared]):
            return NotImplemented
        keeps = "keepdim" in operation.names
        if rank == 0:
            if "shape" in operation.names or not (keeps or scan):
                return NotImplemented
            lifted, rank = True, 1
        for place, (name, kind) in enumerate(zip(operation.names, operation.kinds, strict=True)):
            value = arguments[place]
            if place == shared:
                continue
            if kind == TENSORS:
                if any(part is None for part in value) or len({part.ndim - batched for part, batched in zip(
                        value, self.batched[place], strict=True)}) != 1:
                    return NotImplemented
                arguments[place] = self._spread_list(place)
            elif isinstance(value, Tensor):
                arguments[place] = self.spread(place)
                if lifted:
                    arguments[place] = operators.unsqueeze(arguments[place], 1)
            elif name in DIMS and kind in (INT, INTS):
                if value is None or (kind == INTS and keeps and len(listed(value)) == 0):
                    if kind == INT or not keeps:
                        flat = place
                        continue
                    value = tuple(range(rank))
                arguments[place] = self.counted(value, rank)
                if arguments[place] is None:
                    return NotImplemented
            elif name in SHAPES and kind == INTS:
                arguments[place] = (self.size, *listed(value))
        if flat is not None:
            return self._flat(arguments, flat)
        results = self.run(arguments)
        return mapped(results, lambda result: operators.reshape(result, (self.size,))) if lifted else results

    def scan(self):
        """Count dimensions; a tensor without dimensions counts as one element."""
        return self.dims(scan=True)

    def new_dim(self):
        """Count dimensions of a result that has one more than the first argument."""
        rank = self._counted_rank()
        return NotImplemented if rank is None else self.dims(rank=rank + 1)

    def _counted_rank(self):
        """Return the number of dimensions of an entry of the first argument, or of the shape that it comes from."""
        if "shape" in self.operation.names:
            return len(self.sizes(self.named("shape")))
        first, batched = self.args[0], self.batched[0]
        if isinstance(first, list):
            if not first or first[0] is None:
                return None
            first, batched = first[0], batched[0]
        return first.ndim - batched

    def _flat(self, arguments, place):
        """Apply to the flattened entries, for calls without a dimension."""
        shape, kind = self.shape(0), self.operation.kinds[place]
        arguments = [operators.reshape(value, (self.size, -1)) if isinstance(value, Tensor) else value
                     for value in arguments]
        arguments[place] = 1 if kind == INT else (1,)
        keeps = "keepdim" in self.operation.names and arguments[self.named("keepdim")]
        results = self.run(arguments)
        if kind == INTS:
            return operators.reshape(results, (self.size, *shape))
        return operators.reshape(results, (self.size, *[1] * len(shape))) if keeps else results

    def fold(self, place):
        """Return an argument whose first dimension is merged with the batch."""
        value = self.spread(place)
        return operators.reshape(value, (value.shape[0] * value.shape[1], *value.shape[2:]))

    def unfold(self, results):
        """Return results whose first dimension is split into the batch and the dimension merged with it."""
        return mapped(results, lambda result: operators.reshape(
            result, (self.size, result.shape[0] // max(self.size, 1), *result.shape[1:])))

    def folded(self):
        """Merge the batch with the first dimension of all tensors."""
        if self.is_empty():
            return NotImplemented
        for place, *_ in self.tensors():
            self.args[place] = self.fold(place)
        return self.unfold(self.run())

    def planes(self):
        """Run plane by plane: each plane of each entry is an image of one channel."""
        names = self.operation.names
        place = self.named(next(name for name in PLANES if name in names))
        n = len(self.args[place]) if self.operation.kinds[place] == INTS else self.args[place]
        arguments, lead = list(self.args), self.shape(0)[:self.rank(0) - n]
        for place, value, _ in self.tensors():
            value = self.spread(place)
            if 0 in value.shape:
                return NotImplemented
            arguments[place] = operators.reshape(value, (-1, 1, *value.shape[value.ndim - n:]))
        if "shape" in names:
            place = self.named("shape")
            shape = self.args[place]
            if len(shape) != self.rank(0):
                return NotImplemented
            arguments[place] = (arguments[0].shape[0], 1, *shape[len(shape) - n:])
        return mapped(self.run(arguments),
                      lambda result: operators.reshape(result, (self.size, *lead, *result.shape[2:])))

    def one_by_one(self):
        """Run entry by entry, and stack the results."""
        parts = []
        for value, batched in zip(self.args, self.batched, strict=True):
            if batched is True:
                parts.append(operators.unbind(value, 0) if self.size else [value.new_zeros(tuple(value.shape)[1:])])
            elif isinstance(batched, list) and any(batched):
                entries = [operators.unbind(part, 0) if inside and self.size
                           else [part.new_zeros(tuple(part.shape)[1:]) if inside else part] * max(self.size, 1)
                           for part, inside in zip(value, batched, strict=True)]
                parts.append([list(row) for row in zip(*entries, strict=True)])
            else:
                parts.append([value] * max(self.size, 1))
        if self.operation.inplace:
            if self.size:
                views = [operators.select(self.args[0], 0, number) for number in range(self.size)]
                for number, view in enumerate(views):
                    self.operation([view, *[part[number] for part in parts[1:]]])
            return None
        rows = [self.operation(list(arguments)) for arguments in zip(*parts, strict=True)]
        if not isinstance(rows[0], tuple):
            return self._stacked(rows)
        made = [self._stacked(column) for column in zip(*rows, strict=True)]
        return type(rows[0])(*made) if hasattr(rows[0], "_fields") else tuple(made)

    def _stacked(self, results):
        """Return the results for all entries as one tensor."""
        if results[0] is None:
            return None
        if not isinstance(results[0], Tensor):
            if all(result == results[0] for result in results):
                return results[0]
            raise RuntimeError(f"vmap: {self.operation.name}: the result is not a Tensor and depends on the entry of "
                               "the batch. Data-dependent control flow is not supported under vmap.")
        shapes = {tuple(result.shape) for result in results}
        if len(shapes) > 1:
            raise RuntimeError(f"vmap: {self.operation.name}: the shape of the result depends on values and differs "
                               f"between entries of the batch (got {sorted(shapes)[:2]}). Dynamic shapes are not "
                               "supported under vmap.")
        stacked = operators.stack(list(results), 0)
        return stacked if self.size else operators.slice(stacked, 0, 0, 0, 1)


def listed(value):
    """Return an integer or a sequence of them as a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def kind(dtype):
    """Return the category of a dtype: 0 for bool, 1 integer, 2 real, 3 complex."""
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(str(dtype).rpartition(".")[2] != "bool")


def mapped(results, change):
    """Apply a function to the Tensors of results of any structure."""
    if isinstance(results, Tensor):
        return change(results)
    made = [mapped(result, change) for result in results]
    return type(results)(*made) if hasattr(results, "_fields") else type(results)(made)


@cache
def _operation(function):
    row = function.row if isinstance(function, Operator) else operators.index_put.row
    return Operation(function, row, not isinstance(function, Operator) or function.is_inplace)


def operation_of(function):
    """Return the `Operation` of a function of the table; None for others."""
    is_row = isinstance(function, Operator) or function is operators.index_put_
    return _operation(function) if is_row else None


MAX_NESTED = 64          # nested sequences, as in other functions


def top_level(arguments, depth=0):
    """Return the innermost level of the arguments."""
    found = None
    if depth > MAX_NESTED:
        raise ValueError(f"vmap: sequences are nested more than {MAX_NESTED} deep. Check that none contains itself.")
    for value in arguments:
        if type(value) is Batched:
            if found is None or value._level.number > found.number:
                found = value._level
        elif isinstance(value, (list, tuple)):
            inner = top_level(value, depth + 1)
            if inner is not None and (found is None or inner.number > found.number):
                found = inner
    return found


def running_level(arguments):
    """Return the innermost level of the arguments, whose vmap must not have ended."""
    level = top_level(arguments)
    if level.ended:
        raise RuntimeError("vmap: your tensor may have escaped from inside a function being vmapped: an entry is used "
                           "after the end of its vmap. Return it from the function.")
    return level


def call(function, args, kwargs):
    """Call a function that has batched arguments for the whole batch."""
    out = kwargs.pop("out", None)
    operation = operation_of(function)
    if operation is None:
        from cygrad.func.functions import FUNCTIONS
        arguments = [*args, *kwargs.values()]
        name = getattr(function, "__name__", "")
        if name not in FUNCTIONS:
            raise NotImplementedError(f"vmap: {name or function!r} has no rule for batches. Call it outside of vmap.")
        return FUNCTIONS[name](function, running_level(arguments), args, kwargs)
    arguments = [*args, *[kwargs[name] for name in operation.names[len(args):]]]
    level = running_level(arguments)
    found = Call(operation, level, arguments)
    if operation.inplace:
        if found.batched[0] is False:
            refuse_change(operation.name, level)
        if operation.rule(found) is NotImplemented:
            found.one_by_one()
        return arguments[0]
    results = operation.rule(found)
    if results is NotImplemented:
        results = found.one_by_one()
    wrapped = wrap(results, level)
    if out is None:
        return wrapped
    if isinstance(wrapped, tuple):
        for target, result in zip(out, wrapped, strict=True):
            target.copy_(result)
        return out
    return out.copy_(wrapped)


def refuse_change(name, level):
    """Raise an error if entries of a batch are written to an unbatched tensor."""
    raise RuntimeError(f"vmap: {name}_: batched values cannot be written inplace to an unbatched tensor (got one for "
                       f"{level.size} entries). Use the form without underscore, or create the tensor with new_zeros, "
                       "zeros_like or clone of a batched one.")


def wrap(results, level):
    """Return `Batched` results for results with the batch as first dimension."""
    if isinstance(results, Tensor):
        return entry(results, level)
    if isinstance(results, tuple):
        made = [wrap(result, level) for result in results]
        return type(results)(*made) if hasattr(results, "_fields") else tuple(made)
    return [wrap(result, level) for result in results] if isinstance(results, list) else results
