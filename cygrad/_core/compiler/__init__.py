"""
Trace a function into a list of steps, compile the steps to a program, and run it without Python.

`tracer` records each operation while a function runs, `lowering` optimizes the list of operations, `program` runs it,
and `variant` checks the guards. Knows operators, graphs and optimizers. Never knows the function's own variables:
`cygrad.compiling` collects the guards on them. Read ``tracer.pyx`` first.
"""
