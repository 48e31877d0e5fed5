"""
The inner loops of element-wise functions: one primitive is one function on one or several streams of numbers.

Knows numbers side by side in memory. Never knows shapes, broadcasting or which operators use it. Read
``primitive_table.pyx`` first: the table of primitives; the other files are where their loops come from.
"""
