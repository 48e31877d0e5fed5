"""
The operator table: signatures and formulas of rows are parsed, lowered to programs, and executed.

``signature.py``, ``formula.py``, ``layout.py`` and ``lowering.py`` are plain Python, which the build uses before
anything is compiled. Knows kernels by name only; never knows tensors or nodes. Read ``signature.py`` first, then
``formula.py``.
"""
