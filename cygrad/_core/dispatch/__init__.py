"""
Calls of operators: binding of arguments, execution, recording; indexing; forward mode.

Knows operators, graph and engine. Never knows kernels, only their operators. Read ``dispatch.pyx`` first.
"""
