"""Examples with images: accuracy and pictures."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


def run(name, *options):
    """What an example prints."""
    for module in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(module)
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *options], capture_output=True, text=True,
                          timeout=300, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert "images/s" in done.stderr                  # the progress bar
    return done.stdout


def test_lenet(tmp_path):
    text = run("lenet_digits.py", "--out", str(tmp_path / "new"))
    assert float(re.search(r"never seen: ([\d.]+)%", text)[1]) >= 97
    assert (tmp_path / "new" / "lenet.png").read_bytes().startswith(b"\x89PNG")


def test_finetune(tmp_path):
    text = run("finetune_resnet.py", "--out", str(tmp_path))
    (whole, first), (head, second) = re.findall(r"digits \d-\d +([\d,]+) +[\d,]+ +([\d.]+)%", text)
    assert float(first) >= 95
    assert float(second) >= 70                        # five classes, of which the body has never seen one
    assert int(whole.replace(",", "")) > 1000 * int(head)
    assert (tmp_path / "finetune.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "option"), [("lenet_digits.py", "--epochs"), ("finetune_resnet.py", "--width")])
def test_wrong_options_are_refused(name, option):
    pytest.importorskip("matplotlib")
    done = subprocess.run([sys.executable, str(EXAMPLES / name), option, "0"], capture_output=True, text=True,
                          timeout=120, env=ENVIRONMENT, check=False)
    assert done.returncode == 2
    assert "must be at least 1" in done.stderr


def test_frozen_resnet(monkeypatch):
    """The snippet of PyTorch's note: the frozen body saves nothing and gets no gradient."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from models.resnet import resnet18

    nn, optim = cygrad.nn, cygrad.optim
    model = resnet18(width=8)
    for param in model.parameters():
        param.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, 10)
    optimizer = optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)

    saved = []
    with cygrad.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tuple(tensor.shape)) or tensor,
                                                   lambda tensor: tensor):
        scores = model(cygrad.randn(2, 3, 32, 32))
    # One linear layer: its input, for the gradient of its weight.
    assert set(saved) <= {(2, 64), (10, 64)}
    assert scores.grad_fn.next_functions[0][0] is None
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    nn.functional.cross_entropy(scores, cygrad.tensor([1, 2])).backward()
    optimizer.step()
    changed = {name for name, parameter in model.named_parameters() if not (parameter == before[name]).all()}
    assert changed == {"fc.weight", "fc.bias"}
    assert {name for name, parameter in model.named_parameters() if parameter.grad is not None} == changed
