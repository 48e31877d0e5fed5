"""mypy checks the function bodies of whole packages; modules that it does not accept yet are listed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("autograd", "compiling", "composite", "distributions", "fft", "func", "linalg", "nn", "optim", "profiler",
            "random", "serialization", "signal", "utils")
NOT_YET = {
    "nn/attributes", "nn/hooks", "nn/registry", "nn/utils/init", "nn/utils/orthogonal", "optim/adafactor",
    "serialization/files", "serialization/torch_reader", "serialization/torch_writer",
}


def test_function_bodies_are_accepted():
    command = [sys.executable, "-m", "mypy", "--config-file", os.devnull, "--cache-dir", "build/mypy-sources",
               "--check-untyped-defs", "--disable-error-code", "var-annotated", "--ignore-missing-imports",
               "--follow-imports", "silent", *(f"cygrad/{package}" for package in PACKAGES)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    errors = [line for line in result.stdout.splitlines() if ".py:" in line and ": error:" in line]
    assert result.returncode == 0 or errors, result.stdout + result.stderr
    refused = {line.partition(".py:")[0].removeprefix("cygrad/") for line in errors}
    assert refused <= NOT_YET, "\n".join(line for line in errors
                                         if line.partition(".py:")[0].removeprefix("cygrad/") not in NOT_YET)
    assert refused == NOT_YET, f"take these out of NOT_YET: {sorted(NOT_YET - refused)}"
