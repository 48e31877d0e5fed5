"""Multivariate distributions: Dirichlet, multivariate normal, Wishart, LKJ."""

import math

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_integer
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution, ExponentialFamily, Parametric
from cygrad.distributions.gamma_family import Beta
from cygrad.distributions.gamma_samples import log_standard_gamma, standard_gamma
from cygrad.distributions.utils import TINY, lgamma_less_digamma

__all__ = ["Dirichlet", "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]

LOG_2PI = math.log(2 * math.pi)


class Dirichlet(ExponentialFamily):
    """
    Dirichlet distribution on the simplex.

    Examples
    --------
    >>> from cygrad.distributions import Dirichlet
    >>> Dirichlet(cygrad.ones(4)).mean
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if as_tensor_argument("Dirichlet", "concentration", concentration).ndim < 1:
            raise ValueError(f"Dirichlet: 'concentration' needs a dimension for the categories (got shape "
                             f"{tuple(concentration.shape)}).")
        self.concentration = concentration
        Distribution.__init__(self, concentration.shape[:-1], concentration.shape[-1:], validate_args)

    _total = property(lambda self: self.concentration.sum(-1, keepdim=True))
    mean = property(lambda self: self.concentration / self._total)

    @property
    def mode(self):
        """Mode; a corner if all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        highest = cygrad.nn.functional.one_hot(self.concentration.argmax(-1), above.shape[-1]).to(above.dtype)
        return cygrad.where((above == 0).all(-1, keepdim=True), highest, above / above.sum(-1, keepdim=True))

    @property
    def variance(self):
        """Variance of each element."""
        total = self._total
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        parts = log_standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return parts.softmax(-1).to(self.concentration.dtype)

    def log_prob(self, value):
        self._checked(value)
        return (cygrad.xlogy(self.concentration - 1, value).sum(-1) + cygrad.lgamma(self.concentration.sum(-1))
                - cygrad.lgamma(self.concentration).sum(-1))

    def entropy(self):
        a = self.concentration
        return lgamma_less_digamma(a, 1).sum(-1) - lgamma_less_digamma(a.sum(-1), a.shape[-1])

    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x):
        return cygrad.lgamma(x).sum(-1) - cygrad.lgamma(x.sum(-1))


def _times(matrix, vector):
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _distance(factor, difference):
    """Return squared Mahalanobis distances of vectors for the covariance ``factor @ factor.T``."""
    shape = cygrad.broadcast_shapes(tuple(factor.shape[:-2]), tuple(difference.shape[:-1]))
    factor = factor.expand((*shape, *factor.shape[-2:]))
    difference = difference.expand((*shape, difference.shape[-1]))
    return cygrad.linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False).square().sum((-2, -1))


def _half_log_det(factor):
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _factor_of_inverse(precision):
    """Return the Cholesky factor of the inverse."""
    turned = cygrad.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    eye = cygrad.eye(precision.shape[-1], dtype=precision.dtype).expand(precision.shape)
    return cygrad.linalg.solve_triangular(turned, eye, upper=False)


class _Normal(Parametric):
    """Base of the multivariate normal distributions."""

    support = constraints.real_vector
    has_rsample = True
    mean = mode = property(lambda self: self.loc)


