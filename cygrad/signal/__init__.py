"""Signal processing: `windows`."""

from cygrad.signal import windows

__all__ = ["windows"]
