"""Primitives that NumPy has not, or computes otherwise: scalar functions and typed loops over them."""