class MultivariateNormal(_Normal):
    """
    Multivariate normal distribution with mean `loc` and one of three forms of the covariance.

    Parameters
    ----------
    loc : Tensor
    covariance_matrix, precision_matrix, scale_tril : Tensor
        The covariance, its inverse, or its lower Cholesky factor: exactly one of them.
    validate_args : bool, optional

    Examples
    --------
    >>> from cygrad.distributions import MultivariateNormal
    >>> MultivariateNormal(cygrad.zeros(2), cygrad.eye(2)).log_prob(cygrad.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        for given_name, value in {"loc": loc, **given}.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"MultivariateNormal: {given_name!r} must be a Tensor (got {type(value).__name__}).")
        if loc.ndim < 1:
            raise ValueError(f"MultivariateNormal: 'loc' needs a dimension for the event (got shape "
                             f"{tuple(loc.shape)}).")
        if len(given) != 1:
            raise ValueError("MultivariateNormal: exactly one of covariance_matrix, precision_matrix and scale_tril "
                             "must be specified.")
        (name, matrix), = given.items()
        if matrix.ndim < 2:
            raise ValueError(f"MultivariateNormal: '{name}' must be a matrix or a batch of them.")
        batch = cygrad.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        matrix = matrix.expand((*batch, *matrix.shape[-2:]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        checked = self._validate_args if validate_args is None else validate_args
        if checked and not self.arg_constraints[name].check(matrix).all():
            raise ValueError(f"{type(self).__name__}: Expected parameter {name} to satisfy the constraint "
                             f"{self.arg_constraints[name]!r}, but found invalid values:\n{matrix}")
        self._given = name
        self._unbroadcasted_scale_tril = (matrix if name == "scale_tril" else cygrad.linalg.cholesky(matrix)
                                          if name == "covariance_matrix" else _factor_of_inverse(matrix))
        Distribution.__init__(self, batch, loc.shape[-1:], validate_args)

    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: cygrad.cholesky_inverse(self.scale_tril))
    variance = property(lambda self: self.scale_tril.square().sum(-1))
    # Named as in PyTorch, because subclasses in libraries override it.
    scale_tril = property(lambda self: self._unbroadcasted_scale_tril.expand(
        (*self._batch_shape, *self._event_shape, *self._event_shape)))

    def rsample(self, sample_shape=()):
        noise = cygrad.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + _times(self.scale_tril, noise)

    def log_prob(self, value):
        difference = self._checked(value) - self.loc
        return -0.5 * (self._event_shape[0] * LOG_2PI + _distance(self.scale_tril, difference)) - _half_log_det(
            self.scale_tril)

    def entropy(self):
        return 0.5 * self._event_shape[0] * (1 + LOG_2PI) + _half_log_det(self.scale_tril)


class LowRankMultivariateNormal(_Normal):
    """
    Multivariate normal distribution with covariance ``cov_factor @ cov_factor.T`` plus a diagonal.

    Examples
    --------
    >>> from cygrad.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(cygrad.zeros(2), cygrad.ones(2, 1), cygrad.ones(2)).covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        for name, value in (("loc", loc), ("cov_factor", cov_factor), ("cov_diag", cov_diag)):
            as_tensor_argument("LowRankMultivariateNormal", name, value)
        if loc.ndim < 1 or cov_factor.ndim < 2:
            raise ValueError("LowRankMultivariateNormal: 'loc' must be a vector and 'cov_factor' a matrix, or batches "
                             "of them.")
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(f"LowRankMultivariateNormal: cov_factor must be of shape (..., {n}, rank) and "
                             f"cov_diag of shape (..., {n}).")
        batch = cygrad.broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        weighted = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        eye = cygrad.eye(cov_factor.shape[-1], dtype=loc.dtype)
        self._capacitance_tril = cygrad.linalg.cholesky(weighted @ self.cov_factor + eye)
        Distribution.__init__(self, batch, (n,), validate_args)

    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)
    covariance_matrix = property(
        lambda self: self.cov_factor @ self.cov_factor.mT + cygrad.diag_embed(self.cov_diag))
    precision_matrix = property(lambda self: cygrad.linalg.inv(self.covariance_matrix))
    scale_tril = property(lambda self: cygrad.linalg.cholesky(self.covariance_matrix))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        few = cygrad.randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=self.loc.dtype)
        return self.loc + _times(self.cov_factor, few) + self.cov_diag.sqrt() * cygrad.randn(shape,
                                                                                             dtype=self.loc.dtype)

    def _log_det(self):
        return 2 * _half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value):
        difference = self._checked(value) - self.loc
        weighted = difference / self.cov_diag
        distance = (difference * weighted).sum(-1) - _distance(
            self._capacitance_tril, _times(self.cov_factor.mT, weighted))
        return -0.5 * (self._event_shape[0] * LOG_2PI + self._log_det() + distance)

    def entropy(self):
        return 0.5 * (self._event_shape[0] * (1 + LOG_2PI) + self._log_det())


