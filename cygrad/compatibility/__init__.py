"""
PyTorch's further namespaces, and the stand-in that runs PyTorch programs unchanged.

`stand_in` makes ``import torch`` import this library; ``python -m cygrad program.py`` does the same for a program.
Names such as ``cygrad.cuda`` or ``cygrad.finfo`` are found here on first access, without a stand-in. ``import cygrad``
imports nothing of this.
"""

from cygrad.compatibility.hook import stand_in

__all__ = ["stand_in"]
