"""Optimizers: they update parameters in place, outside the graph, along their gradients."""

from cygrad._core import public_dir as _public_dir
from cygrad.optim import lr_scheduler, swa_utils
from cygrad.optim.adadelta import Adadelta
from cygrad.optim.adagrad import Adagrad
from cygrad.optim.adam import Adam, AdamW
from cygrad.optim.adamax import Adamax
from cygrad.optim.asgd import ASGD
from cygrad.optim.lbfgs import LBFGS
from cygrad.optim.nadam import NAdam
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.radam import RAdam
from cygrad.optim.rmsprop import RMSprop
from cygrad.optim.rprop import Rprop
from cygrad.optim.sgd import SGD

_LATE = {"Adafactor": "adafactor", "Muon": "muon", "SparseAdam": "sparse_adam"}


def __getattr__(name):
    if name in _LATE:                            # imported on first access
        from importlib import import_module
        return getattr(import_module(f"cygrad.optim.{_LATE[name]}"), name)
    raise AttributeError(f"module 'cygrad.optim' has no attribute {name!r}")

__dir__ = _public_dir(__name__)
