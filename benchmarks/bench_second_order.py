"""Second derivatives: by backward through backward, and all of a function of a vector."""

from . import suite


class SecondOrder(suite._Scenarios):
    """A Hessian times a vector, and a whole one."""

    params = suite.over("hvp", "hessian")
