"""Invertible transforms with log determinants."""

import math
from typing import Any

import cygrad
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import as_instance, as_items, as_sizes
from cygrad.distributions import constraints
from cygrad.distributions.transform import Plain, Transform
from cygrad.distributions.utils import EPS, TINY, sum_last, tril_matrix_to_vec, vec_to_tril_matrix
from cygrad.nn.functional import logsigmoid, pad, softmax

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]
__dir__ = _public_dir(__name__)


_DOC = """
    {doc}

    Examples
    --------
    >>> from cygrad.distributions import {name}
    >>> transform = {name}()
    >>> transform.codomain.check(transform(cygrad.eye(2))).all()
    tensor(True)
    """


def _without_parameters(name, doc, domain, codomain, call, invert, log_det, bijective=True, sign=1):
    """Return a class of transforms without parameters, whose objects are equal."""
    def jacobian(self, x, y):
        if log_det is None:
            raise NotImplementedError(f"{name} does not implement log_abs_det_jacobian.")
        return log_det(x, y)

    jacobian.__doc__ = Transform.log_abs_det_jacobian.__doc__
    return type(name, (Plain,), {
        "__doc__": _DOC.format(doc=doc, name=name), "__module__": __name__,
        "domain": domain, "codomain": codomain, "bijective": bijective,
        "sign": sign, "_call": lambda self, x: call(x), "_inverse": lambda self, y: invert(y),
        "log_abs_det_jacobian": jacobian})


def _unsigmoid(y):
    inside = y.clamp(TINY[y.dtype], 1 - EPS[y.dtype])
    return inside.log() - (-inside).log1p()


def _lower(x, diagonal):
    return x.tril(-1) + cygrad.diag_embed(diagonal(x.diagonal(dim1=-2, dim2=-1)))


ExpTransform: type[Plain] = _without_parameters(
    "ExpTransform", "``exp(x)``.", constraints.real, constraints.positive, cygrad.exp, cygrad.log, lambda x, y: x)
AbsTransform = _without_parameters(
    "AbsTransform", "``abs(x)``, which has no inverse; `inv` gives the positive one.", constraints.real,
    constraints.nonnegative, cygrad.abs, lambda y: y, None, False, None)
SigmoidTransform = _without_parameters(
    "SigmoidTransform", "``1 / (1 + exp(-x))``.", constraints.real, constraints.unit_interval,
    lambda x: x.sigmoid().clamp(TINY[x.dtype], 1 - EPS[x.dtype]), _unsigmoid,
    lambda x, y: logsigmoid(x) + logsigmoid(-x))
TanhTransform = _without_parameters(
    "TanhTransform", "``tanh(x)``.", constraints.real, constraints.interval(-1.0, 1.0), cygrad.tanh, cygrad.atanh,
    lambda x, y: 2.0 * (math.log(2.0) - x + logsigmoid(2.0 * x)))
SoftplusTransform = _without_parameters(
    "SoftplusTransform", "``log(1 + exp(x))``.", constraints.real, constraints.positive,
    lambda x: -logsigmoid(-x), lambda y: (-cygrad.expm1(-y)).log() + y, lambda x, y: logsigmoid(x))
SoftmaxTransform: type[Plain] = _without_parameters(
    "SoftmaxTransform", "Softmax along the last dimension; the inverse is the logarithm.", constraints.real_vector,
    constraints.simplex, lambda x: softmax(x, -1), cygrad.log, None, False, None)
LowerCholeskyTransform: type[Plain] = _without_parameters(
    "LowerCholeskyTransform", "Any square matrix to a lower triangular one with a positive diagonal.",
    constraints.independent(constraints.real, 2), constraints.lower_cholesky, lambda x: _lower(x, cygrad.exp),
    lambda y: _lower(y, cygrad.log), None, True, None)
PositiveDefiniteTransform: type[Plain] = _without_parameters(
    "PositiveDefiniteTransform", "Any square matrix to a positive definite one.",
    constraints.independent(constraints.real, 2), constraints.positive_definite,
    lambda x: _lower(x, cygrad.exp) @ _lower(x, cygrad.exp).mT,
    lambda y: _lower(cygrad.linalg.cholesky(y), cygrad.log), None, True, None)


