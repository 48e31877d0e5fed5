"""Gallery: pictures that the examples draw in short runs, and pages with their code."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build_tools.files import write_if_changed

# Example -> its picture and arguments for a run of some seconds.
EXAMPLES = {
    "digits": ("losses.png", []),
    "lenet_digits": ("lenet.png", ["--epochs", "10"]),
    "lbfgs_fit": ("lbfgs_fit.png", []),
    "phase_retrieval": ("phase_retrieval.png", ["--steps", "200"]),
    "character_lstm": ("character_lstm.png", ["--steps", "300"]),
    "transformer_text": ("transformer_text.png", ["--steps", "300"]),
    "finetune_resnet": ("finetune.png", ["--epochs", "4", "--size", "16", "--width", "8"]),
}


def make_pictures(root: Path, folder: Path) -> None:
    """Run the examples whose picture is older than the program, two at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        write_if_changed(folder / f"{name}.md", page(root, name))
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda name: run(root, folder, name), EXAMPLES):
            pass


def page(root: Path, name: str) -> str:
    """Return the page of an example: first paragraph of the docstring, picture, and code."""
    picture, arguments = EXAMPLES[name]
    text = (root / "examples" / f"{name}.py").read_text()
    summary = text.split('"""')[1].strip().split("\n\n")[0]
    command = " ".join(["python", f"examples/{name}.py", *arguments])
    return (f"# {name}\n\n{summary}\n\n```\n{command}\n```\n\n![What examples/{name}.py draws]({picture})\n\n"
            f"{{download}}`Download {name}.py <../../../examples/{name}.py>`\n\n"
            f"```{{literalinclude}} ../../../examples/{name}.py\n:language: python\n:class: gallery-code\n```\n")


def run(root: Path, folder: Path, name: str) -> None:
    picture, arguments = EXAMPLES[name]
    program = root / "examples" / f"{name}.py"
    if (folder / picture).exists() and (folder / picture).stat().st_mtime > program.stat().st_mtime:
        return
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, str(program), *arguments, "--out", str(folder)], cwd=root, env=environment,
                            capture_output=True, text=True, check=False, timeout=300)
    if result.returncode:
        raise RuntimeError(f"gallery: {name} failed (status {result.returncode}): {result.stderr[-2000:]}")
