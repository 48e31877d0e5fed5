"""
Compare every operator with PyTorch: ``python -m benchmarks.operators`` measures speed, ``--write`` also accuracy.

Element-wise operators come from the table of operators, reductions and other calls from the lists below. Each is timed
at three sizes, in no_grad mode and with backward, both libraries alternately in one process; a ratio is PyTorch's
minimum time over cygrad's. ``--write`` writes `figures.json` and the heat map of docs/performance.md.
"""

import argparse
import fnmatch
import importlib
import inspect
import time
from math import inf, nan

import numpy as np

from .figures import OPERATOR_COLUMNS, ROOT, keep, number, operators_table, ratios_of, read
from .workloads import library

PICTURE = ROOT / "docs" / "_static" / "operators.png"
SIZES = (100, 16_384, 1_000_000)
ROUNDS = 7
SECONDS = 0.03                # for all rounds of one call
COLUMNS = 128                 # of matrices
# Domains of operators; others take normal numbers.
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "pow", "xlogy", "xlog1py", "igamma",
            "igammac", "zeta", "k0", "k1", "polygamma"}
INNER = {"acos", "asin", "atanh", "erfinv", "logit", "ndtri"}
REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "var", "std", "nansum", "logsumexp", "all", "any", "argmax",
              "argmin", "count_nonzero", "norm")


def normal(*shape, seed=0):
    """Return normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def positive(*shape, seed=0):
    """Return numbers from 0.1 on."""
    return np.abs(normal(*shape, seed=seed)) + np.float32(0.1)


def unit(*shape, seed=0):
    """Return numbers between 0 and 1."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32) * np.float32(0.98) + np.float32(0.01)


def indices(high, *shape, seed=5):
    """Return integers below `high`."""
    return np.random.default_rng(seed).integers(0, high, shape)


