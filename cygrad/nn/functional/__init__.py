"""Layers, activations and losses as functions."""

from cygrad.nn.functional.activation import *
from cygrad.nn.functional.layers import (
    check_probability,
    dropout,
    embedding,
    linear,
    normalize,
    one_hot,
    pad,
)
from cygrad.nn.functional.loss import *
