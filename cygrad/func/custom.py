"""Custom functions under `vmap`: by their `vmap` method, or by a rule generated from their other methods."""

from contextlib import contextmanager
from typing import NamedTuple

from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.autograd.function import Function
from cygrad.func.batched import Level, active_levels, entry, value_at
from cygrad.random.generator import current, own_generator
from cygrad.utils.pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["apply_to_batch"]


class VmapInfo(NamedTuple):
    """The `info` argument of the `vmap` of a custom function."""

    batch_size: int
    randomness: str


def apply_to_batch(function, level, args, kwargs):
    """Call ``cls.apply(*args)`` for a whole batch."""
    cls = function.__self__
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(f"{cls.__name__}: expected one rule for vmap (got both generate_vmap_rule=True and a "
                           "static method vmap). Remove one of them.")
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(f"{cls.__name__}: a generated rule for vmap needs setup_context (got a Function whose "
                           "forward takes ctx). Move the code of forward that uses ctx to a static method "
                           "setup_context.")
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(f"{cls.__name__}: the Function does not have vmap support (got a call under vmap). Set "
                           "generate_vmap_rule=True in the class, or define a static method vmap.")
    values, dims = _held(args, level)
    if not own:
        return _entries(_generated(cls, level, dims)(*values), level)
    with _outside(level):
        answer = cls.vmap(VmapInfo(level.size, level.randomness), dims, *values)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise RuntimeError(f"{cls.__name__}: its vmap must have two returns: the outputs and their batch dimensions "
                           f"(got {type(answer).__name__}).")
    return _entries(answer[0], level, answer[1])


def _held(args, level):
    """Return the batched arguments, and the batch dimension of each."""
    found = [None if not isinstance(arg, Tensor) else value_at(arg, level) for arg in args]
    return (tuple(arg if value is None else value for arg, value in zip(args, found, strict=True)),
            tuple(None if value is None else 0 for value in found))


def _entries(results, level, dims=0):
    """Return results as `Batched`."""
    from cygrad.func.vmap import spread
    leaves, spec = tree_flatten(results)
    made = []
    for leaf, dim in zip(leaves, spread(dims, results, "vmap staticmethod: out_dims"), strict=True):
        if dim is None or not isinstance(leaf, Tensor):
            made.append(leaf)
        else:
            made.append(entry(leaf if dim == 0 else operators.movedim(leaf, dim, 0), level))
    return tree_unflatten(made, spec)


@contextmanager
def _outside(level):
    """Leave the level within a block."""
    levels = active_levels()
    place = levels.index(level)
    del levels[place]
    generator = current()
    try:
        with own_generator(getattr(generator, "outer", generator)):
            yield
    finally:
        levels.insert(place, level)


class _Context:
    """The ``ctx`` of the methods of a function: wraps that of the whole batch."""

    def __init__(self, ctx, level):
        depth = vars(ctx)["_depth"] + 1 if type(ctx) is _Context else 0
        vars(self).update(_ctx=ctx, _level=level, _depth=depth)

    def __getattr__(self, name):
        return self._entries(getattr(self._ctx, name))

    def __setattr__(self, name, value):
        setattr(self._ctx, name, self._held(value))

    def _held(self, value):
        return tree_map(lambda leaf: _Held(value_at(leaf, self._level)) if isinstance(leaf, Tensor)
                        and value_at(leaf, self._level) is not None else leaf, value)

    def _entries(self, value):
        return tree_map(lambda leaf: entry(leaf.value, self._level) if isinstance(leaf, _Held) else leaf, value)

    def _keep(self, method, tensors):
        values = [tensor if tensor is None else value_at(tensor, self._level) for tensor in tensors]
        setattr(self._ctx, f"_{method}_{self._depth}", [value is not None for value in values])
        getattr(self._ctx, method)(*[tensor if value is None else value
                                     for tensor, value in zip(tensors, values, strict=True)])

    def save_for_backward(self, *tensors):
        """Save batched tensors."""
        self._keep("save_for_backward", tensors)

    def save_for_forward(self, *tensors):
        """Save batched tensors."""
        self._keep("save_for_forward", tensors)

    def mark_dirty(self, *tensors):
        """Mark batched tensors."""
        self._keep("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors):
        """Mark batched tensors."""
        self._keep("mark_non_differentiable", tensors)

    @property
    def saved_tensors(self):
        """Saved tensors, as `Batched`."""
        method = "save_for_forward" if self._ctx.in_jvp else "save_for_backward"
        which = getattr(self._ctx, f"_{method}_{self._depth}", ())
        return tuple(entry(value, self._level) if held else value
                     for value, held in zip(self._ctx.saved_tensors, which, strict=True))


class _Held:
    """Reference to a batched tensor, as a leaf of trees."""

    def __init__(self, value):
        self.value = value


def _generated(cls, level, dims):
    """Return the function for whole batches, whose methods call those of `cls` under `vmap`."""
    size, randomness = level.size, level.randomness

    def batch(value, level):
        """Return the batched tensor of an entry."""
        held = value_at(value, level)
        return operators.expand(value, (size, *value.shape)) if held is None else held

    def entries(values, level, held):
        return tuple(entry(value, level) if known and value is not None else value
                     for value, known in zip(values, held, strict=True))

    class Generated(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*values):
            with Level(size, randomness) as level:
                results = cls.forward(*entries(values, level, [dim == 0 for dim in dims]))
                single = not isinstance(results, tuple)
                made = tuple(batch(result, level) if isinstance(result, Tensor) else result
                             for result in ((results,) if single else results))
            return made[0] if single else made

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.in_jvp = False
            with Level(size, randomness) as level:
                given = entries(inputs, level, [dim == 0 for dim in dims])
                known = {id(value): made for value, made in zip(inputs, given, strict=True)}
                single = not isinstance(output, tuple)
                results = tuple(result if not isinstance(result, Tensor) else known[id(result)] if id(result) in known
                                else entry(result, level) for result in ((output,) if single else output))
                cls.setup_context(_Context(ctx, level), given, results[0] if single else results)

        @staticmethod
        def backward(ctx, *grads):
            with Level(size, randomness) as level:
                method = cls.vjp if cls.backward is Function.backward else cls.backward
                found = method(_Context(ctx, level), *entries(grads, level, [True] * len(grads)))
                found = found if isinstance(found, tuple) else (found,)
                return tuple(gradient if gradient is None else reduced(gradient, dim, level)
                             for gradient, dim in zip(found, dims, strict=True))

        @staticmethod
        def jvp(ctx, *tangents):
            ctx.in_jvp = True
            try:
                with Level(size, randomness) as level:
                    found = cls.jvp(_Context(ctx, level), *entries(tangents, level, [dim == 0 for dim in dims]))
                    single = not isinstance(found, tuple)
                    made = tuple(batch(tangent, level) if isinstance(tangent, Tensor) else tangent
                                 for tangent in ((found,) if single else found))
                    return made[0] if single else made
            finally:
                ctx.in_jvp = False

    def reduced(gradient, dim, level):
        """Sum the gradients of all entries for an unbatched argument."""
        if dim == 0:
            return batch(gradient, level)
        held = value_at(gradient, level)
        return gradient * size if held is None else operators.sum(held, (0,))

    Generated.__name__ = Generated.__qualname__ = f"Vmapped{cls.__name__}"
    return Generated.apply