def rows(n, columns=COLUMNS):
    """Return the shape of a matrix of n elements."""
    return max(1, n // columns), columns


def side(n, most=10 ** 6):
    """Return the shape of a square matrix of n elements, with at most `most` rows."""
    return (min(most, int(n ** 0.5)),) * 2


def image(n, channels=8):
    """Return the shape of one image of n elements."""
    return 1, channels, *((max(4, int((n / channels) ** 0.5)),) * 2)


def regular(n, most=300):
    """Return a well-conditioned square matrix."""
    matrix = normal(*side(n, most))
    return matrix + 10 * np.eye(len(matrix), dtype=np.float32)


# name -> (arrays of a size, call of a library and its tensors)
CALLS = {
    # products
    "matmul": (lambda n: (normal(*side(n)), normal(*side(n), seed=1)), lambda lib, x, y: x @ y),
    "bmm": (lambda n: (normal(max(1, n // 256), 16, 16),) * 2, lambda lib, x, y: lib.bmm(x, y)),
    "linear": (lambda n: (normal(*rows(n)), normal(128, 128), normal(128)),
        lambda lib, x, w, b: lib.nn.functional.linear(x, w, b)),
    "einsum": (lambda n: (normal(*rows(n)), normal(*rows(n), seed=1)),
        lambda lib, x, y: lib.einsum("ij,ik->jk", x, y)),
    "outer": (lambda n: (normal(side(n)[0]), normal(side(n)[0], seed=1)), lambda lib, x, y: lib.outer(x, y)),
    "kron": (lambda n: (normal(*side(n ** 0.5)), normal(*side(n ** 0.5), seed=1)), lambda lib, x, y: lib.kron(x, y)),
    "cross": (lambda n: (normal(max(1, n // 3), 3), normal(max(1, n // 3), 3, seed=1)),
        lambda lib, x, y: lib.linalg.cross(x, y)),
    "cdist": (lambda n: (normal(side(n)[0], 16), normal(side(n)[0], 16, seed=1)), lambda lib, x, y: lib.cdist(x, y)),
    # convolutions, pooling, images
    "conv1d": (lambda n: (normal(1, 8, max(8, n // 8)), normal(16, 8, 5)),
        lambda lib, x, w: lib.nn.functional.conv1d(x, w, padding=2)),
    "conv2d": (lambda n: (normal(*image(n)), normal(8, 8, 3, 3)),
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1)),
    "conv2d stride 2": (lambda n: (normal(*image(n)), normal(16, 8, 5, 5)),
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, stride=2, padding=2)),
    "conv2d depthwise": (lambda n: (normal(*image(n)), normal(8, 1, 3, 3)),
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1, groups=8)),
    "conv_transpose2d": (lambda n: (normal(*image(n)), normal(8, 8, 4, 4)),
        lambda lib, x, w: lib.nn.functional.conv_transpose2d(x, w, stride=2, padding=1)),
    "max_pool2d": (lambda n: (normal(*image(n)),), lambda lib, x: lib.nn.functional.max_pool2d(x, 2)),
    "avg_pool2d": (lambda n: (normal(*image(n)),), lambda lib, x: lib.nn.functional.avg_pool2d(x, 2)),
    "interpolate": (lambda n: (normal(*image(n)),),
        lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")),
    "pixel_shuffle": (lambda n: (normal(*image(n)),), lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2)),
    "pad reflect": (lambda n: (normal(*image(n)),),
        lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")),
    "grid_sample": (lambda n: (normal(*image(n)), 2 * unit(1, *image(n)[2:], 2) - 1),
        lambda lib, x, g: lib.nn.functional.grid_sample(x, g, align_corners=False)),
    # normalization and losses
    "softmax": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.softmax(x, -1)),
    "layer_norm": (lambda n: (normal(*rows(n)), normal(128), normal(128)),
        lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (128,), w, b)),
    "batch_norm": (lambda n: (normal(*rows(n)),),
        lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True)),
    "cross_entropy": (lambda n: (normal(*rows(n)), indices(128, rows(n)[0])),
        lambda lib, x, y: lib.nn.functional.cross_entropy(x, y)),
    "nll_loss": (lambda n: (normal(*rows(n)), indices(128, rows(n)[0])),
        lambda lib, x, y: lib.nn.functional.nll_loss(x, y)),
    "mse_loss": (lambda n: (normal(*rows(n)), normal(*rows(n), seed=1)),
        lambda lib, x, y: lib.nn.functional.mse_loss(x, y)),
    "attention": (lambda n: (normal(1, 4, min(1024, max(2, n // 128)), 32),) * 3,
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v)),
    # indexing and copies
    "embedding": (lambda n: (normal(1000, 64), indices(1000, max(1, n // 64))),
        lambda lib, w, i: lib.nn.functional.embedding(i, w)),
    "embedding_bag": (lambda n: (normal(1000, 64), indices(1000, max(1, n // 640), 10)),
        lambda lib, w, i: lib.nn.functional.embedding_bag(i, w, mode="sum")),
    "index_select": (lambda n: (normal(*rows(n)), indices(rows(n)[0], rows(n)[0])),
        lambda lib, x, i: lib.index_select(x, 0, i)),
    "x[i, j]": (lambda n: (normal(*rows(n)), indices(rows(n)[0], n // 2), indices(128, n // 2)),
        lambda lib, x, i, j: x[i, j]),
    "x[mask]": (lambda n: (normal(*rows(n)), unit(*rows(n)) < 0.5), lambda lib, x, m: x[m]),
    "gather": (lambda n: (normal(*rows(n)), indices(128, *rows(n))), lambda lib, x, i: lib.gather(x, 1, i)),
    "scatter_add": (lambda n: (normal(*rows(n)), indices(128, *rows(n)), normal(*rows(n), seed=1)),
        lambda lib, x, i, y: lib.scatter_add(x, 1, i, y)),
    "scatter_reduce": (lambda n: (normal(*rows(n)), indices(128, *rows(n)), normal(*rows(n), seed=1)),
        lambda lib, x, i, y: lib.scatter_reduce(x, 1, i, y, "amax")),
    "masked_fill": (lambda n: (normal(*rows(n)), unit(*rows(n)) < 0.5), lambda lib, x, m: x.masked_fill(m, 0.5)),
    "where": (lambda n: (unit(n) < 0.5, normal(n), normal(n, seed=1)), lambda lib, m, x, y: lib.where(m, x, y)),
    "cat": (lambda n: (normal(*rows(n)), normal(*rows(n), seed=1)), lambda lib, x, y: lib.cat([x, y], 1)),
    "stack": (lambda n: (normal(*rows(n)), normal(*rows(n), seed=1)), lambda lib, x, y: lib.stack([x, y])),
    "roll": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.roll(x, 3, 1)),
    "flip": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.flip(x, (1,))),
    "repeat": (lambda n: (normal(*rows(n)),), lambda lib, x: x.repeat(2, 2)),
    "transposed copy": (lambda n: (normal(*rows(n)),), lambda lib, x: x.t().contiguous()),
    "to float64": (lambda n: (normal(n),), lambda lib, x: x.to(lib.float64)),
    "to bfloat16": (lambda n: (normal(n),), lambda lib, x: x.to(lib.bfloat16)),
    "x + row": (lambda n: (normal(*rows(n)), normal(128)), lambda lib, x, y: x + y),
    "x * column": (lambda n: (normal(*rows(n)), normal(rows(n)[0], 1)), lambda lib, x, y: x * y),
    "x ** 3": (lambda n: (normal(n),), lambda lib, x: x ** 3),
    "1 / x": (lambda n: (positive(n),), lambda lib, x: 1 / x),
    # order
    "sort": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.sort(x, -1)[0]),
    "topk": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.topk(x, 5)[0]),
    "unique": (lambda n: (indices(100, n),), lambda lib, x: lib.unique(x)),
    "bincount": (lambda n: (indices(100, n),), lambda lib, x: lib.bincount(x)),
    "histc": (lambda n: (normal(n),), lambda lib, x: lib.histc(x.detach(), 50, -3, 3)),
    "searchsorted": (lambda n: (np.sort(normal(1000)), normal(n)),
        lambda lib, x, y: lib.searchsorted(x.detach(), y.detach())),
    "cumsum": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.cumsum(x, 1)),
    "cumprod": (lambda n: (positive(*rows(n)),), lambda lib, x: lib.cumprod(x, 1)),
    # linear algebra and transforms
    "inv": (lambda n: (regular(n),), lambda lib, x: lib.linalg.inv(x)),
    "inv of 4 x 4": (lambda n: (normal(max(1, n // 16), 4, 4) + 5 * np.eye(4, dtype=np.float32),),
        lambda lib, x: lib.linalg.inv(x)),
    "solve": (lambda n: (regular(n), normal(len(regular(n)), 4)), lambda lib, x, y: lib.linalg.solve(x, y)),
    "cholesky": (lambda n: (regular(n) @ regular(n).T,), lambda lib, x: lib.linalg.cholesky(x)),
    "qr": (lambda n: (regular(n),), lambda lib, x: lib.linalg.qr(x)[1]),
    "svdvals": (lambda n: (regular(n, 200),), lambda lib, x: lib.linalg.svdvals(x)),
    "rfft": (lambda n: (normal(*rows(n)),), lambda lib, x: lib.fft.rfft(x).abs()),
    # random numbers
    "rand": (lambda n: (normal(n),), lambda lib, x: lib.rand(x.shape)),
    "randn": (lambda n: (normal(n),), lambda lib, x: lib.randn(x.shape)),
    "randperm": (lambda n: (normal(n),), lambda lib, x: lib.randperm(len(x))),
    "dropout": (lambda n: (normal(n),), lambda lib, x: lib.nn.functional.dropout(x, 0.3)),
    "multinomial": (lambda n: (positive(*rows(n)),), lambda lib, x: lib.multinomial(x.detach(), 5)),
}

# Special functions: name -> (name in mpmath or a function of mpmath and a number, from, to)
SPECIAL = {
    "erf": ("erf", -4, 4),
    "erfc": ("erfc", -4, 9),
    "erfinv": ("erfinv", -0.99, 0.99),
    "lgamma": ("loggamma", 0.1, 30),
    "digamma": ("digamma", 0.1, 30),
    "igamma": (lambda mp, x: mp.gammainc(2.5, 0, x, regularized=True), 0.1, 20),
    "igammac": (lambda mp, x: mp.gammainc(2.5, x, regularized=True), 0.1, 20),
    "polygamma": (lambda mp, x: mp.polygamma(1, x), 0.1, 30),
    "i0": (lambda mp, x: mp.besseli(0, x), -8, 8),
    "special.i1": (lambda mp, x: mp.besseli(1, x), -8, 8),
    "special.i0e": (lambda mp, x: mp.besseli(0, x) * mp.exp(-abs(x)), -20, 20),
    "special.i1e": (lambda mp, x: mp.besseli(1, x) * mp.exp(-abs(x)), -20, 20),
    "special.bessel_j0": (lambda mp, x: mp.besselj(0, x), -20, 20),
    "special.bessel_j1": (lambda mp, x: mp.besselj(1, x), -20, 20),
    "special.bessel_y0": (lambda mp, x: mp.bessely(0, x), 0.1, 20),
    "special.bessel_y1": (lambda mp, x: mp.bessely(1, x), 0.1, 20),
    "special.modified_bessel_k0": (lambda mp, x: mp.besselk(0, x), 0.1, 20),
    "special.modified_bessel_k1": (lambda mp, x: mp.besselk(1, x), 0.1, 20),
    "special.airy_ai": ("airyai", -8, 8),
    "special.ndtr": ("ncdf", -5, 5),
    "special.ndtri": (lambda mp, x: mp.sqrt(2) * mp.erfinv(2 * x - 1), 0.01, 0.99),
    "special.erfcx": (lambda mp, x: mp.exp(x * x) * mp.erfc(x), -2, 20),
    "special.entr": (lambda mp, x: -x * mp.log(x), 0.01, 10),
    "special.zeta": (lambda mp, x: mp.zeta(x, 2), 1.1, 20),
}


def attribute(lib, path):
    """Return a function by its dotted name, in the namespace of a library or of its special functions."""
    for place in (lib, lib.special):
        for part in path.split("."):
            place = getattr(place, part, None)
        if callable(place):
            return place
    return None


def elementwise():
    """Yield (name, number of operands) of the element-wise operators of tensors in the table."""
    table = importlib.import_module("cygrad._core.table.operator").operators
    for name, operator in sorted(vars(table).items()):
        row = getattr(operator, "row", None)
        if row and row["jvp"] == "elementwise" and row["function"] and not operator.is_inplace:
            needed = [argument for argument in inspect.signature(operator).parameters.values()
                      if argument.default is argument.empty and argument.kind != argument.KEYWORD_ONLY]
            yield row["public"] or name, len(needed)


def cases(n):
    """Yield (name, arrays, call) of all comparisons at one size."""
    for name, operands in elementwise():
        make = positive if name in POSITIVE else unit if name in INNER else normal
        yield name, [make(n, seed=seed) for seed in range(operands)], (
            lambda lib, *tensors, name=name: attribute(lib, name)(*tensors))
    for name in REDUCTIONS:
        for dim in (None, 1, 0):
            yield f"{name} {'all' if dim is None else f'dim {dim}'}", [positive(*rows(n))], (
                lambda lib, x, name=name, given={} if dim is None else {"dim": dim}: getattr(lib, name)(x, **given))
    for name, (make, call) in CALLS.items():
        yield name, make(n), call


def prepared(lib, arrays, call, with_backward):
    """Return a function that calls an operator once, or None if the result is not differentiable."""
    tensors = [lib.from_numpy(array.copy()) for array in arrays]
    if not with_backward:
        def run():
            with lib.no_grad():
                call(lib, *tensors)
        return run
    leaves = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
    out = call(lib, *tensors)
    if not leaves or not getattr(out, "requires_grad", False):
        return None
    grad = lib.ones_like(out.detach())

    def run():
        call(lib, *tensors).backward(grad)
        for leaf in leaves:
            leaf.grad = None
    return run


def least(calls):
    """Return the minimum seconds of each call, measured alternately."""
    counts, best = [], [inf] * len(calls)
    for call in calls:
        call()
        counts.append(max(1, int(SECONDS / ROUNDS / max(seconds(call, 1), 1e-7))))
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            best[k] = min(best[k], seconds(call, counts[k]))
    return best


def seconds(call, count):
    """Return the mean seconds of some calls."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def speeds(wanted, sizes, threads):
    """Return {name: ratios of PyTorch's time to cygrad's, one for each of OPERATOR_COLUMNS}."""
    libraries = library("torch", threads), library("cygrad", threads)
    found = {}
    for n in sizes:
        for name, arrays, call in cases(n):
            for mode in ("forward", "backward") if wanted(name) else ():
                try:
                    calls = [prepared(lib, arrays, call, mode == "backward") for lib in libraries]
                    if all(calls):
                        theirs, ours = least(calls)
                        row = found.setdefault(name, [nan] * len(OPERATOR_COLUMNS))
                        row[OPERATOR_COLUMNS.index(f"{n:,} {mode}")] = theirs / ours
                except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
                    pass                               # a library lacks the operator for these operands
    return found


def accuracy(points=400):
    """Return {name: [largest error of cygrad, of PyTorch]} of float32 results, in units in the last place."""
    import mpmath

    libraries = library("cygrad"), library("torch")
    found = {}
    for name, (exact, low, high) in SPECIAL.items():
        function = getattr(mpmath, exact) if isinstance(exact, str) else lambda x, exact=exact: exact(mpmath, x)
        x = np.random.default_rng(0).uniform(low, high, points).astype(np.float32)
        true = np.array([float(mpmath.re(function(mpmath.mpf(float(value))))) for value in x])
        found[name] = []
        for lib in libraries:
            operand, call = lib.from_numpy(x), attribute(lib, name)
            order = lib.full((points,), 2.5)
            operands = {"polygamma": (1, operand), "special.zeta": (operand, lib.full((points,), 2.0)),
                        "igamma": (order, operand), "igammac": (order, operand)}
            got = call(*operands.get(name, (operand,))).numpy() if call else np.full(points, nan)
            errors = np.abs(got.astype(np.float64) - true) / np.spacing(np.abs(true).astype(np.float32))
            found[name].append(float(np.max(errors)))
    return found


def drawing(ratios):
    """Return the heat map, as a figure of matplotlib: operators by sizes, in four blocks."""
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    names, blocks = sorted(ratios), 4
    height = -(-len(names) // blocks)
    figure = Figure(figsize=(15, 0.6 + 0.125 * height), layout="constrained")
    for k, axes in enumerate(figure.subplots(1, blocks)):
        part = names[k * height:(k + 1) * height]
        values = np.log2([ratios[name] for name in part])
        drawn = axes.imshow(values, cmap="RdBu", norm=TwoSlopeNorm(0, -2, 5), aspect="auto")
        axes.set_yticks(range(len(part)), part, fontsize=6)
        heads = [head.replace(" ", "\n") for head in OPERATOR_COLUMNS]
        axes.set_xticks(range(len(heads)), heads, fontsize=5)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
    bar = figure.colorbar(drawn, ax=figure.axes, ticks=range(-2, 6), shrink=0.4)
    bar.ax.set_yticklabels([number(2.0 ** k) for k in range(-2, 6)])
    bar.set_label("PyTorch's time relative to cygrad's", fontsize=7)
    return figure


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of every operator and accuracy of special functions.")
    parser.add_argument("names", nargs="*", default=["*"], help="patterns; all operators by default")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, choices=SIZES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="keep the figures, make the tables and draw the heat map")
    options = parser.parse_args()
    found = speeds(lambda name: any(fnmatch.fnmatch(name, pattern) for pattern in options.names), options.sizes,
                   options.threads)
    print(operators_table(found))
    if options.write:
        ratios = dict(sorted((ratios_of(read()["operators"]) | found).items()))
        texts = {name: " ".join(f"{ratio:.3g}" for ratio in row) for name, row in ratios.items()}
        keep(operators={"speed": texts, "accuracy": accuracy()})
        drawing(ratios).savefig(PICTURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