class AffineTransform(Transform):
    """
    ``loc + scale * x``, for values with `event_dim` dimensions.

    Examples
    --------
    >>> from cygrad.distributions import AffineTransform
    >>> transform = AffineTransform(1.0, 2.0)
    >>> transform(cygrad.tensor(3.0))
    tensor(7.)
    >>> transform.inv(cygrad.tensor(7.0))
    tensor(3.)
    """

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = codomain = property(lambda self: (constraints.real if self._event_dim == 0
                                               else constraints.independent(constraints.real, self._event_dim)))
    sign = property(lambda self: self.scale.sign() if isinstance(self.scale, cygrad.Tensor)
                    else (self.scale > 0) - (self.scale < 0))

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, cygrad.Tensor) else cygrad.full_like(x, self.scale)
        return sum_last(scale.abs().log().expand(cygrad.broadcast_shapes(tuple(scale.shape), tuple(x.shape))),
                        self._event_dim)

    def forward_shape(self, shape):
        return cygrad.broadcast_shapes(tuple(shape), *(tuple(getattr(part, "shape", ())) for part in (
            self.loc, self.scale)))

    inverse_shape = forward_shape

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and all(
            bool(cygrad.as_tensor(a == b).all()) for a, b in ((self.loc, other.loc), (self.scale, other.scale)))

    __hash__ = object.__hash__


class PowerTransform(Transform):
    """
    ``x ** exponent`` of positive numbers.

    Examples
    --------
    >>> from cygrad.distributions import PowerTransform
    >>> PowerTransform(2.0)(cygrad.tensor(3.0)), PowerTransform(2.0).inv(cygrad.tensor(9.0))
    (tensor(9.), tensor(3.))
    """

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = cygrad.as_tensor(exponent)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return cygrad.broadcast_shapes(tuple(shape), tuple(self.exponent.shape))

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """
    From n numbers to the simplex with n + 1 elements, by stick-breaking.

    Examples
    --------
    >>> from cygrad.distributions import StickBreakingTransform
    >>> StickBreakingTransform()(cygrad.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        left = x.shape[-1] + 1 - cygrad.ones(x.shape[-1], dtype=x.dtype).cumsum(-1)
        z = (x - left.log()).sigmoid().clamp(TINY[x.dtype], 1 - EPS[x.dtype])
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        cut = y[..., :-1]
        left = y.shape[-1] - cygrad.ones(cut.shape[-1], dtype=y.dtype).cumsum(-1)
        rest = (1 - cut.cumsum(-1)).clamp(min=TINY[y.dtype])
        return cut.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x, y):
        left = x.shape[-1] + 1 - cygrad.ones(x.shape[-1], dtype=x.dtype).cumsum(-1)
        x = x - left.log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape):
        return (*shape[:-1], shape[-1] - 1)


class CorrCholeskyTransform(Plain):
    """
    From n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix.

    Examples
    --------
    >>> from cygrad.distributions import CorrCholeskyTransform
    >>> factor = CorrCholeskyTransform()(cygrad.zeros(1))
    >>> factor @ factor.t()
    tensor([[1., 0.],
            [0., 1.]])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x):
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + EPS[x.dtype], 1 - EPS[x.dtype]), diag=-1)
        left = (1 - r.square()).sqrt().cumprod(-1)
        r = r + cygrad.eye(r.shape[-1], dtype=r.dtype)
        return r * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        rest = 1 - y.square().cumsum(-1)
        rest = tril_matrix_to_vec(pad(rest[..., :-1], [1, 0], value=1), diag=-1)
        t = tril_matrix_to_vec(y, diag=-1) / rest.sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x, y):
        rest = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        return 0.5 * rest.log().sum(-1) - 2 * (x - logsigmoid(2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape):
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("CorrCholeskyTransform: Input is not a flattened lower-diagonal number (got "
                             f"{shape[-1]} elements, expected n (n - 1) / 2).")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape):
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class ReshapeTransform(Transform):
    """
    Reshape values of `in_shape` to `out_shape`.

    Examples
    --------
    >>> from cygrad.distributions import ReshapeTransform
    >>> ReshapeTransform((4,), (2, 2))(cygrad.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = (as_sizes("ReshapeTransform", name, shape) for name, shape in (
            ("in_shape", in_shape), ("out_shape", out_shape)))
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"ReshapeTransform: both shapes must have as many elements (got {tuple(in_shape)} and "
                             f"{tuple(out_shape)}).")

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        """Return zeros."""
        return cygrad.zeros(tuple(x.shape[:x.ndim - len(self.in_shape)]), dtype=x.dtype)

    def _reshaped(self, shape, ends, instead):
        n = len(shape) - len(ends)
        if n < 0 or tuple(shape[n:]) != ends:
            raise ValueError(f"Shape mismatch: expected {tuple(shape[max(n, 0):])} but got {ends}")
        return tuple(shape[:n]) + instead

    def forward_shape(self, shape):
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._reshaped(shape, self.out_shape, self.in_shape)


class IndependentTransform(Transform):
    """
    Reinterpret the last batch dimensions of a transform as event dimensions.

    Examples
    --------
    >>> from cygrad.distributions import ExpTransform, IndependentTransform
    >>> x = cygrad.ones(2, 3)
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor([3., 3.])
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        as_instance("IndependentTransform", "base_transform", base_transform, Transform)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class ComposeTransform(Transform):
    """
    Composition of transforms, the first one first.

    Examples
    --------
    >>> from cygrad.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()])(cygrad.tensor(-0.5))
    tensor(1.)
    """

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in as_items(
            "ComposeTransform", "parts", parts, Transform)]

    bijective = property(lambda self: all(part.bijective for part in self.parts))

    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    def _side(self, parts, near, far):
        """Return domain or codomain, with the dimensions that the parts need."""
        if not parts:
            return constraints.real
        side = getattr(parts[0], near)
        n = getattr(parts[-1], far).event_dim
        for part in reversed(parts):
            n = max(n + getattr(part, near).event_dim - getattr(part, far).event_dim, getattr(part, near).event_dim)
        return constraints.independent(side, n - side.event_dim) if n > side.event_dim else side

    domain = property(lambda self: self._side(self.parts, "domain", "codomain"))
    codomain = property(lambda self: self._side(self.parts[::-1], "codomain", "domain"))

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return cygrad.zeros_like(x)
        total, n = 0, self.domain.event_dim
        for part in self.parts:
            image = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, image), n - part.domain.event_dim)
            n += part.codomain.event_dim - part.domain.event_dim
            x = image
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return cygrad.Size(shape)

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return cygrad.Size(shape)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__


