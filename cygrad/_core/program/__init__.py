"""
Programs: instructions over values, and the executor that runs them without the GIL.

Derivative formulas and compiled functions are programs. Knows kernels and element-wise expressions; never knows
operators, tensors or nodes. Read ``instruction.py`` first, then ``executor.pxd``.
"""
