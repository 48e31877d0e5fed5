"""Generate lines that call reductions, cumulative sums, products and losses."""

from tests.programs.chooser import at_least, has, has_zeros, is_floating, is_neat, is_real, is_tame, numbers_in, shape

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits")
REDUCTIONS = ("sum", "mean", "std", "var", "logsumexp")
KINKED_REDUCTIONS = ("amax", "amin", "all", "any")


def dims(c, ndim):
    """Dimensions of a reduction as an argument, with `keepdim`."""
    if ndim == 0 or c.chance(3):
        return ""
    dim = str(c.dim(ndim))
    if ndim > 1 and c.chance(4):
        dim = f"({dim}, {(int(dim) + 1) % ndim})"
    return dim + c.of(("", ", keepdim=True"))


def reduction(c):
    """A smooth reduction."""
    x = c.value(is_tame)
    if x is None:
        return None
    name, ndim = c.of(REDUCTIONS), c.machine.values[x].ndim
    if name in ("std", "var") and len(set(numbers_in(c.machine.values[x]).ravel().tolist())) < 2:
        return None  # of one, nan, and what its derivatives are is open; of equal ones, zero or what rounding leaves
    where = dims(c, ndim)
    if name == "logsumexp" and not where:
        where = str(c.dim(ndim))
    return f"v[{x}].{name}({where})"


def kinked_reduction(c):
    """A reduction with kinks, or one whose result is an index."""
    x = c.value(is_neat)
    if x is None:
        return None
    array = numbers_in(c.machine.values[x])
    ndim = array.ndim
    dim = c.dim(ndim)
    if len(set(array.ravel().tolist())) == array.size and c.chance(8):  # which of equal ones it gives is open
        return f"v[{x}].topk(1, {dim})"
    return f"v[{x}]." + c.of(
        (
            f"{c.of(KINKED_REDUCTIONS)}({dims(c, ndim)})",
            f"prod({c.of((str(dim), ''))})",
            f"norm({c.of(('', '1', '3', 'inf'))})",
            f"norm({c.of(('2', '1', '3', 'inf'))}, {dim})",
            f"{c.of(('max', 'min'))}({c.of((str(dim), ''))})",
            f"{c.of(('argmax', 'argmin'))}({dim})",
            f"sort(dim={dim}, stable=True)",
        )
    )


def scan(c):
    """A running sum or product, or a softmax."""
    x = c.value(is_tame, is_neat, is_floating)
    if x is None:
        return None
    dim = c.dim(c.machine.values[x].ndim)
    if c.chance(5) and not has_zeros(c.machine.values[x]):  # torch has another formula for zeros
        return f"v[{x}].{c.of(('cumprod', 'cumprod_'))}({dim})"
    if not is_floating(c.machine.values[x]):
        return f"v[{x}].cumsum({dim})"
    return f"v[{x}].{c.of(('cumsum', 'softmax', 'log_softmax', 'cumsum_'))}({dim})"


def product(c):
    """A product of matrices or vectors."""
    x = c.value(is_tame, at_least(1))
    if x is None:
        return None
    first = c.machine.values[x]
    same = lambda value: value.dtype == first.dtype  # noqa: E731
    inner = [lambda value: value.shape[-2:][:1] == first.shape[-1:]]
    y = c.value(is_tame, same, *inner)
    if y is None:
        y = c.value(is_tame, same)
    z = c.value(is_tame, same)
    second = c.machine.values[y] if y is not None else first
    both = (first.ndim, second.ndim)
    if min(both, default=0) < 1:
        return f"t.matmul(v[{x}], v[{y}])"
    special = {(1, 1): ("dot", "vdot"), (2, 1): ("mv",), (2, 2): ("mm",), (3, 3): ("bmm",)}
    names = (*special.get(both, ()), "matmul")
    if both == (2, 2) and is_floating(first) and c.chance(3):
        return f"t.addmm(v[{z}], v[{x}], v[{y}], beta={c.of(('1', '0.5', '0'))})"
    if both == (2, 2) and c.chance(4):
        return f"F.linear(v[{x}], v[{y}].t())"
    return f"t.{c.of(names)}(v[{x}], v[{y}])"


def loss(c):
    """A loss of two tensors."""
    x = c.value(is_real, is_neat)
    if x is None:
        return None
    first = c.machine.values[x]
    y = c.value(is_real, is_neat, lambda value: shape(value) == shape(first) and value.dtype == first.dtype)
    if y is None or c.machine.values[y].dtype != first.dtype or not (is_neat(first) and is_neat(c.machine.values[y])):
        return None  # what torch makes of several dtypes, and in second derivatives of nan, differs from loss to loss
    return f"F.{c.of(LOSSES)}(v[{x}], v[{y}])"


def softmax_matrix(c):
    """Attention in small: softmax of a product."""
    x = c.value(is_tame, is_real, has(2))
    return None if x is None else f"(v[{x}] @ v[{x}].mT).softmax(-1)"


WRITERS = (
    reduction,
    kinked_reduction,
    scan,
    product,
    loss,
    softmax_matrix,
)
