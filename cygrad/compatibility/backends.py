"""Backends of a PyTorch build: queries, and settings without effect."""

import contextlib
from types import ModuleType

from cygrad.compatibility import switches

__all__ = ["cpu", "cuda", "cudnn", "cusparselt", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum",
           "quantized", "xeon", "xnnpack"]


@contextlib.contextmanager
def _flags(*args, **options):
    yield


def _library(name, available=False, **settings):
    """A backend: its availability, and settings that are accepted and ignored."""
    module = ModuleType(f"cygrad.backends.{name}", f"The library {name}: {'' if available else 'not '}there.")
    module.__path__ = []
    vars(module).update(is_available=lambda: available, is_built=lambda: available, version=lambda: None, flags=_flags)
    vars(module).update(settings)
    return module


class _Settings:
    """Settings that are accepted and ignored."""

    def __init__(self, **settings):
        vars(self).update(settings)


cudnn = _library("cudnn", enabled=False, benchmark=False, benchmark_limit=10, deterministic=True, allow_tf32=False,
                 is_acceptable=lambda tensor: False, fp32_precision="none")
cuda = _library(
    "cuda", matmul=_Settings(allow_tf32=False, allow_fp16_reduced_precision_reduction=False, fp32_precision="none",
                             allow_bf16_reduced_precision_reduction=False),
    cufft_plan_cache=_Settings(size=0, max_size=0, clear=lambda: None), sdp_kernel=_flags,
    is_flash_attention_available=lambda: False, is_ck_sdpa_available=lambda: False, SDPAParams=object,
    **dict.fromkeys(("can_use_flash_attention", "can_use_efficient_attention", "can_use_cudnn_attention"),
                    lambda *args, **options: False),
    preferred_linalg_library=lambda backend=None: None, preferred_blas_library=lambda backend=None: None,
    **{f"{verb}_{kind}_sdp{'_enabled' if verb == 'is' else ''}".replace("is_", ""):
       (lambda: False) if verb == "is" else (lambda enabled: None)
       for verb in ("is", "enable") for kind in ("flash", "mem_efficient", "math", "cudnn")})
mps = _library("mps", is_macos_or_newer=lambda *version: False, is_macos13_or_newer=lambda minor=0: False)
mkl = _library("mkl", verbose=_flags, VERBOSE_OFF=0, VERBOSE_ON=1)
mkldnn = _library("mkldnn", enabled=False, deterministic=True, allow_tf32=False, verbose=_flags,
                  set_flags=lambda *args: ())
openmp = _library("openmp", available=True)
opt_einsum = _library("opt_einsum", enabled=False, strategy=None, get_opt_einsum=lambda: None)
nnpack, xnnpack, cusparselt = _library("nnpack", set_flags=lambda enabled: ()), _library("xnnpack", enabled=False), \
    _library("cusparselt")
quantized = _library("quantized", engine="none", supported_engines=[])
mha = _library("mha", get_fastpath_enabled=lambda: False, set_fastpath_enabled=lambda value: None)
cpu = _library("cpu", available=True, get_cpu_capability=lambda: "DEFAULT")
xeon = _library("xeon")
flags_frozen, disable_global_flags = (lambda: False), (lambda: None)
fp32_precision = switches.get_float32_matmul_precision()
