"""Names of `cygrad.nn` that programs look for in ``nn.modules``."""

from cygrad.nn.modules import lazy, module
