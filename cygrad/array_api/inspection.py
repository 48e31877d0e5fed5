"""Inspection of the namespace."""

import cygrad
from cygrad.array_api.dtypes import DTYPES, isdtype

__all__ = ["__array_namespace_info__"]


class __array_namespace_info__:
    """The standard's inspection functions, as methods."""

    def capabilities(self):
        """Return which optional parts of the standard are supported, and the maximum number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Return the default device."""
        return cygrad.get_default_device()

    def default_dtypes(self, *, device=None):
        """Return the default dtypes."""
        real = cygrad.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": cygrad.int64,
                "indexing": cygrad.int64}

    def devices(self):
        """Return all devices."""
        return [cygrad.device("cpu")]

    def dtypes(self, *, device=None, kind=None):
        """Return the dtypes by name, all or those of a kind."""
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
