"""``torch.version``: a build without accelerators."""

from cygrad.compatibility.torch_version import VERSION

__version__ = str(VERSION)
debug, git_version = False, "Unknown"
cuda = hip = xpu = rocm = None
