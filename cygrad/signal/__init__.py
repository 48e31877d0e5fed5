"""Processing of signals: `windows`."""

from cygrad.signal import windows

__all__ = ["windows"]
