"""
How operators work on batches: for each row of the table a rule, derived from the row where it can be.

A rule gets a `Call`: the arguments, tensors of the batch having its entries in their first dimension, and gives the
results in the same form. Four rules are general, and which of them holds is read from the row:

elementwise   the row has an element-wise formula: operands are aligned, so that broadcasting means the same;
along_dims    it has arguments that count dimensions or sizes: these are counted from one further on;
leading       it works on the last dimensions and takes any number before them;
one_by_one    everything else, and always right: entry after entry, and the results stacked.

`rules` has those of products, indices and layers. A rule that does not cover its arguments gives NotImplemented; then
the entries are taken one by one.
"""

from cygrad._core.arrays.dtype import promote_types
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import Operator, operators
from cygrad._core.table.signature import INT, INTS, TENSORS
from cygrad.func.batched import Batched, entry, value_at

__all__ = ["RULES", "Call", "aligned", "along_dims", "call", "leading", "one_by_one"]

# Arguments that count dimensions, and those that are the shape of a result.
DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "start_dim", "end_dim", "source", "destination"}
SHAPES = {"shape", "size"}
# Rows that work on the last dimensions.
LEADING = {
    "adjoint", "alias", "cast", "clone", "contiguous", "distances", "identity_like", "imag_view",
    "linalg_check_phase", "linalg_cholesky_ex", "linalg_cofactor", "linalg_cofactor_backward", "linalg_cofactor_second",
    "linalg_det", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_geqrf", "linalg_inv_ex",
    "linalg_lstsq", "linalg_lu_factor_ex", "linalg_matrix_exp", "linalg_permute_rows", "linalg_qr",
    "linalg_slogdet", "linalg_solve_triangular", "linalg_solve_with", "linalg_svd", "linalg_svdvals",
    "matrix_transpose", "one_hot", "positive", "real_view", "refuse_gradient", "tril", "triu", "underived",
    "unknown_gradient", "view_as_complex", "view_as_real", "written",
}
RULES = {}               # name of a row -> its rule, where it cannot be derived
_found = {}              # function -> its row and whether it modifies its first argument; after a call, the operation


class Operation:
    """A function of the table: its row, and the rule for batches."""

    def __init__(self, function, row, inplace):
        from cygrad.func import rules  # noqa: F401  (fills RULES)
        self.function, self.inplace, self.name = function, inplace, row["name"]
        self.names, self.kinds, *_, by_name = zip(*row["arguments"], strict=True)
        self.positional = by_name.count(False)
        self.list, self.view = row["list"], row["view"]
        self.rule = RULES.get(self.name) or self.derived(row)

    def derived(self, row):
        """Derive the rule from the row."""
        if row["forward"] is not None:
            return elementwise
        if self.name in LEADING:
            return leading
        if not DIMS.isdisjoint(self.names):
            return along_dims
        return one_by_one

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
                found = value_at(value, level)
                self.batched.append(found is not None)
                self.args.append(value if found is None else found)

    def tensors(self):
        """Yield (index, tensor, is it batched?) of the arguments that are one tensor."""
        return [(place, value, self.batched[place]) for place, value in enumerate(self.args)
                if isinstance(value, Tensor)]

    def rank(self, place):
        """Number of dimensions of an entry."""
        return self.args[place].ndim - self.batched[place]

    def shape(self, place):
        """Return the shape of an entry."""
        shape = tuple(self.args[place].shape)
        return shape[1:] if self.batched[place] else shape

    def spread(self, value, batched):
        """Return a tensor with all entries in its first dimension."""
        return value if batched else operators.expand(value, (self.size, *value.shape))

    def named(self, name):
        """Return the index of an argument."""
        return self.operation.names.index(name)

    def run(self, arguments=None):
        """Return the operation itself."""
        return self.operation(self.args if arguments is None else arguments)


MOST_NESTED = 64          # nested sequences, as everywhere


def operation_of(function):
    """Return the `Operation` of a function of the table; None for others."""
    found = _found.get(function)
    if found is None and isinstance(function, Operator):
        found = _found[function] = Operation(function, function.row, function.is_inplace)
    elif found is None and function is operators.index_put_into_:
        found = _found[function] = Operation(function, operators.index_put_into.row, True)
    return found


def top_level(arguments, depth=0):
    """Return the innermost batch that an argument is an entry of."""
    found = None
    if depth > MOST_NESTED:
        raise ValueError(f"vmap: sequences are nested more than {MOST_NESTED} deep; perhaps one contains itself.")
    for value in arguments:
        if type(value) is Batched:
            if found is None or value._level.number > found.number:
                found = value._level
        elif isinstance(value, (list, tuple)):
            inner = top_level(value, depth + 1)
            if inner is not None and (found is None or inner.number > found.number):
                found = inner
    return found


