"""Write files only when they change, so that incremental builds are small."""

import filecmp
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def update(path: Path, sources: Iterable[Path]) -> Iterator[bool]:
    """Yield whether a file is older than one of its `sources`; after that it is as new as this call."""
    begin = time.time() - 0.1       # times of files are coarse
    changed = not path.exists() or any(source.stat().st_mtime >= path.stat().st_mtime for source in sources)
    yield changed
    if changed and path.exists():
        os.utime(path, (begin, begin))


def write_if_changed(path: Path, content: str | bytes) -> bool:
    """Write text or bytes unless the file already has them; return whether it was written."""
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, lambda temporary: temporary.write_bytes(content))
    return True


def copy_if_changed(source: Path, target: Path) -> bool:
    """Copy with times unless size and time agree; return whether it was copied."""
    if target.exists() and filecmp.cmp(source, target, shallow=True):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, lambda temporary: shutil.copy2(source, temporary))
    return True


def _replace(path: Path, write) -> None:
    """Rename into place, so that processes which map or read the old file are not affected."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write(temporary)
    temporary.replace(path)
