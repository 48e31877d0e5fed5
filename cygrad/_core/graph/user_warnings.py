"""Warnings that show the line of user code."""

import sys
import warnings
from os.path import abspath, dirname

__all__ = ["warn_user"]

PACKAGE = dirname(dirname(dirname(abspath(__file__)))) + "/"


def warn_user(message, category=UserWarning):
    """Warn at the innermost line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
