"""Helpers of setup.py and of the documentation."""
