"""Neural networks: modules, their layers and losses, and the same as functions."""

from cygrad.nn import functional, init, modules
from cygrad.nn.activation import (
    ELU,
    GELU,
    SELU,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softsign,
    Tanh,
)
from cygrad.nn.container import ModuleDict, ModuleList, Sequential
from cygrad.nn.layers import Dropout, Embedding, Flatten, Identity, Linear
from cygrad.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from cygrad.nn.module import Module
from cygrad.nn.parameter import Buffer, Parameter
