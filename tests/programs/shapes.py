"""Generate lines with views, copies and indexing."""

from math import prod

from tests.programs.chooser import at_least, fits, is_bool, is_floating, is_integer, is_tame, shape


def divisors(n):
    """All of a positive number."""
    return [k for k in range(1, n + 1) if n % k == 0] or [0]


def new_shape(c, n):
    """A shape of n elements."""
    if n == 0:
        return c.of(("0", "0, 1", "2, 0"))
    first = c.of(divisors(n))
    return c.of((f"{n}", f"{first}, {n // first}", "-1", f"{first}, -1", f"{n}, 1", f"1, {first}, {n // first}"))


def view(c):
    """A view of the same elements in another order or shape."""
    x = c.value()
    if x is None:
        return None
    value = c.machine.values[x]
    ndim, n = value.ndim, value.numel()
    d, e = c.dim(ndim), c.dim(ndim)
    order = list(range(ndim))
    order = order[::-1] if c.chance(2) else order[1:] + order[:1]
    return f"v[{x}]." + c.of(
        (
            f"view({new_shape(c, n)})",
            f"reshape({new_shape(c, n)})",
            f"transpose({d}, {e})",
            "t()",
            "mT" if ndim > 1 else "t()",
            f"permute({', '.join(map(str, order)) or '()'})",
            f"unsqueeze({c.of((0, -1, d))})",
            "squeeze()",
            f"squeeze({d})",
            "flatten()",
            f"flatten({d}, -1)",
            f"movedim({d}, {e})",
            "detach()",
                f"view_as(v[{x}])",
            "T" if ndim == 2 else "t()",
            f"unflatten({d}, (1, -1))",
        )
    )


def part(c):
    """A view of some of the elements."""
    x = c.value(at_least(1))
    if x is None:
        return None
    value = c.machine.values[x]
    d = c.dim(value.ndim)
    size = value.shape[d] if -value.ndim <= d < value.ndim else 1
    start = c.number() % max(size, 1)
    length = c.number() % (size - start + 1) if size else 0
    return f"v[{x}]." + c.of(
        (
            f"select({d}, {start})",
            f"narrow({d}, {start}, {length})",
            f"__getitem__({index(c, value)})",
            f"unbind({d})",
            f"split(2, {d})",
            f"chunk(2, {d})",
            f"diagonal({c.of((0, 1, -1))})",
            f"unfold({d}, {max(length, 1)}, {c.of((1, 2))})",
            f"__getitem__({start})",
        )
    )


def lies_in_a_row(value):
    """
    Return whether `as_strided` can be compared.

    Of what is not contiguous, torch differentiates memory that was never written; and results with several
    dimensions may have other strides there.
    """
    return value.is_contiguous() and (value if value._base is None else value._base).ndim < 2


def strided(c):
    """`as_strided` within the memory of the tensor."""
    x = c.value(lies_in_a_row)
    if x is None:
        return None
    n = c.machine.values[x].numel()
    offset = c.number() % max(n, 1)
    rows = 1 + c.number() % 3
    every_second = f"({max((n - offset) // 2, 0)},), (2,)"
    layout = c.of((every_second, f"({rows}, 2), (1, 1)", f"({rows},), (1,)", "(), ()", "(2, 2), (0, 1)"))
    return f"v[{x}].as_strided({layout}, {offset})"


def widened(c):
    """A view that repeats elements."""
    x = c.value(is_tame, lambda value: value.numel() <= 24)
    if x is None:
        return None
    value = c.machine.values[x]
    y = c.value(lambda other: fits(other, into=True)(value))
    sizes = [2 if size == 1 else -1 for size in shape(value)]
    return f"v[{x}]." + c.of(
        (
            f"expand({', '.join(map(str, [2, *sizes]))})",
            f"expand_as(v[{y}])",
            f"expand({', '.join(map(str, sizes)) or 2})",
            f"broadcast_to({(2, *shape(value))})",
        )
    )


