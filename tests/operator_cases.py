"""Samples of every operator for every dtype, and layouts of their tensors."""

import tomllib
import zlib
from pathlib import Path

import numpy as np

import cygrad
from tests.samples import COMPLEX, SAMPLES

REAL = (cygrad.float32, cygrad.float64)
COMPLEX_DTYPES = (cygrad.complex64, cygrad.complex128)
INTEGERS = (cygrad.int64, cygrad.uint8, cygrad.bool)
# Errors of operators for unsupported arguments.
REFUSALS = (RuntimeError, TypeError, IndexError, ValueError, ZeroDivisionError)
EXACT = (cygrad.float64, cygrad.complex128)

# The operator table in the files: name of the row -> row.
ROWS = {}
for _path in sorted((Path(__file__).resolve().parents[1] / "cygrad" / "_core" / "table" / "ops").glob("*.toml")):
    ROWS |= {name: row for name, row in tomllib.loads(_path.read_text()).items() if "helper" not in row}


def dtype_name(dtype):
    """Return `float64` for cygrad.float64."""
    return str(dtype).rpartition(".")[2]


def numpy_dtype(dtype):
    """Return the dtype of the same name."""
    return np.dtype(dtype_name(dtype))


def build(name, number, dtype):
    """Return a sample by number, with equal elements at each call; None if it excludes the dtype."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {number}".encode()))

    def make(shape, low=-2, high=2):
        if dtype in INTEGERS:
            low, high = max(int(np.ceil(low)), 0 if dtype is not cygrad.int64 else -99), int(np.floor(high))
            values = rng.integers(low, max(low, high) + 1, shape)
        else:
            values = rng.uniform(low, high, shape)
            if dtype.is_complex:
                values = values + 1j * rng.uniform(low, high, shape)
        return cygrad.tensor(np.asarray(values).astype(numpy_dtype(dtype)))

    try:
        return SAMPLES[name][number](make, dtype)
    except RuntimeError:
        if dtype in INTEGERS:  # fractions, nans and negative numbers are no integers
            return None
        raise


def cases(dtypes, wanted=lambda sample: sample.error is None):
    """Return (name, number, dtype) of samples, for `pytest.mark.parametrize`."""
    found = []
    for name in sorted(SAMPLES):
        for number in range(len(SAMPLES[name])):
            for dtype in dtypes:
                if dtype.is_complex and name not in COMPLEX:
                    continue
                sample = build(name, number, dtype)
                if sample is not None and wanted(sample):
                    found.append((name, number, dtype))
    return found


def case_id(value):
    """Return the text of a part of a case."""
    return dtype_name(value) if isinstance(value, cygrad.dtype) else str(value)


def convert(value, leaf):
    """Replace every tensor in arguments by leaf(tensor)."""
    if isinstance(value, cygrad.Tensor):
        return leaf(value)
    if isinstance(value, (list, tuple)):
        return type(value)(convert(item, leaf) for item in value)
    if isinstance(value, dict):
        return {key: convert(item, leaf) for key, item in value.items()}
    return value


def tensors_in(value):
    """Return the tensors among arguments or results, in order."""
    if isinstance(value, cygrad.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def floating(tensor):
    """Return whether the value can require grad."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def with_gradients(sample):
    """Return (args, kwargs, leaves): fresh tensors, which require grad if differentiable."""
    leaves = []

    def leaf(tensor):
        if not floating(tensor):
            return tensor
        tensor = tensor.detach().requires_grad_()
        leaves.append(tensor)
        return tensor

    args = tuple(
        value if position in sample.fixed else convert(value, leaf) for position, value in enumerate(sample.args)
    )
    kwargs = {key: value if key in sample.fixed else convert(value, leaf) for key, value in sample.kwargs.items()}
    return args, kwargs, leaves


def run(function, sample):
    """Return the results of a call without grad, as a list of Tensors and plain values."""
    return results(function(*sample.args, **sample.kwargs))


def run_or_none(function, sample):
    """Return the results of a call without grad, or None if the dtype is refused."""
    try:
        return run(function, sample)
    except REFUSALS:
        return None


def results(value):
    """Return results as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def differentiable(value):
    """Return the results that require grad."""
    return [tensor for tensor in tensors_in(value) if tensor.requires_grad]


def vectors(outputs):
    """Return a vector with distinct elements for each output, for backward."""
    made = []
    for number, output in enumerate(outputs):
        count = output.numel()
        values = (np.arange(count) % 7 + 1 + number) / 4 * np.where(np.arange(count) % 2, 1, -1)
        if output.dtype.is_complex:
            values = values * (1 + 0.5j)
        made.append(cygrad.tensor(values.astype(numpy_dtype(output.dtype)).reshape(tuple(output.shape))))
    return made


def gradients(function, sample, create_graph=False):
    """Return (outputs, leaves, gradients) of the sample for `vectors`; None for unused leaves."""
    args, kwargs, leaves = with_gradients(sample)
    outputs = differentiable(function(*args, **kwargs))
    if not outputs or not leaves:
        return outputs, leaves, [None] * len(leaves)
    found = cygrad.autograd.grad(outputs, leaves, vectors(outputs), create_graph=create_graph, allow_unused=True)
    return outputs, leaves, list(found)


def array(tensor):
    """Return a copy of the elements."""
    return np.array(tensor.detach().numpy())


# ---- layouts: equal elements with other strides


def plain(values):
    """Row-major."""
    return values.copy()


def transposed(values):
    """The last two dimensions transposed in memory."""
    return values if values.ndim < 2 else values.swapaxes(-1, -2).copy().swapaxes(-1, -2)


def with_gaps(values):
    """Every second element of the memory in the last dimension."""
    return np.repeat(values, 2, axis=-1)[..., ::2] if values.ndim else np.stack([values, values])[1:].reshape(())


def backwards(values):
    """Negative strides in all dimensions."""
    turned = tuple(slice(None, None, -1) for _ in values.shape)
    return values[turned].copy()[turned]


LAYOUTS = (transposed, with_gaps, backwards)


def in_layout(sample, layout):
    """A copy of the sample's arguments with all tensors in that layout."""

    def leaf(tensor):
        return cygrad.from_numpy(np.asarray(layout(array(tensor))))

    return type(sample)(convert(sample.args, leaf), convert(sample.kwargs, leaf), fixed=sample.fixed)
