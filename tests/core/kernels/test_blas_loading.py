"""The private OpenBLAS is loaded with one thread."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import numpy
tasks = "/proc/self/task"
before = len(os.listdir(tasks))
import cygrad
print(len(os.listdir(tasks)) - before, os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("given", [None, "2"])
def test_no_threads_are_started_and_the_setting_is_restored(given):
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.split() == ["0", str(given)]
