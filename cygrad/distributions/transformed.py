"""Independent and TransformedDistribution."""

import math

import cygrad
from cygrad._core.graph.argument_errors import as_instance, as_integer, as_items
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution
from cygrad.distributions.transforms import ComposeTransform, Transform
from cygrad.distributions.utils import sum_last

__all__ = ["Independent", "TransformedDistribution"]


class Independent(Distribution):
    """
    Reinterpret the last `reinterpreted_batch_ndims` batch dimensions of a distribution as event dimensions.

    Examples
    --------
    >>> from cygrad.distributions import Independent, Normal
    >>> Independent(Normal(cygrad.zeros(2, 3), 1.0), 1).log_prob(cygrad.zeros(2, 3)).shape
    (2,)
    """

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        as_instance("Independent", "base_distribution", base_distribution, Distribution)
        as_integer("Independent", "reinterpreted_batch_ndims", reinterpreted_batch_ndims)
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError("Independent: Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                             f"actual {reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        n = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[:n], shape[n:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    has_enumerate_support = property(lambda self: self.base_dist.has_enumerate_support
                                     and not self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def support(self):
        """Support of the base, for each element."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, _instance)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        """Return the sum of those of the parts."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        """Return the sum of those of the parts."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        """Return the values of the base."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("enumerate_support: Independent: not supported with event dimensions.")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """
    Distribution of transformed values of another distribution.

    Parameters
    ----------
    base_distribution : Distribution
    transforms : Transform or list of Transform
        Applied in this order.
    validate_args : bool, optional

    Examples
    --------
    >>> from cygrad.distributions import ExpTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()]).log_prob(cygrad.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = as_items("TransformedDistribution", "transforms", [transforms] if isinstance(
            transforms, Transform) else transforms, Transform)
        if not all(isinstance(transform, Transform) for transform in self.transforms):
            raise ValueError(f"TransformedDistribution: expected Transforms (got {transforms!r}).")
        whole = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < whole.domain.event_dim:
            raise ValueError("TransformedDistribution: the base has too few dimensions; the transforms need "
                             f"{whole.domain.event_dim} (got shape {shape}).")
        image = whole.forward_shape(shape)
        # Expand the base to the shape of the transforms, and give values the dimensions that they need.
        spread = whole.inverse_shape(image)
        if spread != shape:
            own = len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(spread[:len(spread) - own])
        missing = whole.domain.event_dim - len(base_distribution.event_shape)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing, validate_args=False)
        self.base_dist = base_distribution
        n = len(image) - max(whole.codomain.event_dim, len(base_distribution.event_shape)
                             + whole.codomain.event_dim - whole.domain.event_dim)
        super().__init__(image[:n], image[n:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self):
        """Codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        missing = len(self._event_shape) - found.event_dim
        return constraints.independent(found, missing) if missing > 0 else found

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, _instance)

    def _image(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            return self._image(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._image(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        """Return the log density of the base minus the log determinants."""
        n, y, total = len(self._event_shape), self._checked(value), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            n += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_last(transform.log_abs_det_jacobian(x, y), n - transform.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), n - len(self.base_dist.event_shape))

    def _transposed(self, probability):
        sign = math.prod(transform.sign for transform in self.transforms) if self.transforms else 1
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return cygrad.where(sign > 0, probability, 1 - probability)

    def cdf(self, value):
        self._checked(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._transposed(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._image(self.base_dist.icdf(self._transposed(value)))

    def __repr__(self):
        if type(self) is TransformedDistribution:
            return f"TransformedDistribution({self.base_dist}, {self.transforms})"
        return super().__repr__()
