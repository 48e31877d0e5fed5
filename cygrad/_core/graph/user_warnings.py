"""Warnings that point at the user's line, through however many functions of this package it was reached."""

import sys
import warnings
from os.path import abspath, dirname

__all__ = ["warn_user"]

PACKAGE = dirname(dirname(dirname(abspath(__file__)))) + "/"


def warn_user(message, category=UserWarning):
    """Warn about the innermost line that is not one of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
