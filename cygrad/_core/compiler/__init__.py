"""
Trace a function into a list of steps, turn the steps into a program, and run it without Python.

`tracer` records each operation while a function runs, `lowering` makes a `program` of the steps and runs the passes,
`assembly` turns that into the instructions of an `executable`, and `variant` checks the guards before it runs. Knows
operators, graphs and optimizers. Never knows the function's own variables: `cygrad.compiling` collects the guards on
them. Read ``tracer.pyx`` first.
"""
