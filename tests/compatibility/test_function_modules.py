"""Modules of PyTorch whose names are also those of functions."""

from tests.tools import run_program


def test_importing_modules_of_torch_leaves_the_names_of_this_library_unchanged():
    """An import sets the module's name in the module of its parent, which must not be one of this library."""
    assert run_program("""
import importlib, sys
import cygrad
cygrad.stand_in()
import cygrad.func, cygrad.autograd, cygrad.nn, cygrad.optim, cygrad.utils.data, cygrad.distributions
from cygrad.compatibility import paths
before = {(module, name): value for module in list(sys.modules.values())
          if getattr(module, "__name__", "").startswith("cygrad") and "compat" not in module.__name__
          for name, value in list(vars(module).items()) if callable(value) and not name.startswith("__")}
for path in [*paths.MODULES, *paths.GATHERED]:
    try:
        importlib.import_module(path)
    except ImportError:
        pass
print([f"{module.__name__}.{name}" for (module, name), value in before.items() if vars(module).get(name) is not value])
from torch._functorch.vmap import vmap
from torch._functorch.eager_transforms import grad
print(vmap is cygrad.vmap, grad is cygrad.func.grad, callable(cygrad.func.functional_call))
""") == ["[]", "True", "True", "True"]
