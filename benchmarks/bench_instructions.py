"""Instructions per operation, counted by callgrind, independent of the load of the machine."""

import shutil
import tempfile

from .instructions import NOTHING, counted, per_operation, titles


class Instructions:
    """Of all operations at once, in one run."""

    params = (("cygrad",), tuple(titles()))
    param_names = ("library", "operation")
    unit = "instructions"
    timeout = 600

    def setup_cache(self):
        if not shutil.which("valgrind"):
            return {}
        with tempfile.TemporaryDirectory() as folder:
            return per_operation(counted("cygrad", {NOTHING, *titles()}, folder))

    def setup(self, costs, name, operation):
        if operation not in costs:
            raise NotImplementedError("valgrind is not installed")

    def track_instructions(self, costs, name, operation):
        return costs[operation]
