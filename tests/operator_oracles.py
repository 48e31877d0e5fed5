"""Oracles of operators: NumPy expressions by name, and PyTorch's functions."""

import inspect
import warnings

import numpy as np

import cygrad
from tests.operator_cases import convert, dtype_name, numpy_dtype
from tests.samples import FUNCTIONAL, find_in

try:
    import torch
except ImportError:
    torch = None
try:
    import scipy.special as scipy
except ImportError:
    scipy = None

# Functions that PyTorch computes with less than double precision: SciPy is the oracle.
COARSE = {"bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "igamma", "igammac", "polygamma"}


def _axes(kwargs):
    """Return NumPy's keywords for dim and keepdim."""
    names = {"dim": "axis", "keepdim": "keepdims", "correction": "ddof", "dtype": "dtype"}
    return {names[key]: numpy_dtype(value) if key == "dtype" else value for key, value in kwargs.items()}


def _reduction(function, **defaults):
    return lambda x, **kwargs: function(x, **{**defaults, **_axes(kwargs)})


def _softmax(x, dim, log=False):
    if not x.size:
        return x
    shifted = x - np.max(x, axis=dim if x.ndim else None, keepdims=True)
    sums = np.sum(np.exp(shifted), axis=dim if x.ndim else None, keepdims=True)
    return shifted - np.log(sums) if log else np.exp(shifted) / sums


def _norm(x, p=2, dim=None, keepdim=False):
    axes = {"axis": tuple(dim) if isinstance(dim, (tuple, list)) else dim, "keepdims": keepdim}
    size = np.abs(x)
    if p == 0:
        return np.sum(size != 0, **axes)
    if np.isinf(p):
        return np.max(size, **axes) if p > 0 else np.min(size, **axes)
    return np.sum(size ** p, **axes) ** (1 / p)


def _sgn(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


def _logsumexp(x, dim, keepdim=False):
    axis = dim if x.ndim else None
    if isinstance(axis, int):
        return np.logaddexp.reduce(x, axis=axis, keepdims=keepdim)
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdim))


def _masked_select(x, mask):
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


def _gather(x, dim, index):
    """Return None for an index smaller than the array, which take_along_axis does not support."""
    x = x.reshape(x.shape or (1,))
    for axis in range(x.ndim):
        if axis != dim % x.ndim and x.shape[axis] != index.shape[axis]:
            return None
    return np.take_along_axis(x, index, dim)


def _searchsorted(x, values, right=False):
    return np.searchsorted(x, values, "right" if right else "left") if x.ndim == 1 else None


def _argsort(x, dim=-1, descending=False):
    return np.argsort(-x if descending else x, axis=dim if x.ndim else None).reshape(x.shape)


def _loss(function):
    """Return a loss with its three reductions."""
    reductions = {"none": lambda x: x, "sum": np.sum, "mean": np.mean}
    return lambda x, y, reduction: reductions[reduction](function(x - y))


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


# Functions of the same name in NumPy, with operands as only arguments.
SAME = """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_or bitwise_xor ceil conj copysign cos cosh
    exp exp2 expm1 floor fmax fmin fmod hypot imag isfinite isinf isnan log log10 log1p log2 logaddexp logical_and
    logical_not logical_or logical_xor maximum minimum positive pow real remainder round sign signbit sin sinc sinh sqrt
    square tan tanh trunc matmul dot vdot outer floor_divide where angle broadcast_to"""

# Other functions: expressions of our arguments.
NUMPY = {name: getattr(np, name) for name in SAME.split()} | {
    "mul": np.multiply, "sub": np.subtract, "div": np.true_divide, "neg": np.negative, "rsub": lambda x, y: y - x,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "bitwise_not": np.invert, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "frac": lambda x: x - np.trunc(x), "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: x ** -0.5, "sgn": _sgn,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "softplus": _softplus, "xlogy": lambda x, y: x * np.log(y),
    "lerp": lambda x, y, weight: x + weight * (y - x),
    "addcmul": lambda x, y, z, value=1: x + value * y * z, "addcdiv": lambda x, y, z, value=1: x + value * y / z,
    "clamp_min": np.maximum, "clamp_max": np.minimum,
    "complex": lambda x, y: x + 1j * y, "polar": lambda x, y: x * np.exp(1j * y),
    "sum": _reduction(np.sum), "mean": _reduction(np.mean), "prod": _reduction(np.prod),
    "var": _reduction(np.var, ddof=1), "std": _reduction(np.std, ddof=1), "all": _reduction(np.all),
    "any": _reduction(np.any), "amax": _reduction(np.max), "amin": _reduction(np.min),
    "argmax": _reduction(np.argmax), "argmin": _reduction(np.argmin), "norm": _norm, "logsumexp": _logsumexp,
    "cumsum": lambda x, dim: np.cumsum(x, dim).reshape(x.shape),
    "cumprod": lambda x, dim: np.cumprod(x, dim).reshape(x.shape),
    "softmax": _softmax, "log_softmax": lambda x, dim: _softmax(x, dim, log=True),
    "mm": np.matmul, "bmm": np.matmul, "mv": np.matmul,
    "addmm": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
    "linear": lambda x, weight, bias=0: x @ weight.T + bias,
    "cat": lambda arrays, dim=0: np.concatenate([part for part in arrays if part.shape != (0,)], dim),
    "stack": lambda arrays, dim=0: np.stack(arrays, dim), "flip": np.flip, "roll": np.roll, "tril": np.tril,
    "triu": np.triu, "repeat": np.tile, "clone": np.copy, "contiguous": np.copy, "view": np.reshape,
    "reshape": np.reshape, "permute": np.transpose, "movedim": np.moveaxis, "unsqueeze": np.expand_dims,
    "transpose": lambda x, first, second: x.swapaxes(first, second) if x.ndim else x,
    "unbind": lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "select": lambda x, dim, index: np.take(x, index, dim), "__getitem__": lambda x, key: x[key],
    "narrow": lambda x, dim, start, length: np.take(x, np.arange(start, start + length), dim),
    "masked_select": _masked_select, "gather": _gather, "nonzero": lambda x: np.stack(np.nonzero(x), -1),
    "searchsorted": _searchsorted, "argsort": _argsort,
    "embedding": lambda index, weight, padding_idx=None: weight[index],
    "one_hot": lambda index, count=None: np.eye(count or index.max() + 1, dtype=np.int64)[index],
    "mse_loss": _loss(np.square), "l1_loss": _loss(np.abs),
}


