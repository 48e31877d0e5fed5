"""Libraries on top of PyTorch give equal results under the stand-in and under PyTorch."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "libraries"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def output(folder, program, *interpreter):
    """The lines that a program prints."""
    folder.mkdir()
    command = [sys.executable, "-W", "ignore", *interpreter, str(PROGRAMS / program)]
    done = subprocess.run(command, cwd=folder, text=True,
                          capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("library", ["einops", "skorch", "gpytorch", "pyro"])
def test_the_same_results(library, tmp_path):
    program = f"with_{library}.py"
    theirs = output(tmp_path / "theirs", program)
    ours = output(tmp_path / "ours", program, "-m", "cygrad")
    assert len(ours) == len(theirs) > 4
    for our, their in zip(ours, theirs, strict=True):
        assert NUMBER.sub("#", our) == NUMBER.sub("#", their)
        assert [float(number) for number in NUMBER.findall(our)] == pytest.approx(
            [float(number) for number in NUMBER.findall(their)], rel=5e-3, abs=5e-4)
