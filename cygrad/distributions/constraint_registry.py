"""Transforms from real numbers to constraints: `biject_to`, and `transform_to` for optimizers."""

from cygrad.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms by the class of the constraint.

    Examples
    --------
    >>> from cygrad.distributions import biject_to, constraints
    >>> biject_to(constraints.positive)(cygrad.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self):
        self._makers = {}

    def register(self, constraint, factory=None):
        """Register a factory; without one, return a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if not (isinstance(constraint, constraints.Constraint)
                or (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint))):
            raise TypeError(f"register: expected a Constraint or a subclass of it (got {constraint!r}).")
        self._makers[constraint if isinstance(constraint, type) else type(constraint)] = factory
        return factory

    def __call__(self, constraint):
        maker = next((self._makers[cls] for cls in type(constraint).__mro__ if cls in self._makers), None)
        if maker is None:
            raise NotImplementedError(f"transform_to: no transform to {type(constraint).__name__} is registered. "
                                      f"Register one.")
        return maker(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _between(constraint):
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)])


def _above(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


def _parts(kind, registry):
    def make(constraint):
        parts = [registry(part) for part in constraint.cseq]
        return kind(parts, constraint.dim, *([constraint.lengths] if kind is transforms.CatTransform else []))
    return make


def _independent(registry):
    return lambda constraint: transforms.IndependentTransform(
        registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


for _registry in (biject_to, transform_to):
    for _constraint, _maker in {
        constraints.real: lambda constraint: transforms.identity_transform,
        constraints.independent: _independent(_registry),
        constraints.greater_than: lambda constraint: (
            transforms.ExpTransform() if isinstance(constraint.lower_bound, float) and constraint.lower_bound == 0
            else _above(constraint)),
        constraints.less_than: lambda constraint: transforms.ComposeTransform(
            [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]),
        constraints.interval: _between, constraints.half_open_interval: _between,
        constraints.simplex: lambda constraint, registry=_registry: (
            transforms.StickBreakingTransform() if registry is biject_to else transforms.SoftmaxTransform()),
        constraints.lower_cholesky: lambda constraint: transforms.LowerCholeskyTransform(),
        constraints.positive_definite: lambda constraint: transforms.PositiveDefiniteTransform(),
        constraints.positive_semidefinite: lambda constraint: transforms.PositiveDefiniteTransform(),
        constraints.corr_cholesky: lambda constraint: transforms.CorrCholeskyTransform(),
        constraints.cat: _parts(transforms.CatTransform, _registry),
        constraints.stack: _parts(transforms.StackTransform, _registry),
    }.items():
        _registry.register(_constraint, _maker)
    _registry._makers[constraints.greater_than_eq] = _registry._makers[constraints.greater_than]
