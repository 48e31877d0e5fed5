"""Optimisers: they change parameters in place, outside the graph, along their gradients."""

from cygrad.optim.adam import Adam, AdamW
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.sgd import SGD
