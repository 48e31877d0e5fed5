"""mypy and pyright on typical uses and on mistakes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MYPY = ["-m", "mypy", "--no-error-summary", "--cache-dir", "build/mypy"]
COMMANDS = {"mypy": MYPY, "mypy --strict": [*MYPY, "--strict"], "pyright": ["-m", "pyright"]}


def complaints(checker, name):
    """The lines of a file that a checker complains of."""
    path = HERE / name
    result = subprocess.run([sys.executable, *COMMANDS[checker], str(path)], cwd=ROOT, capture_output=True, text=True,
                            timeout=600, check=False)
    found = re.findall(rf"{name}:(\d+):.*error", result.stdout)
    assert found or result.returncode == 0, result.stdout + result.stderr
    return {int(line) for line in found}, result.stdout


@pytest.mark.parametrize(("checker", "name"), [("mypy", "uses.py"), ("pyright", "uses.py"),
                                               ("mypy --strict", "uses_modules.py"), ("pyright", "uses_modules.py"),
                                               ("mypy --strict", "uses_training.py")])
def test_typical_uses_are_right(checker, name):
    lines, text = complaints(checker, name)
    assert not lines, text


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_mistakes_are_found(checker):
    lines, text = complaints(checker, "wrong.py")
    wrong = {number for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if "# wrong" in line}
    assert lines == wrong, text
