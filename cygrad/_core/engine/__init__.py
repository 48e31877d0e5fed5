"""
Backward: a plan of all nodes that will run, and what runs it, on one thread or on a team.

Calls nodes through a function pointer; only node fusion reads formulas. Read ``engine.pyx`` first, then ``plan.pyx``.
"""
