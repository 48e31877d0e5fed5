"""
What programs written for PyTorch use besides operators and modules, and a way to run them unchanged.

`stand_in` lets ``import torch`` give this library; ``python -m cygrad program.py`` does the same for a program. Names
such as ``cygrad.cuda`` or ``cygrad.finfo`` are found here when they are first asked for, without any stand-in.
Nothing of this is loaded by ``import cygrad``.
"""

from cygrad.compatibility.hook import stand_in

__all__ = ["stand_in"]
