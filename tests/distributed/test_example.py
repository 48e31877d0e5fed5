"""The MPI example: accuracy, picture, and resuming with bit-identical results."""

import re

import pytest

import cygrad

from .ranks import ROOT, mpiexec, run

EXAMPLE = ROOT / "examples" / "digits_mpi.py"


@pytest.mark.slow
@pytest.mark.skipif(mpiexec() is None, reason="MPI is not installed")
def test_digits(tmp_path):
    for name in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(name)
    code, out, error = run(2, [EXAMPLE, "--epochs", "15", "--out", tmp_path], 120)
    assert code == 0, error
    assert float(re.search(r"^2 ranks, .*test accuracy ([\d.]+)%", out, re.MULTILINE).group(1)) > 94
    assert (tmp_path / "digits_mpi.png").read_bytes().startswith(b"\x89PNG")
    assert error.count("100%") >= 1 and "1 rank:" not in error             # one bar, that of rank 0
    given = ["--deterministic", "--checkpoint", tmp_path / "state", "--out", tmp_path]
    losses = []
    for epochs, keep in ((4, False), (2, False), (4, True)):
        if not keep:
            (tmp_path / "state").unlink(missing_ok=True)
        code, out, error = run(2, [EXAMPLE, "--epochs", epochs, *given], 120)
        assert code == 0, error
        losses.append(cygrad.load(tmp_path / "state")["history"])
    assert losses[0] == losses[2] != losses[1]
