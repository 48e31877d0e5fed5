"""
Load our copy of OpenBLAS without threads of its own.

They would never get any work (see `blas`), but spin after they start: on two cores that took a fifth of the import.
Only the environment sets their number.
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
