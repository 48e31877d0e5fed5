"""Base classes of distributions."""

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import cygrad
from cygrad import Size, Tensor
from cygrad._core.graph.argument_errors import as_sizes
from cygrad.distributions import constraints
from cygrad.distributions.utils import broadcast_all, lazy_property, sum_last

__all__ = ["Distribution", "ExponentialFamily", "Parametric"]


class Distribution:
    """
    Base class: a batch of distributions of `batch_shape`, each over values of `event_shape`.

    Parameters
    ----------
    batch_shape, event_shape : tuple of int
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from cygrad.distributions import Distribution, Normal
    >>> isinstance(Normal(0.0, 1.0), Distribution)
    True
    >>> Normal(cygrad.zeros(3), 1.0).batch_shape
    (3,)
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Any] = {}
    support: Any = None
    _validate_args = __debug__

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...         # parameters, by the names in `arg_constraints`

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        super().__init__()
        self._batch_shape, self._event_shape = (as_sizes(type(self).__name__, name, shape) for name, shape in (
            ("batch_shape", batch_shape), ("event_shape", event_shape)))
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), (lazy_property, property)):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"{type(self).__name__}: Expected parameter {name} ({type(value).__name__} of shape "
                                 f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                                 f"{constraint!r}, but found invalid values:\n{value}")

    @staticmethod
    def set_default_validate_args(value):
        """Set whether distributions check parameters and values by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool (got {value!r}).")
        Distribution._validate_args = value

    batch_shape = property(lambda self: Size(self._batch_shape), doc="Shape of the batch of distributions.")
    event_shape = property(lambda self: Size(self._event_shape), doc="Shape of one value.")
    stddev = property(lambda self: self.variance.sqrt(), doc="Standard deviation.")

    @property
    def mean(self):
        """Mean."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mean.")

    @property
    def mode(self):
        """Mode."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """Variance."""
        raise NotImplementedError(f"{type(self).__name__} does not implement variance.")

    def expand(self, batch_shape, _instance=None):
        """Return the distribution expanded to `batch_shape`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement expand.")

    def _get_checked_instance(self, cls, _instance=None):
        """Return `_instance` for `expand`, or a new object if the constructor is that of `cls`."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(f"expand: {type(self).__name__} has a custom constructor and must define "
                                      f"expand(), as {cls.__name__} does.")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, batch_shape, _instance):
        """Expand all tensors and distributions that are attributes."""
        batch_shape, n = tuple(batch_shape), len(self._batch_shape)
        twin = object.__new__(type(self)) if _instance is None else _instance
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor) and tuple(value.shape[:n]) == self._batch_shape:
                value = value.expand(batch_shape + tuple(value.shape[n:]))
            elif isinstance(value, Distribution):
                value = value.expand(batch_shape + tuple(value.batch_shape[n:]))
            twin.__dict__[name] = value
        twin._batch_shape = batch_shape
        return twin

    def sample(self, sample_shape=()):
        """Draw values of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with cygrad.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Draw values through which gradients flow to the parameters (reparameterized)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample. Use sample().")

    def sample_n(self, n):
        """Draw `n` values."""
        return self.sample((n,))

    def log_prob(self, value):
        """Return the logarithm of the probability density or mass at the value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob.")

    def cdf(self, value):
        """Return the cumulative distribution function at the value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf.")

    def icdf(self, value):
        """Return the inverse of the cumulative distribution function."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf.")

    def entropy(self):
        """Return the entropy."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy.")

    def enumerate_support(self, expand=True):
        """Return all values, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support.")

    def perplexity(self):
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        if not isinstance(value, Tensor):
            raise ValueError("log_prob: The value argument to log_prob must be a Tensor")
        n = value.ndim - len(self._event_shape)
        if tuple(value.shape[n:]) != self._event_shape:
            raise ValueError(f"{type(self).__name__}: the last dimensions of a value are those of an event (got shape "
                             f"{tuple(value.shape)}, expected (..., *{self._event_shape})).")
        shape, batch = tuple(value.shape), self._batch_shape + self._event_shape
        for size, own in zip(reversed(shape), reversed(batch), strict=False):
            if size not in (1, own) and own != 1:
                raise ValueError(f"{type(self).__name__}: the shape of the value does not match (got {shape}, expected "
                                 f"one that broadcasts with {batch}).")
        if self.support is not None and not self.support.check(value).all():
            raise ValueError(f"{self!r}: all values must be within the support {self.support!r} (got shape {shape}:\n"
                             f"{value}).")

    def _checked(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self):
        parts = [f"{name}: {value if value.numel() == 1 else value.shape}"
                 for name, value in ((name, self.__dict__.get(name)) for name in self.arg_constraints)
                 if isinstance(value, Tensor)]
        return f"{type(self).__name__}({', '.join(parts)})"


class Parametric(Distribution):
    """
    A distribution with the parameters of `arg_constraints`, in their order.

    Parameters
    ----------
    *arguments, **named : Tensor or number
        The parameters, broadcast against each other.
    validate_args : bool, optional
        Whether parameters and values are checked.
    """

    __signature__: ClassVar[Any]

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        cls.__signature__ = None                            # use that of `__init__`
        if cls.__init__ is Parametric.__init__ and isinstance(cls.arg_constraints, dict):
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            cls.__signature__ = inspect.Signature([*[inspect.Parameter(name, kind) for name in cls.arg_constraints],
                                                   inspect.Parameter("validate_args", kind, default=None)])

    def __init__(self, *arguments, validate_args=None, **named):
        if (arguments and isinstance(arguments[0], tuple)) or "batch_shape" in named:
            # super().__init__() of a subclass with other parameters.
            Distribution.__init__(self, *arguments, **named | {"validate_args": validate_args})
            return
        names = list(self.arg_constraints)
        given = dict(zip(names, arguments, strict=False))
        if len(arguments) == len(names) + 1 and validate_args is None:
            validate_args, arguments = arguments[-1], arguments[:-1]
        if len(arguments) > len(names) or set(given) & set(named) or set(given) | set(named) != set(names):
            raise TypeError(f"{type(self).__name__}: expected the parameters {', '.join(names)} (got {len(arguments)} "
                            f"by position and {sorted(named)}).")
        self._hold(given | named, (), validate_args)

    def _hold(self, parameters, event_shape, validate_args):
        """Broadcast scalar parameters and store them as attributes."""
        if not parameters:
            raise TypeError(f"{type(self).__name__}: the class has no parameters in arg_constraints (got none). Pass "
                            "batch_shape and event_shape to Distribution.__init__.")
        tensors = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, tensors, strict=True))
        Distribution.__init__(self, tensors[0].shape, event_shape, validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, _instance)


class ExponentialFamily(Parametric):
    """
    An exponential family, whose entropy follows from the derivative of its log normalizer.

    Examples
    --------
    >>> from cygrad.distributions import ExponentialFamily, Normal
    >>> isinstance(Normal(0.0, 1.0), ExponentialFamily)
    True
    """

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__} does not implement natural parameters.")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} does not implement the log normalizer.")

    def entropy(self):
        """Return the entropy, by the derivative of the log normalizer with respect to the natural parameters."""
        natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        with cygrad.enable_grad():
            normalizer = self._log_normalizer(*natural)
            gradients = cygrad.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = -self._mean_carrier_measure + normalizer
        for parameter, gradient in zip(natural, gradients, strict=True):
            event = parameter.ndim - len(self._batch_shape)
            result = result - sum_last(parameter * gradient, event)
        return result