def slice_text(c, size):
    """A slice as one writes it."""
    start, step = c.number() % max(size, 1), 1 + c.number() % 2
    return c.of((":", f"{start}:", f":{start}", f"::{step}", f"{start}::{step}", f"-{start + 1}:"))


def index(c, value, distinct=False):
    """Return a key as an expression, with an entry for some of the dimensions; `distinct`: no position twice."""
    entries, used = [], 0
    while used < value.ndim and not (used and c.chance(3)):
        size = value.shape[used]
        kind = c.number() % 8
        if kind == 6:
            entries.append("None")
            continue
        if kind == 7 and "..." not in entries:
            entries.append("...")
            continue
        used += 1
        at = c.number() % max(size, 1)
        if kind in (0, 1):
            entries.append(f"slice({c.of(('None', str(at)))}, None, {c.of(('None', '2', '1'))})")
        elif kind in (2, 3):
            entries.append(str(at if not c.rare() else size + 1))
        elif kind == 4:
            other = c.number() % max(size, 1)
            entries.append(f"{sorted({at, other})}" if distinct else f"[{at}, {other}, {at}]")
        else:
            entries.append(f"slice({at}, {at + 1 + c.number() % 2})")
    return f"({', '.join(entries)}{',' if entries else ''})"


def assign(c):
    """Item assignment."""
    x = c.value(at_least(1))
    if x is None:
        return None
    value = c.machine.values[x]
    key = index(c, value, distinct=True)        # PyTorch leaves open which of several values a position gets
    if c.chance(4):
        mask = c.value(is_bool, lambda other: shape(other) == shape(value)[: other.ndim])
        key = f"v[{mask}]" if mask is not None and is_bool(c.machine.values[mask]) else "..."
    y = c.value(is_tame, lambda other: other.ndim == 0 or fits(value, into=True)(other))
    # A tensor of integers that is given a history is of no use in torch.
    y = f"v[{y}]" if is_floating(value) else f"v[{y}].detach()"
    source = c.of((c.of(("0.5", "2", "-1.25", "True")), y, f"{y}.sum()", f"v[{x}].__getitem__({key})"))
    return f"v[{x}].__setitem__({key}, {source})"


def fancy(c):
    """Indexing with tensors, and the functions that take an index."""
    x = c.value(is_tame, at_least(1), lambda value: value.numel() > 0)
    if x is None:
        return None
    value = c.machine.values[x]
    if value.ndim == 0:
        return None
    d = c.dim(value.ndim)
    size = max(value.shape[d], 1) if -value.ndim <= d < value.ndim else 1
    i, j = c.number() % size, c.number() % size
    k = c.value(is_integer)
    y = c.value(is_tame)
    same = c.value(is_tame, lambda other: shape(other) == shape(value) and other.dtype == value.dtype)
    taken = f"t.tensor([{i}, {j}])"
    along = (
        f"t.argsort(v[{x}].detach(), {d})" if is_tame(value) and c.chance(2) else f"t.zeros_like(v[{x}], dtype=t.int64)"
    )
    mask = c.value(is_bool, lambda other: shape(other) == shape(value)[: other.ndim])
    return c.of(
        (
            f"v[{x}].index_select({d}, {taken})",
            f"v[{x}].gather({d}, t.zeros_like(v[{x}], dtype=t.int64))",
            f"v[{x}][{taken}]",
            f"v[{x}].scatter({d}, t.zeros_like(v[{x}], dtype=t.int64), 0.5)",
            f"v[{x}].scatter_add({d}, t.zeros_like(v[{x}], dtype=t.int64), v[{same}])",
            f"v[{x}].index_add({d}, {taken}, v[{x}].index_select({d}, {taken}))",
            f"t.take_along_dim(v[{x}], {along}, {d})",
            f"v[{x}].index_put((t.tensor({sorted({i, j})}),), v[{y}])",      # PyTorch leaves open which of several
            f"v[{x}].index_put_(({taken},), v[{y}], accumulate=True)",
            f"v[{x}][v[{k}]]",
            f"v[{x}][v[{mask}]]",
            f"v[{x}].index_add_({d}, {taken}, v[{x}].index_select({d}, {taken}).detach())",
            f"v[{x}].nonzero().contiguous()",
        )
    )


