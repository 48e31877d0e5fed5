"""What it costs to import a library: time, and memory that stays."""

import os
import subprocess
import sys

from .workloads import LIBRARIES, library

RESIDENT = """
import os
def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
import {name}
print(resident() - before)
"""


class Import:
    """In a fresh interpreter, NumPy included."""

    params = (LIBRARIES,)
    param_names = ("library",)

    def setup(self, name):
        library(name)

    def timeraw_import(self, name):
        return f"import sys; sys.path = {sys.path!r}; import {name}"

    def track_resident(self, name):
        answer = subprocess.run([sys.executable, "-c", RESIDENT.format(name=name)], capture_output=True, check=True,
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        return int(answer.stdout)

    track_resident.unit = "bytes"
