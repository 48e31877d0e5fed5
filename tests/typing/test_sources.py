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
    "compiling/draws", "compiling/function", "compiling/graphs", "compiling/guards", "compiling/structures",
    "compiling/verification", "composite/calculus", "composite/contraction", "composite/out_forms",
    "composite/shapes", "distributions/composed", "distributions/constraint_registry",
    "distributions/constraints", "distributions/continuous", "distributions/discrete",
    "distributions/distribution", "distributions/gamma_family", "distributions/kl", "distributions/relaxed",
    "distributions/transform", "distributions/transformed", "distributions/transforms", "distributions/vectors",
    "nn/activation", "nn/attributes", "nn/container", "nn/embedding", "nn/functional/attention",
    "nn/functional/embedding", "nn/functional/pooling", "nn/functional/recurrent", "nn/hooks", "nn/lazy",
    "nn/lazy_convolution", "nn/margin_loss", "nn/modules/module", "nn/normalization", "nn/parallel/distributed",
    "nn/parallel/parallel_apply", "nn/parallel/scatter_gather", "nn/parameter", "nn/piecewise", "nn/recurrent",
    "nn/registry", "nn/utils/init", "nn/utils/orthogonal", "nn/utils/parametrize", "nn/utils/prune",
    "nn/utils/rnn", "optim/adafactor", "optim/hooks",
    "optim/line_search", "optim/lr_scheduler/combined", "optim/lr_scheduler/factors",
    "optim/lr_scheduler/plateau", "optim/muon", "optim/optimizer",
    "optim/sparse_steps", "random/draws", "random/sampling", "serialization/__init__", "serialization/files",
    "serialization/native", "serialization/torch_reader", "serialization/torch_writer", "signal/windows",
    "utils/checkpoint", "utils/data/dataloader", "utils/data/dataset", "utils/data/processes",
    "utils/data/workers", "utils/operator_modes", "utils/pytree",
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
