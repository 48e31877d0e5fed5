"""The digits example: accuracy, pictures, Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

for _name in "sklearn", "matplotlib", "tqdm":
    pytest.importorskip(_name)

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "examples" / "digits.py")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


def test_accuracy_and_pictures(tmp_path):
    done = subprocess.run([*COMMAND, "--out", str(tmp_path)], capture_output=True, text=True, timeout=120,
                          env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(1 thread|2 threads \(Hogwild\)) +([\d,]+) +([\d.]+)%$", done.stdout, re.MULTILINE)
    assert [title for title, _, _ in rows] == ["1 thread", "2 threads (Hogwild)"]
    for _, speed, share in rows:
        assert int(speed.replace(",", "")) > 1000
        assert float(share) >= 97
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")
    texts = [element.text for element in ElementTree.parse(tmp_path / "graph.svg").iter() if element.text]
    assert "CrossEntropyBackward0" in texts
    assert "0.weight" in texts


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_options(tmp_path, optimizer):
    options = ["--epochs", "1", "--batch", "100", "--threads", "3", "--lr", "0.01", "--seed", "5", "--compile"]
    done = subprocess.run([*COMMAND, *options, "--optimizer", optimizer, "--out", str(tmp_path / "new" / "folder")],
                          capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 threads (Hogwild)" in done.stdout


def test_wrong_options_are_refused():
    done = subprocess.run([*COMMAND, "--threads", "0"], capture_output=True, text=True, timeout=120, env=ENVIRONMENT,
                          check=False)
    assert done.returncode == 2
    assert "must be at least 1" in done.stderr


@pytest.mark.parametrize(("epochs", "title"), [("1000000", b"1 thread"), ("40", b"2 threads")])
def test_ctrl_c_ends_it_at_once(tmp_path, epochs, title, interrupts_ignored):
    """Return whether it comes in the first or in the second part."""
    with subprocess.Popen([*COMMAND, "--epochs", epochs, "--batch", "8", "--out", str(tmp_path)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        seen = b""
        while title not in seen:
            chunk = os.read(process.stderr.fileno(), 1000)
            assert chunk, "it ended by itself"
            seen += chunk
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
    assert time.monotonic() - begin < 5
    assert process.returncode == 130
    assert b"interrupted" in error
    assert b"Traceback" not in error
    assert not out
