"""Time and resident memory of an import."""

import sys
from statistics import median

from .turns import measured
from .workloads import EAGER, library


class Import:
    """In a fresh interpreter, NumPy included."""

    params = (EAGER,)
    param_names = ("library",)
    timeout = 120

    def setup(self, name):
        library(name)

    def timeraw_import(self, name):
        return f"import sys; sys.path = {sys.path!r}; import {name}"

    def track_times_cygrad(self, name):
        """Time relative to cygrad's, measured alternately."""
        return median(measured("import_time", name, 1) / measured("import_time", "cygrad", 1) for _ in range(3))

    def track_resident(self, name):
        return measured("import_memory", name, 1)

    track_times_cygrad.unit = "times"
    track_resident.unit = "bytes"