class _Segments(Transform):
    """Transforms of parts of a value along a dimension."""

    _cut: Any                                      # list of parts of a value, and back
    _join: Any

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) for part in as_items(
            type(self).__name__, "tseq", tseq, Transform)], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    bijective = property(lambda self: all(part.bijective for part in self.transforms))
    domain = property(lambda self: self._set([part.domain for part in self.transforms]))
    codomain = property(lambda self: self._set([part.codomain for part in self.transforms]))

    def _call(self, x):
        return self._join([part(v) for part, v in zip(self.transforms, self._cut(x), strict=True)])

    def _inverse(self, y):
        return self._join([part.inv(v) for part, v in zip(self.transforms, self._cut(y), strict=True)])

    def log_abs_det_jacobian(self, x, y):
        found = [part.log_abs_det_jacobian(u, v) for part, u, v in zip(
            self.transforms, self._cut(x), self._cut(y), strict=True)]
        return self._join(found)


class CatTransform(_Segments):
    """
    Concatenated pieces of these lengths.

    Examples
    --------
    >>> from cygrad.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 1])(cygrad.zeros(2))
    tensor([1., 0.])
    """

    def _set(self, parts):
        return constraints.cat(parts, self.dim, self.lengths)

    def _cut(self, value):
        return value.split(self.lengths, self.dim)

    def _join(self, values):
        return cygrad.cat(values, self.dim)


class StackTransform(_Segments):
    """
    Pieces side by side.

    Examples
    --------
    >>> from cygrad.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform])(cygrad.zeros(2, 2))
    tensor([[1., 1.],
            [0., 0.]])
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, None, cache_size)

    def _set(self, parts):
        return constraints.stack(parts, self.dim)

    def _cut(self, value):
        return value.unbind(self.dim)

    def _join(self, values):
        return cygrad.stack(values, self.dim)


class CumulativeDistributionTransform(Transform):
    """
    The distribution function of a distribution of single numbers.

    Examples
    --------
    >>> from cygrad.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(cygrad.tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        """Return the density."""
        return self.distribution.log_prob(x)


identity_transform: Transform = ComposeTransform([])
