"""Primitives that NumPy lacks or computes differently: scalar functions and typed loops over them."""
