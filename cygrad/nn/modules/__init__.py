"""Aliases of `cygrad.nn`, as in ``torch.nn.modules``."""

from cygrad.nn.modules import lazy, module
