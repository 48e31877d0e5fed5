"""
The compiled core: packages of Cython modules, which are layers. A package imports only from those above it:

=================  ==================================================================================================
``memory``         blocks, storages, reference counts, errors without the GIL
``threads``        the only interface to threads: helpers, parallel loops, limits
``arrays``         dtypes, the n-dimensional array in C, boxed values
``simd``           headers that compile one loop for several instruction sets
``primitives``     inner loops of element-wise functions
``elementwise``    programs of primitives in one pass over memory
``kernels``        functions from arrays to arrays, by topic
``table``          rows of the operator table, and the execution of their formulas
``graph``          tensors, nodes, edges, saved values, in-place operations, modes
``engine``         plans a backward and runs it
``creation``       tensors from data, sizes and ranges
``dispatch``       from a Python call to a recorded operation; indexing; forward mode; modes
``custom``         custom autograd functions
``optimizers``     steps of optimizers
``communication``  communication between processes without the GIL
``testing``        functions that only tests call; not installed
=================  ==================================================================================================

Many compiled modules lie in one library, because a library takes longer to load than a module to begin. A finder tells
Python which library has a module.
"""

import os
import sys
from contextlib import suppress
from importlib import _bootstrap, import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType

from cygrad._core.build_config import LIBRARIES

__all__ = ["COMPILED"]

# Full name of each compiled module -> the library that has it.
COMPILED = {f"{__name__}.{name}": f"{__path__[0]}/{library}" for library, names in LIBRARIES.items() for name in names}


# Modules that pickles of version 0.1 name, and where what these had is now.
MOVED = {f"{__name__}.tensor": f"{__name__}.graph.tensor", f"{__name__}.dtype": f"{__name__}.arrays.dtype"}


def public_dir(name):
    """
    ``__dir__`` of a package: the names that are for users.

    That is its `__all__`, or without one the names without a leading underscore, but for modules of other libraries and
    for modules whose classes and functions the package has under their own names.
    """
    def names():
        values = vars(sys.modules[name])
        if "__all__" in values:
            return sorted(values["__all__"])
        homes = {getattr(value, "__module__", None) for value in values.values()}
        return sorted(known for known, value in values.items() if not known.startswith("_") and not (
            isinstance(value, ModuleType) and (value.__name__ in homes or not value.__name__.startswith("cygrad."))))
    return names


# Modules of other libraries, and the module of ours that is to be loaded once one of them is.
COMPANIONS = {"einops._backends": "cygrad.compatibility.einops_backend"}


def companion_spec(fullname, path):
    """The spec of a module of another library, whose loader loads the companion afterwards."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None:
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), import_module(COMPANIONS[fullname]))
    return spec


class MovedLoader:
    """Fills a module of an old name with what has moved elsewhere."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        found = vars(import_module(MOVED[module.__name__]))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


class CompiledFinder:
    """Finds the modules of the libraries; one of `sys.meta_path`."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        library = COMPILED.get(fullname)
        if library is None:
            if fullname in COMPANIONS:
                return companion_spec(fullname, path)
            return ModuleSpec(fullname, MovedLoader) if fullname in MOVED else None
        spec = ModuleSpec(fullname, ExtensionFileLoader(fullname, library), origin=library)
        spec.has_location = True
        return spec


sys.meta_path.insert(0, CompiledFinder)


def wait_for_imports():
    """
    Wait until no other thread is importing a module of this package; called before a fork.

    Much is imported late, by the first call that needs it. The child of a fork has no other threads, so a lock on a
    module that one of them held would never be given back there.
    """
    own = __name__.partition(".")[0]
    for _ in range(100):                           # the same thread may go on with another module
        locks = list(getattr(_bootstrap, "_module_locks", {}).items())
        locks = [(name, lock()) for name, lock in locks if name.startswith(own)]
        under_way = [name for name, lock in locks if getattr(lock, "owner", None) not in (None, get_ident())]
        del locks
        if not under_way:
            return
        for name in under_way:
            with suppress(Exception):              # which are the other thread's to tell
                import_module(name)


# Before any compiled module, as their libraries bring OpenBLAS along.
import_module(f"{__name__}.kernels.linalg.blas_loading")
# The functions before a fork run in the opposite order: imports first, which may need the locks.
import_module(f"{__name__}.threads.fork_locks")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports)