def joined(c):
    """Several tensors as one."""
    x = c.value(is_tame, lambda value: 0 < value.numel() <= 24)  # `cat` skips empty tensors, and their gradients
    if x is None or c.machine.values[x].numel() == 0:
        return None
    value = c.machine.values[x]
    y = c.value(is_tame, lambda other: shape(other) == shape(value))
    d = c.dim(value.ndim)
    return c.of(
        (
            f"t.cat([v[{x}], v[{y}]], {d})",
            f"t.stack([v[{x}], v[{y}]], {d})",
            f"t.cat([v[{x}]] * 2, {d})",
            f"t.stack([v[{x}], v[{x}] * 2])",
        )
    )


def moved(c):
    """Elements in other places."""
    x = c.value(is_tame, lambda value: value.numel() <= 24)
    if x is None:
        return None
    value = c.machine.values[x]
    d = c.dim(value.ndim)
    return c.of(
        (
            f"v[{x}].flip({d})",
            f"v[{x}].roll({c.of((1, -1, 2))}, {d})",
            f"v[{x}].tril({c.of((0, 1, -1))})",
            f"v[{x}].triu({c.of((0, 1))})",
            f"v[{x}].repeat({', '.join(['2'] + ['1'] * value.ndim)})",
            f"F.pad(v[{x}], (1, 0))",
            f"v[{x}].tile(2)",
            f"v[{x}].tril_()",
            f"v[{x}].triu_(1)",
            f"F.pad(v[{x}], (0, 2), value=1.5)",
        )
    )


def factory(c):
    """A new tensor: of chosen elements, or like another."""
    x = c.value()
    if x is None or c.chance(2) or c.machine.library.is_inference_mode_enabled():
        return leaf(c)
    return c.of(
        (
            f"t.zeros_like(v[{x}])",
            f"t.ones_like(v[{x}], requires_grad={c.chance(2)})",
            f"t.full_like(v[{x}], 0.5)",
            f"t.arange({c.number() % 5}.0, dtype=t.float64)",
            f"v[{x}].new_zeros(2, 2)",
            f"t.eye({1 + c.number() % 3})",
            f"v[{x}].clone()",
        )
    )


def leaf(c):
    """A tensor whose elements are written down: multiples of a quarter, with zeros and ties among them."""
    sizes = c.of(((3,), (2, 3), (), (2,), (3, 2), (3, 3), (1, 3), (2, 1), (2, 2, 3), (0,), (2, 0), (1,), (4,)))
    dtype = c.of(("float64", "float64", "float64", "complex128", "float32", "float64", "int64", "bool"))
    start, step = c.number(), 1 + c.number()
    quarters = [((start + 3 + k * step * (k + 2)) % 17 - 8) / 4 for k in range(2 * prod(sizes))]
    if dtype == "complex128":
        flat = [complex(a, b) for a, b in zip(quarters[::2], quarters[1::2], strict=True)]
    elif dtype == "int64":
        flat = [int(q) for q in quarters[: prod(sizes)]]
    elif dtype == "bool":
        flat = [q > 0 for q in quarters[: prod(sizes)]]
    else:
        flat = quarters[: prod(sizes)]
    requires = (dtype not in ("int64", "bool") or c.rare()) and not c.chance(3)
    if c.machine.library.is_inference_mode_enabled():
        requires = False  # PyTorch records nothing for inference tensors, even if they require grad
    return f"t.tensor({flat}, dtype=t.{dtype}).reshape({sizes}).detach(){'.requires_grad_()' if requires else ''}"


WRITERS = (view, part, strided, widened, assign, fancy, joined, moved, factory, view, part, assign)