def call(function, args, kwargs):
    """Call a function with an entry of a batch, for the whole batch."""
    out = kwargs.pop("out", None)
    operation = operation_of(function)
    if operation is None:
        from cygrad.func.rules import BY_NAME
        arguments = [*args, *kwargs.values()]
        name = getattr(function, "__name__", "")
        if name not in BY_NAME:
            raise NotImplementedError(f"vmap: {name or function!r} has no rule for batches. Call it outside of vmap.")
        return BY_NAME[name](function, top_level(arguments), args, kwargs)
    arguments = [*args, *[kwargs[name] for name in operation.names[len(args):]]]
    level = top_level(arguments)
    found = Call(operation, level, arguments)
    if operation.inplace:
        if found.batched[0] is False:
            refuse_change(operation.name, found)
        results = operation.rule(found)
        if results is NotImplemented:
            one_by_one(found)
        return arguments[0]
    results = operation.rule(found)
    if results is NotImplemented:
        results = one_by_one(found)
    wrapped = wrap(results, level)
    if out is None:
        return wrapped
    if isinstance(wrapped, tuple):
        for target, result in zip(out, wrapped, strict=True):
            target.copy_(result)
        return out
    return out.copy_(wrapped)


def refuse_change(name, call):
    """Refuse writing entries of a batch to an unbatched tensor."""
    raise RuntimeError(f"vmap: {name}_: what differs between the entries of a batch cannot be written inplace into a "
                       f"tensor that is the same for all of them (got one for {call.size} entries). Use the form "
                       "without underscore, or make the tensor with new_zeros, zeros_like or clone of a batched one.")


def wrap(results, level):
    """Return entries for results with the batch as first dimension."""
    if isinstance(results, Tensor):
        return entry(results, level)
    if isinstance(results, tuple):
        made = [wrap(result, level) for result in results]
        return type(results)(*made) if hasattr(results, "_fields") else tuple(made)
    return [wrap(result, level) for result in results] if isinstance(results, list) else results


# ---- rules

def padded(value, batched, rank, wanted):
    """Add dimensions of size 1 in front of the entries of a tensor."""
    if not batched or rank >= wanted:
        return value
    return operators.reshape(value, (value.shape[0], *[1] * (wanted - rank), *value.shape[1:]))


def aligned(call, arguments=None):
    """Align operands so that they broadcast as their entries would."""
    tensors = call.tensors()
    rank = max(call.rank(place) for place, _, _ in tensors)
    arguments = list(call.args)
    for place, value, batched in tensors:
        arguments[place] = padded(value, batched, call.rank(place), rank)
    return arguments


def elementwise(call):
    """Align operands; 0-dim entries do not decide the dtype, as in single calls."""
    arguments = aligned(call)
    tensors = call.tensors()
    if len({value.dtype for _, value, _ in tensors}) > 1:
        wide = [value.dtype for place, value, _ in tensors if call.rank(place)]
        if wide:
            common = wide[0]
            for dtype in wide[1:]:
                common = promote_types(common, dtype)
            for place, value, batched in tensors:
                if batched and not call.rank(place) and kind(value.dtype) and kind(value.dtype) <= kind(common):
                    arguments[place] = operators.cast(arguments[place], common)
    return call.run(arguments)


def kind(dtype):
    """bool, integer, real, complex: 0 to 3."""
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(str(dtype).rpartition(".")[2] != "bool")


def leading(call):
    """Treat the batch as another leading dimension; operands get the same number of them."""
    tensors = call.tensors()
    if len(tensors) == 1:
        return call.run()
    rank = max(call.rank(place) for place, _, _ in tensors)
    arguments = list(call.args)
    for place, value, batched in tensors:
        wanted = rank - (call.operation.names[place] == "pivots")        # a vector for each matrix
        arguments[place] = padded(call.spread(value, batched), True, call.rank(place), wanted)
    return call.run(arguments)


def counted(dims, rank):
    """Return dimensions of an entry as those of the batch; None if one is out of range."""
    single = not isinstance(dims, (list, tuple))
    found = [dim.__index__() for dim in ([dims] if single else dims)]
    if not all(-rank <= dim < rank for dim in found):
        return None
    found = [dim % rank + 1 for dim in found]
    return found[0] if single else tuple(found)


