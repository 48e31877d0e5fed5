"""Helpers of setup.py: probes, the operator generator, and what a build is made of."""
