"""The twenty slowest operators relative to PyTorch, by the last run of `benchmarks.operators`."""

from .figures import ratios_of, read, slowest
from .operators import SIZES, cases, prepared
from .workloads import LIBRARIES, library


class SlowestOperators:
    """Each without recording and with backward, at three sizes."""

    params = (LIBRARIES, tuple(slowest(ratios_of(read()["operators"]))), SIZES, ("forward", "backward"))
    param_names = ("library", "operator", "size", "mode")

    def setup(self, name, operator, size, mode):
        lib = library(name)
        arrays, call = next((arrays, call) for found, arrays, call in cases(size) if found == operator)
        self.run = prepared(lib, arrays, call, mode == "backward")
        if self.run is None:
            raise NotImplementedError(f"{operator} has no derivative")

    def time_operator(self, name, operator, size, mode):
        self.run()
