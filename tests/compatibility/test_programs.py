"""Typical PyTorch programs print equal losses under the stand-in and under PyTorch."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
# Programs and their options; each writes to a separate folder.
RUNS = {
    "image_classifier": ("--output", "."),
    "vae": ("--output", "."),
    "dcgan": ("--outf", "."),
    # After the first epoch PyTorch itself differs with other vector instructions: a maximum changes its place.
    "siamese": ("--output", ".", "--epochs", "1"),
    "character_model": ("--save", "model.pt"),
    # Without dropout: PyTorch draws its noise in the order of memory, which is another one after attention.
    "character_model Transformer": ("--model", "Transformer", "--dropout", "0", "--save", "model.pt"),
    "graph_nodes": ("--output", "."),
    "graph_nodes gat": ("--model", "gat", "--output", "."),
    "reinforce": ("--output", "."),
    "actor_critic": ("--save", "model.pt"),
    "neural_ode": ("--save", "model.pt"),
    "physics_informed": ("--save", "model.pt"),
    "super_resolution": ("--output", "."),
    "style_transfer": ("--output", ".", "--steps", "5"),
    "time_series": ("--output", "."),
    "maml": ("--save", "model.pt"),
    "lbfgs_fit": ("--save", "fit.pt"),
}
OURS = ("-m", "cygrad")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def output(folder, program, *options, interpreter=()):
    """Return the output of a program, without times."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, *interpreter, str(PROGRAMS / f"{program}.py"), *options], cwd=folder, text=True,
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if not line.startswith("time")]


@pytest.mark.parametrize("run", RUNS)
def test_the_same_losses(run, tmp_path):
    theirs = output(tmp_path / "theirs", run.split()[0], *RUNS[run])
    ours = output(tmp_path / "ours", run.split()[0], *RUNS[run], interpreter=OURS)
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert NUMBER.sub("#", our) == NUMBER.sub("#", their)
        assert [float(number) for number in NUMBER.findall(our)] == pytest.approx(
            [float(number) for number in NUMBER.findall(their)], rel=2e-3, abs=2e-4)


def test_a_checkpoint_of_each_is_read_by_the_other(tmp_path):
    """Training resumes from a checkpoint of the other library."""
    for name, first, then in (("a", OURS, ()), ("b", (), OURS)):
        output(tmp_path / name, "image_classifier", "--epochs", "1", "--output", ".", interpreter=first)
        lines = output(tmp_path / name, "image_classifier", "--epochs", "2", "--resume", "checkpoint.pt",
                       interpreter=then)
        assert [line[:7] for line in lines if line.startswith("epoch")] == ["epoch 1"]
