"""How elements of several ranks become one."""

import enum

__all__ = ["ReduceOp"]


class ReduceOp(enum.Enum):
    """
    How elements of several ranks become one.

    The value is the name of MPI's operation. `AVG` is a sum that is divided by the number of ranks. Of booleans, the
    sum and the maximum say whether any is true, the product and the minimum whether all are.

    Examples
    --------
    >>> from cygrad.distributed import ReduceOp
    >>> ReduceOp.SUM
    <ReduceOp.SUM: 'SUM'>
    """

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PROD"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"


ReduceOp.RedOpType = ReduceOp                # its name in annotations
OF_BOOLEANS = {"SUM": "LOR", "MAX": "LOR", "PROD": "LAND", "MIN": "LAND", "BAND": "LAND", "BOR": "LOR", "BXOR": "LXOR"}
# Kinds of NumPy dtypes that an operation is not defined for.
REFUSED = {"AVG": "biu", "MIN": "c", "MAX": "c", "BAND": "fc", "BOR": "fc", "BXOR": "fc"}


def mpi_name(operation, op, dtype):
    """The name of MPI's operation for elements of a NumPy dtype."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{operation}: op must be a ReduceOp (got {op!r}). Use ReduceOp.SUM, AVG, PRODUCT, MIN or MAX.")
    kind, name = dtype.kind, op._value_               # `value` is a property, and slow
    if name in REFUSED and kind in REFUSED[name]:
        raise TypeError(f"{operation}: ReduceOp.{op.name} is not defined for {dtype}. Convert the tensor with to(), or "
                        "use another operation.")
    return OF_BOOLEANS[name] if kind == "b" else "SUM" if name == "AVG" else name