class Wishart(Parametric):
    """
    Wishart distribution of scatter matrices with `df` degrees of freedom.

    Examples
    --------
    >>> from cygrad.distributions import Wishart
    >>> Wishart(3.0, cygrad.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {"df": constraints.greater_than(0), "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [value for value in (covariance_matrix, precision_matrix, scale_tril) if value is not None]
        if len(given) != 1:
            raise ValueError("Wishart: exactly one of covariance_matrix, precision_matrix and scale_tril must be "
                             "specified.")
        matrix = as_tensor_argument("Wishart", "covariance_matrix, precision_matrix or scale_tril", given[0])
        if matrix.ndim < 2:
            raise ValueError("Wishart: the matrix must have at least two dimensions.")
        df = cygrad.as_tensor(df).to(matrix.dtype)
        batch = cygrad.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.expand(batch)
        if not (self.df > matrix.shape[-1] - 1).all():
            raise ValueError(f"Wishart: Value of df={df} expected to be greater than ndim - 1 = "
                             f"{matrix.shape[-1] - 1}.")
        factor = (scale_tril if scale_tril is not None else _factor_of_inverse(matrix) if precision_matrix is not None
                  else cygrad.linalg.cholesky(matrix))
        self.scale_tril = factor.expand((*batch, *factor.shape[-2:]))
        Distribution.__init__(self, batch, matrix.shape[-2:], validate_args)

    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: cygrad.cholesky_inverse(self.scale_tril))
    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        """Mode; nan if undefined."""
        factor = self.df - self._event_shape[0] - 1
        return cygrad.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        """Variance of each element."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (covariance.square() + diagonal[..., :, None] * diagonal[..., None, :])

    def rsample(self, sample_shape=()):
        """Draw values by the Bartlett decomposition; gradients flow to the parameters."""
        shape = self._extended_shape(sample_shape)
        n = shape[-1]
        halves = 0.5 * (self.df.unsqueeze(-1) - cygrad.arange(n, dtype=self.df.dtype))
        diagonal = (2 * standard_gamma(halves.expand(shape[:-1]))).sqrt()
        noise = cygrad.randn(shape, dtype=self.df.dtype).tril(-1) + cygrad.diag_embed(diagonal)
        factor = self.scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value):
        n, df = self._event_shape[0], self.df
        self._checked(value)
        shape = cygrad.broadcast_shapes(tuple(value.shape), tuple(self.scale_tril.shape))
        turned = cygrad.cholesky_solve(value.expand(shape), self.scale_tril.expand(shape))
        trace = turned.diagonal(dim1=-2, dim2=-1).sum(-1)
        return (-df * _half_log_det(self.scale_tril) - 0.5 * df * n * math.log(2) - cygrad.mvlgamma(0.5 * df, n)
                + 0.5 * (df - n - 1) * cygrad.linalg.slogdet(value).logabsdet - 0.5 * trace)

    def entropy(self):
        n, df = self._event_shape[0], self.df
        digammas = cygrad.digamma(0.5 * (df.unsqueeze(-1) - cygrad.arange(n, dtype=df.dtype))).sum(-1)
        return ((n + 1) * (_half_log_det(self.scale_tril) + 0.5 * n * math.log(2)) + cygrad.mvlgamma(0.5 * df, n)
                - 0.5 * (df - n - 1) * digammas + 0.5 * df * n)


class LKJCholesky(Parametric):
    """
    LKJ distribution of Cholesky factors of correlation matrices (Lewandowski, Kurowicka and Joe, 2009).

    Examples
    --------
    >>> from cygrad.distributions import LKJCholesky
    >>> factor = LKJCholesky(3, 1.0).sample()
    >>> cygrad.allclose((factor @ factor.t()).diagonal(), cygrad.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if (dim := as_integer("LKJCholesky", "dim", dim)) < 2:
            raise ValueError(f"LKJCholesky: Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self._hold({"concentration": concentration}, (dim, dim), validate_args)

    def sample(self, sample_shape=()):
        """Draw values by the onion method: each row is the end of a unit vector."""
        with cygrad.no_grad():
            shape = tuple(sample_shape) + self._batch_shape
            offset = cygrad.cat([cygrad.zeros(1), cygrad.arange(self.dim - 1)]).to(self.concentration.dtype)
            marginal = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2) - 0.5 * offset
            y = Beta(offset + 0.5, marginal, validate_args=False).sample(sample_shape).unsqueeze(-1)
            u = cygrad.randn((*shape, self.dim, self.dim), dtype=y.dtype).tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True)
            sphere = cygrad.cat([cygrad.zeros_like(sphere[..., :1, :]), sphere[..., 1:, :]], -2)
            w = y.sqrt() * sphere
            rest = (1 - w.square().sum(-1)).clamp(min=TINY[w.dtype]).sqrt()
            return w + cygrad.diag_embed(rest)

    def log_prob(self, value):
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = cygrad.arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + cygrad.mvlgamma(alpha - 0.5, n) - cygrad.lgamma(alpha) * n
        return (order * diagonal.log()).sum(-1) - normalizer
