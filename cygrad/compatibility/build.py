"""``__config__``: the build configuration as text."""

import io
from contextlib import redirect_stdout

import cygrad

__all__ = ["parallel_info", "show"]


def show():
    """Return the build configuration."""
    text = io.StringIO()
    with redirect_stdout(text):
        cygrad.show_config()
    return text.getvalue()


def parallel_info():
    """Return the threads."""
    return f"threads: {cygrad.get_num_threads()}\n"
