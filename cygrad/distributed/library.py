"""Addresses and handles of the MPI library that mpi4py has loaded, for direct calls."""

import ctypes
import functools

import numpy as np

from cygrad import from_numpy
from cygrad.distributed.reduce_op import ReduceOp

__all__ = ["handle", "progress_for"]

NUMBERS = "?bBhHiIlLqQfdFD"           # NumPy's characters of the dtypes that MPI reduces


@functools.cache
def _addresses():
    """Return addresses of functions; sets the handles of each `ReduceOp`, in a list by dtype codes."""
    from mpi4py import MPI
    codes = {char: from_numpy(np.empty(0, char)).dtype.code for char in NUMBERS}
    for op in set(ReduceOp) - {ReduceOp.AVG}:
        for char, code in codes.items():
            name = op.names[np.dtype(char).kind]
            if name is not None:
                op.handles[code] = handle(MPI.Datatype.fromcode(char)), handle(getattr(MPI, name))
    library = ctypes.CDLL(MPI.__file__)               # finds the linked library
    return [ctypes.cast(function, ctypes.c_void_p).value for function in (library.MPI_Test, library.MPI_Iallreduce)]


def handle(thing):
    """Return the handle of an mpi4py object."""
    from mpi4py import MPI
    return MPI._handleof(thing)


def progress_for(crowded):
    """Return the object that makes progress on the collectives of a group."""
    from mpi4py import MPI

    from cygrad._core.communication.progress import Progress
    in_place = ctypes.c_size_t(int(MPI.IN_PLACE)).value
    return Progress(*_addresses(), in_place, MPI.Request, MPI._addressof, MPI.Exception, crowded)
