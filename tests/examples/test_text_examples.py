"""Examples with text, phase retrieval and L-BFGS, and steps compared with PyTorch."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad
from tests.reference import torch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
STEPS = 50


def start(name, *options):
    for module in ("sklearn", "scipy", "matplotlib", "tqdm"):
        pytest.importorskip(module)
    return subprocess.run([sys.executable, str(EXAMPLES / name), *options], capture_output=True, text=True, timeout=300,
                          env=ENVIRONMENT, check=False)


def run(name, out, *options):
    """What an example prints; its picture must be there."""
    done = start(name, "--out", str(out / "new"), *options)
    assert done.returncode == 0, done.stderr
    assert (out / "new" / f"{Path(name).stem}.png").read_bytes().startswith(b"\x89PNG")
    return done.stdout


@pytest.mark.parametrize("name", ["character_lstm.py", "transformer_text.py"])
def test_text(tmp_path, name):
    text = run(name, tmp_path, "--steps", "150", "--lr", "0.01")
    found, pairs = map(float, re.search(r"never seen: ([\d.]+) nats.*characters: ([\d.]+)", text).groups())
    assert found < pairs
    assert "\nThe license" in text


def test_text_of_ones_own(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abc" * 400, encoding="utf-8")
    text = run("character_lstm.py", tmp_path, "--text", str(path), "--steps", "40", "--length", "16", "--size", "32")
    assert float(re.search(r"never seen: ([\d.]+) nats", text)[1]) < 0.1


def test_phase_retrieval(tmp_path):
    text = run("phase_retrieval.py", tmp_path)
    assert float(re.search(r"start: +relative error ([\d.]+)", text)[1]) > 0.2
    assert float(re.search(r"found: +relative error ([\d.]+)", text)[1]) < 0.02


def test_lbfgs(tmp_path):
    text = run("lbfgs_fit.py", tmp_path)
    rows = re.findall(r"^(?:cygrad|scipy) L-BFGS.* +(\d+\.\d{12}) +(\S+) +([\d.]+)%$", text, re.MULTILINE)
    (ours, gradient, share), (theirs, _, other) = rows
    assert float(ours) == pytest.approx(float(theirs), abs=1e-11)
    assert float(gradient) < 1e-7
    assert share == other
    assert float(share) > 94
    assert float(re.search(r"difference of the weights: (\S+)", text)[1]) < 1e-5


@pytest.mark.parametrize(("name", "option"), [
    ("character_lstm.py", "--size"), ("transformer_text.py", "--steps"), ("phase_retrieval.py", "--masks"),
    ("lbfgs_fit.py", "--iterations")])
def test_wrong_options_are_refused(name, option):
    done = start(name, option, "0")
    assert done.returncode == 2
    assert "must be at least 1" in done.stderr


# ---- the same model file with either library

def models(library, monkeypatch):
    """The module with the models, where `cygrad` is the library."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cygrad", library)
        spec = importlib.util.spec_from_file_location(f"text_with_{library.__name__}", EXAMPLES / "models" / "text.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def losses(library, model, batches, optimizer):
    """Losses of training steps; `batches` are arrays."""
    found = []
    for numbers, following in batches:
        optimizer.zero_grad()
        scores = model(library.from_numpy(numbers))
        loss = library.nn.functional.cross_entropy(scores.flatten(0, 1), library.from_numpy(following).flatten())
        loss.backward()
        library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize(("name", "arguments"), [
    ("CharacterLSTM", (32, 2)), ("CharacterTransformer", (24, 32, 4, 2))], ids=["lstm", "transformer"])
@pytest.mark.parametrize("rule", ["AdamW", "SGD"])
def test_loss_curve_is_that_of_pytorch(monkeypatch, name, arguments, rule):
    torch.manual_seed(0)
    ours, theirs = models(cygrad, monkeypatch), models(torch, monkeypatch)
    text = ours.Text(ours.license(), 24)
    batches = [(numbers.numpy(), following.numpy())
               for numbers, following in text.batches(8, STEPS, np.random.default_rng(0))]
    other = getattr(theirs, name)(len(text.characters), *arguments).double()
    model = getattr(ours, name)(len(text.characters), *arguments).double()
    model.load_state_dict({key: cygrad.from_numpy(value.numpy().copy()) for key, value in other.state_dict().items()})
    options = {"lr": 3e-3} if rule == "AdamW" else {"lr": 0.3, "momentum": 0.9}
    found = losses(cygrad, model, batches, getattr(cygrad.optim, rule)(model.parameters(), **options))
    expected = losses(torch, other, batches, getattr(torch.optim, rule)(other.parameters(), **options))
    assert found[-1] < found[0] - 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
