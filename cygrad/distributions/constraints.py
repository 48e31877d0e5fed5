"""Constraints: sets of values of parameters and samples."""

import cygrad

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]


class Constraint:
    """
    A set of values with `event_dim` dimensions.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.positive.check(cygrad.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Return which of the values are in the set."""
        raise NotImplementedError(f"check: {type(self).__name__} does not define it. Add a method check(self, value).")

    def __repr__(self):
        return type(self).__name__.strip("_") + "()"


class _Dependent(Constraint):
    """A constraint that depends on the parameters of an instance.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent)
    True
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = property(lambda self: self._known("is_discrete"), doc="Whether the values are discrete.")
    event_dim = property(lambda self: self._known("event_dim"), doc="Number of dimensions of a value.")

    def _known(self, name):
        if (value := getattr(self, f"_{name}")) is NotImplemented:
            raise NotImplementedError(f"dependent: {name} depends on an instance of the distribution.")
        return value

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value):
        raise ValueError("dependent: only the constraint of an instance can check values.")


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; on the class, a dependent one.

    Examples
    --------
    >>> from cygrad.distributions import Uniform
    >>> Uniform(0.0, 2.0).support
    Interval(lower_bound=0.0, upper_bound=2.0)
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _checked(name, check, event_dim=0, is_discrete=False):
    """Return a constraint given by a function; its class is named with an underscore."""
    kind = type(f"_{name}", (Constraint,), {
        "__doc__": f"The class of {name}().", "__module__": __name__, "event_dim": event_dim,
        "is_discrete": is_discrete, "check": lambda self, value: check(value)})
    globals()[kind.__name__] = kind
    return kind()


class _Bounded(Constraint):
    """Numbers between two bounds (None: unbounded), each included or not."""

    def __init__(self, name, lower, upper, includes=(True, True), is_discrete=False):
        self.name, self.includes, self.is_discrete = name, includes, is_discrete
        if lower is not None:
            self.lower_bound = lower
        if upper is not None:
            self.upper_bound = upper

    def check(self, value):
        found = value % 1 == 0 if self.is_discrete else value == value
        if hasattr(self, "lower_bound"):
            found = found & ((value >= self.lower_bound) if self.includes[0] else (value > self.lower_bound))
        if hasattr(self, "upper_bound"):
            found = found & ((value <= self.upper_bound) if self.includes[1] else (value < self.upper_bound))
        return found

    def __repr__(self):
        bounds = [f"{name}={getattr(self, name)}" for name in ("lower_bound", "upper_bound") if hasattr(self, name)]
        return f"{self.name}({', '.join(bounds)})"


class interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`, both included.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.interval(0, 1).check(cygrad.tensor([0.0, 2.0]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound, upper_bound):
        super().__init__("Interval", lower_bound, upper_bound)


class half_open_interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`, the latter excluded.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.half_open_interval(0, 1).check(cygrad.tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound, upper_bound):
        super().__init__("HalfOpenInterval", lower_bound, upper_bound, (True, False))


class integer_interval(_Bounded):
    """Integers from `lower_bound` to `upper_bound`, both included.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.integer_interval(0, 1).check(cygrad.tensor([0.0, 0.5]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound, upper_bound):
        super().__init__("IntegerInterval", lower_bound, upper_bound, is_discrete=True)


class greater_than(_Bounded):
    """Numbers above `lower_bound`.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.greater_than(0).check(cygrad.tensor([0.0, 1.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound):
        super().__init__("GreaterThan", lower_bound, None, (False, True))


class greater_than_eq(_Bounded):
    """Numbers not below `lower_bound`.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.greater_than_eq(0).check(cygrad.tensor([0.0, -1.0]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound):
        super().__init__("GreaterThanEq", lower_bound, None)


class less_than(_Bounded):
    """Numbers below `upper_bound`.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.less_than(0).check(cygrad.tensor([0.0, -1.0]))
    tensor([False,  True])
    """

    def __init__(self, upper_bound):
        super().__init__("LessThan", None, upper_bound, (True, False))


class _IntegerAbove(_Bounded):
    def __init__(self, lower_bound):
        super().__init__("IntegerGreaterThan", lower_bound, None, is_discrete=True)


class multinomial(Constraint):
    """
    Counts with a sum of at most `upper_bound`.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.multinomial(3).check(cygrad.tensor([1.0, 2.0]))
    tensor(True)
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """
    Values whose elements along the last dimensions are all in `base_constraint`.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).check(cygrad.ones(2, 3))
    tensor([True, True])
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if found.ndim < n:
            raise ValueError(f"independent: Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return found.reshape((*found.shape[:found.ndim - n], -1)).all(-1)

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values in the constraint of the components, which have one dimension more.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> inside = constraints.MixtureSameFamilyConstraint(constraints.positive)
    >>> inside.check(cygrad.tensor([1.0, -1.0]).unsqueeze(-1))
    tensor([[ True],
            [False]])
    """

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value):
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.reshape((*found.shape[:found.ndim - 1], -1)).all(-1)


class _Parts(Constraint):
    """Parts along a dimension, each with its own constraint."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    is_discrete = property(lambda self: any(part.is_discrete for part in self.cseq))
    event_dim = property(lambda self: max(part.event_dim for part in self.cseq))


class cat(_Parts):
    """Concatenated parts of these lengths.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.cat([constraints.positive, constraints.real]).check(cygrad.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        return cygrad.cat([part.check(v) for part, v in zip(self.cseq, parts, strict=True)], self.dim)


class stack(_Parts):
    """
    Stacked parts.

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.stack([constraints.positive, constraints.real]).check(cygrad.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def check(self, value):
        parts = value.unbind(self.dim)
        return cygrad.stack([part.check(v) for part, v in zip(self.cseq, parts, strict=True)], self.dim)


def _is_symmetric(value):
    return cygrad.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


def _is_lower(value):
    return (value.tril() == value).all(-1).all(-1)


def _has_unit_rows(value):
    tolerance = 10 * value.shape[-1] * (2.0**-23 if value.dtype is cygrad.float32 else 2.0**-52)
    return ((value.detach().square().sum(-1) - 1).abs() < tolerance).all(-1)


def is_dependent(constraint):
    """
    Does the constraint depend on the parameters of an instance?

    Examples
    --------
    >>> from cygrad.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent)
    True
    """
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
dependent_property = _DependentProperty
boolean = _checked("Boolean", lambda value: (value == 0) | (value == 1), is_discrete=True)
one_hot = _checked("OneHot", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), 1, True)
nonnegative_integer = _IntegerAbove(0)
positive_integer = _IntegerAbove(1)
real: Constraint = _checked("Real", lambda value: value == value)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _checked("Simplex", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), 1)
lower_triangular = _checked("LowerTriangular", _is_lower, 2)
lower_cholesky = _checked("LowerCholesky", lambda v: _is_lower(v) & (v.diagonal(dim1=-2, dim2=-1) > 0).all(-1), 2)
corr_cholesky = _checked("CorrCholesky", lambda v: lower_cholesky.check(v) & _has_unit_rows(v), 2)
square = _checked("Square", lambda v: cygrad.full(v.shape[:-2], v.shape[-2] == v.shape[-1]), 2)
symmetric = _checked("Symmetric", _is_symmetric, 2)
positive_semidefinite = _checked(
    "PositiveSemidefinite", lambda v: _is_symmetric(v) & (cygrad.linalg.eigvalsh(v) >= 0).all(-1), 2)
positive_definite = _checked(
    "PositiveDefinite", lambda v: _is_symmetric(v) & (cygrad.linalg.cholesky_ex(v).info == 0), 2)
