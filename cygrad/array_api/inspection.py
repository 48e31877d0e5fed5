"""What a program may ask the namespace about itself."""

import cygrad
from cygrad.array_api.dtypes import DTYPES, isdtype

__all__ = ["__array_namespace_info__"]


class __array_namespace_info__:
    """What the namespace can do: the standard's inspection functions, as methods."""

    def capabilities(self):
        """Which optional parts of the standard are here, and how many dimensions there may be."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Where arrays are made if nothing else is said."""
        return cygrad.get_default_device()

    def default_dtypes(self, *, device=None):
        """The dtypes that arrays of numbers have if nothing else is said."""
        real = cygrad.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": cygrad.int64,
                "indexing": cygrad.int64}

    def devices(self):
        """All devices."""
        return [cygrad.device("cpu")]

    def dtypes(self, *, device=None, kind=None):
        """Return the dtypes by name, all or those of a kind."""
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
