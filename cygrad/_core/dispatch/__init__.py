"""
Calls of operators: binding of arguments, execution, recording; indexing; forward mode.

Knows operators, graph and engine. Knows kernels only through operators. Read ``dispatch.pyx`` first.
"""
