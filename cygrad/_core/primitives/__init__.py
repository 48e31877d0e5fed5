"""
Inner loops of element-wise functions: a primitive is one function on one or several contiguous or strided arrays.

Knows numbers in memory. Never knows shapes, broadcasting or which operators use it. Read ``primitive_table.pyx`` first:
the table of primitives; the other files define their loops.
"""
