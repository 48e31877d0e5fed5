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

Many compiled modules are linked into one shared library, because loading a library takes longer than initializing a
module. A finder maps modules to libraries.
"""

import os
import sys
from contextlib import suppress
from importlib import _bootstrap, import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType

try:
    from cygrad._core.build_config import LIBRARIES
except ModuleNotFoundError:
    LIBRARIES = {}

__all__ = ["COMPILED"]

# Full name of each compiled module -> the library that has it.
COMPILED = {f"{__name__}.{name}": f"{__path__[0]}/{library}" for library, names in LIBRARIES.items() for name in names}
if not any(map(os.path.exists, COMPILED.values())):
    raise ImportError(f"cygrad: this source tree is not built (found it at {os.path.dirname(__path__[0])}). Leave the "
                      "folder to import the installed package, or build in place with make.")

# Modules that pickles of version 0.1 or programs for PyTorch name -> where their contents are.
MOVED = {f"{__name__}.tensor": f"{__name__}.graph.tensor", f"{__name__}.dtype": f"{__name__}.arrays.dtype",
         **{f"cygrad.utils.{name}": f"cygrad.compatibility.{name}" for name in (
             "benchmark", "flop_counter", "hooks", "tensorboard")}}


# Modules that only their own package uses.
INTERNAL = {
    "attributes", "backward_hooks", "conversion", "faults", "gamma_samples", "hooks", "library", "line_search",
    "memory", "momentum", "normalizing", "orthogonal", "parameter_checks", "rare_layers", "registry",
    "rendezvous_server", "samples", "single_process", "state", "stateful", "straggler_report"}


def public_dir(name):
    """
    Return ``__dir__`` of a module: its public names.

    These are its `__all__`, or without one the names without a leading underscore, except modules of other libraries,
    `INTERNAL` ones, and modules whose classes and functions the package has under their own names.
    """
    def names():
        values = vars(sys.modules[name])
        if "__all__" in values:
            return sorted(values["__all__"])
        homes = {getattr(value, "__module__", None) for value in values.values()}
        return sorted(known for known, value in values.items() if not known.startswith("_") and not (
            isinstance(value, ModuleType) and (known in INTERNAL or value.__name__ in homes
                                               or not value.__name__.startswith("cygrad."))))
    return names


def late_attributes(package, late):
    """Return ``__getattr__`` and ``__dir__`` of a package that imports `late`, {name: submodule}, on first access."""
    def get(name):
        if name not in late:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{late[name]}", package)
        return module if name == late[name].strip(".") else getattr(module, name)
    return get, public_dir(package)


# Modules of other libraries, and the module of cygrad that is imported after one of them.
COMPANIONS = {"einops._backends": "cygrad.compatibility.einops_backend",
              "matplotlib.colors": "cygrad.compatibility.matplotlib_colors"}


def companion_spec(fullname, path):
    """Return the spec of a module of another library, whose loader imports the companion afterwards."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None:
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), import_module(COMPANIONS[fullname]))
    return spec


class MovedLoader:
    """Fills a module of an old name with the contents of the new one."""

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

    Many modules are imported by the first call that needs them. The child of a fork has no other threads, so an import
    lock held by one of them would never be released there.
    """
    own = __name__.partition(".")[0]
    for _ in range(100):                           # the same thread may continue with another module
        locks = list(getattr(_bootstrap, "_module_locks", {}).items())
        locks = [(name, lock()) for name, lock in locks if name.startswith(own)]
        under_way = [name for name, lock in locks if getattr(lock, "owner", None) not in (None, get_ident())]
        del locks
        if not under_way:
            return
        for name in under_way:
            with suppress(Exception):              # the other thread reports it
                import_module(name)


# Before any compiled module, because their libraries load OpenBLAS.
import_module(f"{__name__}.kernels.linalg.blas_loading")
# Functions before a fork run in reverse order of registration: imports first, which may need the locks.
import_module(f"{__name__}.threads.parallel")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports)
