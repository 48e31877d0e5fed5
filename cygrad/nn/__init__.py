"""Neural networks: modules, their layers and losses, and the same as functions."""

from cygrad.nn import functional, init
from cygrad.nn.activation import *
from cygrad.nn.container import ModuleDict, ModuleList, Sequential
from cygrad.nn.layers import Dropout, Embedding, Flatten, Identity, Linear
from cygrad.nn.loss import *
from cygrad.nn.module import Module
from cygrad.nn.parameter import Buffer, Parameter
