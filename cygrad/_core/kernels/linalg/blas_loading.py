"""
Loads our copy of OpenBLAS without threads of its own.

They would never get any work (see `blas`), but the library starts them when it is loaded, and idle ones stay awake for
some time: on two cores that took a fifth of the import. How many to start can only be said in the environment.
"""

import os

import numpy  # noqa: F401  (its own OpenBLAS is loaded first, and keeps its threads)

SETTING = "OPENBLAS_NUM_THREADS"

_given = os.environ.get(SETTING)
os.environ[SETTING] = "1"
try:
    import cygrad._core.kernels.linalg.blas  # noqa: F401
finally:
    if _given is None:
        del os.environ[SETTING]
    else:
        os.environ[SETTING] = _given
