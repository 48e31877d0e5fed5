"""Hessian-vector products by double backward, and Hessians."""

from . import suite


class SecondOrder(suite._Scenarios):
    """A Hessian-vector product, and a Hessian."""

    params = suite.over("hvp", "hessian")
