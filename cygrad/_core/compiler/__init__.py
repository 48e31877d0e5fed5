"""
What one run of a function did, as a list of steps, and the same steps run again without Python.

`recorder` notes each operation while a function runs, `lowering` makes of that a list of operations, `program` runs it,
and `replay` decides whether it may. What is to be compared is found by `cygrad.compiling`. Read `recorder` first.
"""
