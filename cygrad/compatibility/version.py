"""What a build of PyTorch says of itself: here, that it was made for no accelerator."""

from cygrad.compatibility.torch_version import VERSION

__version__ = str(VERSION)
debug, git_version = False, "Unknown"
cuda = hip = xpu = rocm = None
