"""Choice of attention implementations, of which there is one."""

from cygrad.compatibility.functions import SDPBackend, sdpa_kernel

__all__ = ["SDPBackend", "sdpa_kernel"]
