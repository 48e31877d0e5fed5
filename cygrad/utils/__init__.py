"""Helpers around training: nothing of the core depends on them."""
