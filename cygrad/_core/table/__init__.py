"""
What a row of the operator table means: signature and formulas are read, lowered to steps, and run.

``signature.py``, ``formula.py``, ``layout.py`` and ``lowering.py`` are plain Python, which the build uses before
anything is compiled. Knows kernels by name only; never knows tensors or nodes. Read ``signature.py`` first, then
``formula.py``.
"""
