"""Reduction operations of collectives."""

import enum

__all__ = ["ReduceOp"]


class ReduceOp(enum.Enum):
    """
    Reduction operation of collectives.

    The value is the name of the operation in MPI. `AVG` is the sum divided by the number of ranks. For bool, SUM and
    MAX are logical or, PRODUCT and MIN logical and.

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


ReduceOp.RedOpType = ReduceOp                # name in annotations
OF_BOOLEANS = {"SUM": "LOR", "MAX": "LOR", "PROD": "LAND", "MIN": "LAND", "BAND": "LAND", "BOR": "LOR", "BXOR": "LXOR"}
# Kinds of NumPy dtypes that an operation is not defined for.
DTYPES = 16
REFUSED = {"AVG": "biu", "MIN": "c", "MAX": "c", "BAND": "fc", "BOR": "fc", "BXOR": "fc"}
for _op in ReduceOp:          # kind -> name of the operation in MPI, or None
    _op.names = {kind: None if kind in REFUSED.get(_op.value, "") else OF_BOOLEANS[_op.value] if kind == "b"
                 else "SUM" if _op.value == "AVG" else _op.value for kind in "biufc"}
    _op.handles = [None] * DTYPES       # by dtype, after MPI is loaded: handles of dtype and operation


def mpi_name(operation, op, dtype):
    """Return the name of the operation in MPI for a NumPy dtype."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{operation}: op must be a ReduceOp (got {op!r}). Use ReduceOp.SUM, AVG, PRODUCT, MIN or MAX.")
    name = op.names[dtype.kind]
    if name is None:
        raise TypeError(f"{operation}: ReduceOp.{op.name} is not defined for {dtype}. Convert the tensor with to(), or "
                        "use another operation.")
    return name
