"""Choosing a way of computing attention, of which there is one here."""

from cygrad.compatibility.functions import SDPBackend, sdpa_kernel

__all__ = ["SDPBackend", "sdpa_kernel"]
