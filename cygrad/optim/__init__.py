"""Optimizers: in-place updates of parameters by their gradients."""

from cygrad._core import late_attributes as _late_attributes
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

__getattr__, __dir__ = _late_attributes(__name__, {
    "Adafactor": "adafactor", "Muon": "muon", "SparseAdam": "sparse_adam"})
