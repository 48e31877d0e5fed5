"""
The core: modules in Cython, and what they share.

Many compiled modules lie in one library, because a library takes longer to load than a module to begin. Python looks
for a module in the entries of its package's path; here the libraries are such entries, before the directory.
"""

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

from cygrad._core.build_config import LIBRARIES

__all__ = ["COMPILED"]

COMPILED = frozenset().union(*LIBRARIES.values())     # the names of the modules


class _Library:
    """Finds the modules of a library."""

    def __init__(self, path):
        directory, _, name = path.rpartition("/")
        if directory != _DIRECTORY or name not in LIBRARIES:
            raise ImportError(f"{path} is no library of cygrad")
        self.path, self.names = path, frozenset(LIBRARIES[name])

    def find_spec(self, fullname, target=None):
        if fullname.rpartition(".")[2] not in self.names:
            return None
        spec = ModuleSpec(fullname, ExtensionFileLoader(fullname, self.path), origin=self.path)
        spec.has_location = True
        return spec

    def iter_modules(self, prefix=""):
        """For `pkgutil`: (name, is it a package) of each module."""
        return [(prefix + name, False) for name in sorted(self.names)]


[_DIRECTORY] = __path__
__path__[:0] = [f"{_DIRECTORY}/{name}" for name in LIBRARIES]
sys.path_hooks.append(_Library)
