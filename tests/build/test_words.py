"""Words to avoid in code and documents do not occur."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Word -> what to write instead.
WORDS = {
    "whoever|somebody|nobody|anybody|everybody": "name the caller, the thread, the function", "so many": "n",
    "of nothing": "empty", "as ever": "as usual", "behind": "after", "beside": "next to",
    "(?<!import )the lock|Python's lock|interpreter's lock": "the GIL",
    "by the way|on the way|once more|without a word|as it stands": "leave it out",
    "peers?": "PyTorch; other libraries",
}
FOLDERS = {"README.md", "CONTRIBUTING.md", "docs", "benchmarks", "build_tools", "examples", "tests", *(
    str(path.relative_to(ROOT)) for folder in ("cygrad", "cygrad/_core") for path in (ROOT / folder).iterdir()
)} - {"cygrad/_core"}
# The parameter of P2POp is named `peer`, as in PyTorch.
ALLOWED = {"cygrad/distributed/point_to_point.py": {"peer"}}
SUFFIXES = {".md", ".py", ".toml", ".pyx", ".pxd", ".h"}


def texts():
    for folder in sorted(FOLDERS):
        path = ROOT / folder
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in SUFFIXES and "generated" not in file.parts and file.name != "test_words.py":
                yield str(file.relative_to(ROOT)), file.read_text()


@pytest.mark.parametrize("words", WORDS)
def test_words_do_not_occur(words):
    found = [f"{name}:{number}: {match[0]!r}, better: {WORDS[words]}" for name, text in texts()
             for number, line in enumerate(text.splitlines(), 1)
             for match in re.finditer(rf"\b(?:{words})\b", line, re.IGNORECASE)
             if match[0] not in ALLOWED.get(name, ())]
    assert not found, "\n".join(found)