def along_dims(call):
    """Count dimensions from the one after the batch; shapes begin with the batch size."""
    operation = call.operation
    arguments = list(call.args)
    lifted = flat = None
    rank = _rank_of(call)
    if rank is None:
        return NotImplemented
    keeps = "keepdim" in operation.names
    if rank == 0:
        if "shape" in operation.names or (not keeps and operation.name not in SCANS):
            return NotImplemented
        lifted, rank = True, 1
    for place, (name, kind) in enumerate(zip(operation.names, operation.kinds, strict=True)):
        value = arguments[place]
        if kind == TENSORS:
            if any(part is None for part in value):
                return NotImplemented
            ranks = {part.ndim - batched for part, batched in zip(value, call.batched[place], strict=True)}
            if len(ranks) != 1:
                return NotImplemented
            arguments[place] = [call.spread(*pair) for pair in zip(value, call.batched[place], strict=True)]
        elif isinstance(value, Tensor):
            if name == "index" and operation.name.startswith("index"):       # of one dimension, regardless of self
                if call.batched[place]:
                    return NotImplemented
                continue
            arguments[place] = call.spread(value, call.batched[place])
            if lifted:
                arguments[place] = operators.unsqueeze(arguments[place], 1)
        elif name in DIMS and kind in (INT, INTS):
            if value is None or (kind == INTS and keeps and len(_listed(value)) == 0):
                if kind == INT or operation.name == "roll":
                    flat = place
                    continue
                value = tuple(range(rank)) if operation.name != "squeeze" else tuple(
                    dim for dim, size in enumerate(call.shape(0)) if size == 1)
            arguments[place] = counted(value, rank)
            if arguments[place] is None:
                return NotImplemented
        elif name in SHAPES and kind == INTS and operation.name not in PARTS:
            arguments[place] = (call.size, *_listed(value))
    if flat is not None:
        return _flat(call, arguments, flat)
    results = call.run(arguments)
    return _each(results, lambda result: operators.reshape(result, (call.size,))) if lifted else results


# Rows whose results are 0-dim if the argument is; whose `size` is no shape; that add a dimension.
SCANS = {"cumsum", "cumsum_reverse", "cumprod", "softmax", "log_softmax", "softmax_backward", "log_softmax_backward",
         "cummax", "cummin", "logcumsumexp", "sort", "argsort", "flip"}
PARTS = {"unfold", "fft_c2r", "fft_weigh"}
ADDING = {"unsqueeze", "stack"}


def _listed(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _rank_of(call):
    """
    Return how many dimensions the call counts: those of an entry of the first argument, or of the shape it comes from.
    """
    names = call.operation.names
    if "shape" in names and call.operation.name not in ("reshape", "scatter_backward"):
        return len(_listed(call.args[call.named("shape")]))
    first, batched = call.args[0], call.batched[0]
    if isinstance(first, list):
        if not first or first[0] is None:
            return None
        first, batched = first[0], batched[0]
    return first.ndim - batched + (call.operation.name in ADDING)


def _each(results, change):
    """Apply a function to results of any structure."""
    if isinstance(results, Tensor):
        return change(results)
    made = [_each(result, change) for result in results]
    return type(results)(*made) if hasattr(results, "_fields") else type(results)(made)


def _flat(call, arguments, place):
    """Without a dimension, elements count in row-major order."""
    shape = call.shape(0)
    arguments = [operators.reshape(value, (call.size, -1)) if isinstance(value, Tensor) else value
                 for value in arguments]
    arguments[place] = 1 if call.operation.kinds[place] == INT else (1,)
    keeps = "keepdim" in call.operation.names and arguments[call.named("keepdim")]
    results = call.run(arguments)
    if call.operation.name == "roll":
        return operators.reshape(results, (call.size, *shape))
    return operators.reshape(results, (call.size, *[1] * len(shape))) if keeps else results


def one_by_one(call):
    """Run entry by entry, and stack the results."""
    parts = []
    for value, batched in zip(call.args, call.batched, strict=True):
        if batched is True:
            parts.append(operators.unbind(value, 0) if call.size else [value.new_zeros(tuple(value.shape)[1:])])
        elif isinstance(batched, list) and any(batched):
            listed = [operators.unbind(part, 0) if inside and call.size
                      else [part.new_zeros(tuple(part.shape)[1:]) if inside else part] * max(call.size, 1)
                      for part, inside in zip(value, batched, strict=True)]
            parts.append([list(entries) for entries in zip(*listed, strict=True)])
        else:
            parts.append([value] * max(call.size, 1))
    if call.operation.inplace:
        if call.size:
            views = [operators.select(call.args[0], 0, number) for number in range(call.size)]
            for number, view in enumerate(views):
                call.operation([view, *[part[number] for part in parts[1:]]])
        return None
    rows = [call.operation(list(arguments)) for arguments in zip(*parts, strict=True)]
    if not isinstance(rows[0], tuple):
        return _stacked(call, rows)
    made = [_stacked(call, column) for column in zip(*rows, strict=True)]
    return type(rows[0])(*made) if hasattr(rows[0], "_fields") else tuple(made)


def _stacked(call, results):
    """Return the results for all entries as one tensor."""
    if results[0] is None:
        return None
    if not isinstance(results[0], Tensor):
        if all(result == results[0] for result in results):
            return results[0]
        raise RuntimeError(f"vmap: {call.operation.name}: the result is no Tensor, and would depend on the entry of "
                           "the batch. Data-dependent control flow is possible outside of vmap only.")
    shapes = {tuple(result.shape) for result in results}
    if len(shapes) > 1:
        raise RuntimeError(f"vmap: {call.operation.name}: the shape of the result depends on values, and differs "
                           f"between the entries of the batch (got {sorted(shapes)[:2]}). Such dynamic shapes are "
                           "possible outside of vmap only.")
    stacked = operators.stack(list(results), 0)
    return stacked if call.size else operators.slice(stacked, 0, 0, 0, 1)
