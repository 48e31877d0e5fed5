"""Writing files only when they change, so that incremental builds stay small."""

import filecmp
import os
import shutil
from pathlib import Path


def write_if_changed(path: Path, content: str | bytes) -> bool:
    """Write text or bytes unless the file already holds them; say whether it was written."""
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, lambda temporary: temporary.write_bytes(content))
    return True


def copy_if_changed(source: Path, target: Path) -> bool:
    """Copy with its times unless size and time agree; say whether it was copied."""
    if target.exists() and filecmp.cmp(source, target, shallow=True):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, lambda temporary: shutil.copy2(source, temporary))
    return True


def _replace(path: Path, write) -> None:
    """Rename into place: a process that has mapped or reads the old file is not disturbed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write(temporary)
    temporary.replace(path)
