"""
What one run of a function did, as a list of steps, and the same steps run again without Python.

`recorder` notes each operation while a function runs, `lowering` makes of that a list of operations, `program` runs it,
and `replay` decides whether it may. Knows operators, graphs and optimizers. Never knows the function's own variables:
what is to be compared is found by `cygrad.compiling`. Read ``recorder.pyx`` first.
"""
