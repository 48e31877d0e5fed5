"""Features of some operating systems, with fallbacks for others."""

import os
import tempfile


def usable_cores() -> set[int]:
    """Return the cores that this process may use: all, where the system has no affinity."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def unnamed_file() -> int:
    """Return the descriptor of a new file without a name: in memory, or else in the directory for temporary files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cygrad")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
