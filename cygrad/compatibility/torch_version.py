"""The version of PyTorch whose interface is implemented."""

import re

__all__ = ["VERSION", "TorchVersion"]


def _parts(version):
    """Return the numbers of a version, and whether it is final."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.match(r"v?(\d+(?:\.\d+)*)(.*)", str(version).split("+")[0])
    if found is None:
        raise ValueError(f"version: expected numbers with dots (got {version!r}).")
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers, not re.match(r"[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)", found[2])


def _comparison(name):
    def compare(self, other):
        try:
            return getattr(_parts(self), name)(_parts(other))
        except ValueError:
            return getattr(str, name)(self, other)
    compare.__name__ = name
    return compare


class TorchVersion(str):
    """
    A version string that compares as a version with strings and tuples of numbers.

    Examples
    --------
    >>> from cygrad.compatibility.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __lt__, __le__, __gt__, __ge__, __eq__ = map(_comparison, ("__lt__", "__le__", "__gt__", "__ge__", "__eq__"))
    __hash__ = str.__hash__

    @property
    def release(self):
        """The first three numbers."""
        return tuple(int(number) for number in self.split("+")[0].split(".")[:3])


VERSION = TorchVersion("2.13.0")
