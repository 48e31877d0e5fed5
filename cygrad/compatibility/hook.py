"""
``import torch`` imports this library: an import hook, off by default.

``torch`` is a separate module with the names of `cygrad`; ``torch.nn`` and all others that this library has are the
modules of `cygrad`, so that a class is the same under both names.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import cygrad
from cygrad._core.arrays.dtype import set_library_name
from cygrad._core.graph.type_slots import open_type
from cygrad._core.kernels.sorting.sort import equals_as_in_pytorch
from cygrad.compatibility import absent, names, paths
from cygrad.compatibility.torch_version import VERSION
from cygrad.random.generator import set_algorithm

__all__ = ["module_for", "stand_in"]

ROOT = "torch"


class Namespace(ModuleType):
    """The module ``torch``: names of `cygrad`, under another name and version."""

    def __init__(self):
        super().__init__(ROOT, cygrad.__doc__)
        own = {name: value for name, value in vars(cygrad).items()
               if not name.startswith("_") and not isinstance(value, ModuleType)}
        vars(self).update(own, __file__=cygrad.__file__, __path__=[], __version__=VERSION, cygrad=cygrad)

    def __getattr__(self, name):
        if name.startswith("__") and name != "__config__":
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        found = module_for(f"{ROOT}.{name}") or _attribute(name)
        vars(self)[name] = found
        return found

    def __dir__(self):
        return sorted({*dir(cygrad), *names.HOMES, *vars(self)})


def _attribute(name):
    try:
        return getattr(cygrad, name)
    except AttributeError:
        raise AttributeError(f"torch.{name} is not in cygrad, which stands in for torch. {names.reason(name)}",
                             name=name) from None


def module_for(path):
    """Return the module for one of torch by its dotted path, or None."""
    found = paths.home(path)
    if found is not None:
        return found
    own = f"cygrad{path.removeprefix(ROOT)}"
    if path.split(".")[1] not in PRIVATE:
        try:
            known = importlib.util.find_spec(own) is not None
        except ImportError:                    # the parent is not a package
            known = False
        if known:
            return _adopted(path, importlib.import_module(own))
        parent, _, name = own.rpartition(".")
        if name in vars(sys.modules.get(parent, cygrad)):         # not a module
            return None
    return absent.module(path)


# Modules of this library that torch lacks.
PRIVATE = {"_core", "compatibility", "composite", "config", "conversion", "operators", "printing", "safetensors",
           "tensor_methods"}
_adopted_modules = {}


def _adopted(path, module):
    """Add the names that only programs for torch use to a module of cygrad."""
    if module.__name__ not in _adopted_modules:
        _adopted_modules[module.__name__] = path
        paths.name_classes(path, module)
        own = vars(module).get("__getattr__")

        def further(name):
            if not name.startswith("__"):
                if own is not None:
                    try:
                        return own(name)
                    except AttributeError:
                        pass
                found, others = module_for(f"{path}.{name}"), paths.FURTHER.get(path, ())
                if found is None or (isinstance(found, absent.Absent) and paths.among(others, name)):
                    return paths.first_of(others, f"{path}.{name}")
                return found
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = further
        for name, part in list(vars(module).items()):          # submodules that are attributes without an import
            if isinstance(part, ModuleType) and part.__name__ == f"{module.__name__}.{name}":
                _adopted(f"{path}.{name}", part)
            # Python sets an imported module as attribute of its parent; keep a function of that name.
            hidden = sys.modules.get(f"{module.__name__}.{name}")
            if hidden is not None and hidden is not part:
                sys.modules[f"{path}.{name}"] = _adopted(f"{path}.{name}", hidden)
    return module


class Finder:
    """Finder of ``torch`` and its submodules."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        """Return the spec of a module of torch; None for others; raise for unavailable ones."""
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        module = Namespace() if fullname == ROOT else module_for(fullname)
        if module is None:
            # Without a name, because `from torch import x` would replace an error that names its module.
            raise ModuleNotFoundError(f"No module named {fullname!r} in cygrad, which stands in for torch. "
                                      f"{names.reason(fullname)}")
        if not hasattr(module, "__path__"):
            module.__path__ = []                 # `import torch.backends.cudnn` asks for packages only
        return ModuleSpec(fullname, Loader(module), origin=getattr(module, "__file__", None), is_package=True)

    @staticmethod
    def find_distributions(context):
        """Report torch to `importlib.metadata`, in the version whose interface is implemented."""
        if context.name in (None, ROOT):
            yield Distribution()


class Loader:
    """Loader of an existing module."""

    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        """Return the module, which keeps its name."""
        self.spec = getattr(self.module, "__spec__", None)
        return self.module

    def exec_module(self, module):
        """Restore the spec of a module of cygrad."""
        if self.spec is not None:
            module.__spec__ = self.spec


class Distribution(importlib.metadata.Distribution):
    """Distribution of torch for `importlib.metadata`, under the stand-in."""

    def read_text(self, filename):
        """Return the text of the only file of the distribution."""
        return f"Metadata-Version: 2.1\nName: {ROOT}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        """Return the path of a file."""
        return importlib.util.find_spec("cygrad").origin


class _Missing:
    """Last finder: name the replacement of a module below `cygrad` that does not exist."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        """Return None, or raise for a missing module of this library."""
        parent, _, name = fullname.rpartition(".")
        if parent in _adopted_modules:
            raise ImportError(f"cannot import name {name!r} from {_adopted_modules[parent]!r}, for which cygrad stands "
                              f"in. {names.reason(fullname)}")


def stand_in():
    """
    Make ``import torch`` import this library in this process.

    Submodules of ``torch`` are replaced too, and ``torch.manual_seed`` gives PyTorch's random numbers. An installed
    PyTorch is not changed.

    Raises
    ------
    RuntimeError
        If PyTorch is already imported.

    Examples
    --------
    >>> cygrad.stand_in()                                   # doctest: +SKIP
    >>> import torch                                        # doctest: +SKIP
    >>> torch.ones(2)                                       # doctest: +SKIP
    tensor([1., 1.])
    """
    if isinstance(sys.modules.get(ROOT), Namespace) or Finder in sys.meta_path:
        return
    if ROOT in sys.modules:
        raise RuntimeError("stand_in: PyTorch is imported already. Call cygrad.stand_in() before anything that "
                           "imports torch, or run the program with python -m cygrad.")
    sys.meta_path.insert(0, Finder)
    sys.meta_path.append(_Missing)
    set_library_name(ROOT)
    set_algorithm("mt19937")
    equals_as_in_pytorch(True)
    open_type()
    importlib.import_module("cygrad.compatibility.children").prepare()