def _polynomial(name):
    """Return SciPy's polynomial with our order of arguments; 0 for negative degrees."""
    evaluate = getattr(scipy, f"eval_{name}")
    return lambda x, n: np.where(np.asarray(n) < 0, 0, evaluate(np.maximum(np.asarray(n, dtype=np.int64), 0), x))


if scipy is not None:
    NUMPY |= {name: getattr(scipy, name) for name in (
        "digamma", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "log_ndtr", "logit", "ndtr", "ndtri", "polygamma",
        "xlog1py")} | {
        "lgamma": scipy.gammaln, "igamma": scipy.gammainc, "igammac": scipy.gammaincc, "zeta": scipy.zeta,
        "mvlgamma": np.vectorize(scipy.multigammaln, otypes=[float]), "entr": scipy.entr,
        "bessel_j0": scipy.j0, "bessel_j1": scipy.j1, "bessel_y0": scipy.y0, "bessel_y1": scipy.y1,
        "hermite_polynomial_h": _polynomial("hermite"), "hermite_polynomial_he": _polynomial("hermitenorm"),
        "laguerre_polynomial_l": _polynomial("laguerre"), "legendre_polynomial_p": _polynomial("legendre"),
        "chebyshev_polynomial_t": _polynomial("chebyt"), "chebyshev_polynomial_u": _polynomial("chebyu"),
        "modified_bessel_k0": scipy.k0, "modified_bessel_k1": scipy.k1, "scaled_modified_bessel_k0": scipy.k0e,
        "scaled_modified_bessel_k1": scipy.k1e, "spherical_bessel_j0": lambda x: scipy.spherical_jn(0, x),
    }


def to_numpy(value):
    """Replace tensors in arguments by ndarrays."""
    return convert(value, lambda tensor: tensor.detach().numpy())


def numpy_result(name, sample):
    """Return NumPy's results as a list of arrays, or None if it lacks the function."""
    reference = NUMPY.get(name)
    if reference is None:
        return None
    try:
        inspect.signature(reference).bind(*sample.args, **sample.kwargs)
    except TypeError:
        return None                       # unsupported by the NumPy expression
    except ValueError:                    # ufuncs have no signature
        if sample.kwargs:
            return None
    if isinstance(reference, np.ufunc) and len(sample.args) != reference.nin:
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")   # empty means, dropped imaginary parts
        try:
            value = reference(*to_numpy(sample.args), **to_numpy(sample.kwargs))
        except ValueError:                # integers to negative powers
            return None
    if value is None:
        return None
    return [np.asarray(part) for part in (value if isinstance(value, (list, tuple)) else [value])]


# ---- PyTorch

def torch_function(name):
    """Return PyTorch's function of that name, looked up in the order of `samples.find`, or None."""
    if torch is None or name in COARSE:
        return None
    if found := find_in(torch, name):
        return found
    places = (torch, torch.Tensor, torch.nn.functional)
    for place in (*(reversed(places) if name in FUNCTIONAL else places), torch.special):
        if hasattr(place, name):
            return getattr(place, name)
    return None


def to_torch(value, requires_grad=()):
    """Replace tensors by PyTorch's over the same memory; those in `requires_grad` (by id) become leaves."""
    leaves = {}

    def leaf(tensor):
        made = torch.from_numpy(tensor.detach().numpy())
        if any(tensor is wanted for wanted in requires_grad):
            made.requires_grad_()
            leaves[id(tensor)] = made
        return made

    def dtypes(item):
        if isinstance(item, cygrad.dtype):
            return getattr(torch, dtype_name(item))
        if isinstance(item, (list, tuple)):
            return type(item)(map(dtypes, item))
        return {key: dtypes(part) for key, part in item.items()} if isinstance(item, dict) else item

    return dtypes(convert(value, leaf)), leaves


def from_torch(tensor):
    """Return a copy of the elements."""
    return np.array(tensor.numpy(force=True))
