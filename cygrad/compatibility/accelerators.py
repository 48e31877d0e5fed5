"""
Modules of unavailable devices: ``cuda``, ``mps``, ``xpu``, ``mtia``, ``accelerator``; and ``cpu``.

Queries return "none", synchronization does nothing, and functions that need the device raise.
"""

import contextlib
from types import ModuleType

from cygrad._core.arrays.array import refuse
from cygrad.compatibility import absent

__all__ = ["MODULES"]


def _answer(value, text):
    def answer(*args, **options):
        return value
    answer.__doc__ = text
    return answer


class _Nothing(contextlib.ContextDecorator):
    """Context manager without effect."""

    def __init__(self, *args, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def _refusal(device, name):
    def refused(*args, **options):
        refuse(device, f"{device}.{name}")
    refused.__name__ = name
    refused.__doc__ = "Raise an error, because the device is not available."
    return refused


# Functions that need no device: synchronization, cache control, seeding, memory statistics.
_QUIET = {name: _answer(None, "Nothing to do.") for name in (
    "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all", "ipc_collect", "init",
    "_lazy_init", "_lazy_call", "reset_peak_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "set_stream", "reset_max_memory_cached", "set_per_process_memory_fraction",
    "set_sync_debug_mode", "nvtx_range_push", "_sleep")}
_NUMBERS = {name: _answer(0, "Nothing is allocated there.") for name in (
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
    "max_memory_cached", "utilization", "current_allocated_memory", "driver_allocated_memory", "device_count",
    "recommended_max_memory", "get_sync_debug_mode")}
_NO = {name: _answer(False, "No.") for name in (
    "is_available", "is_initialized", "is_bf16_supported", "is_built", "is_macos13_or_newer",
    "is_current_stream_capturing",
    "_is_in_bad_fork", "can_device_access_peer", "is_tf32_supported")}
_EMPTY = {
    "memory_stats": lambda device=None: {}, "memory_summary": lambda *args, **options: "",
    "get_arch_list": list, "get_rng_state_all": list, "set_rng_state_all": _answer(None, "Nothing to do."),
    "mem_get_info": lambda device=None: (0, 0), "get_allocator_backend": lambda: "native", "memory_snapshot": list,
}
_DEVICE_ONLY = (
    "current_device", "set_device", "get_device_name", "get_device_properties", "get_device_capability",
    "current_stream", "default_stream", "get_rng_state", "set_rng_state", "initial_seed", "graph",
    "make_graphed_callables", "ExternalStream", "caching_allocator_alloc", "get_gencode_flags", "comm",
)


def _accelerator(name):
    """Return the module of an unavailable device."""
    module = ModuleType(f"cygrad.{name}", f"The device {name}, which is not there.")
    module.__path__ = []
    vars(module).update(_QUIET | _NUMBERS | _NO | _EMPTY)
    vars(module).update({part: _refusal(name, part) for part in _DEVICE_ONLY})
    vars(module).update(
        device=_Nothing, device_of=_Nothing, stream=_Nothing, StreamContext=_Nothing, device_ctx_manager=_Nothing,
        Stream=absent.placeholder(f"torch.{name}.Stream"), Event=absent.placeholder(f"torch.{name}.Event"),
        CUDAGraph=absent.placeholder(f"torch.{name}.CUDAGraph"), default_generators=(), has_half=False, has_magma=False,
        OutOfMemoryError=MemoryError, nvtx=_marks(name), memory=module, random=module, amp=_late_amp(), is_cpu=False,
        _initialized=False)
    return module


def _marks(device):
    """Return the module whose range markers no profiler reads."""
    module = ModuleType(f"cygrad.{device}.nvtx", "Range markers for a device profiler; ignored on CPUs.")
    quiet = dict.fromkeys(("range_push", "range_pop", "mark", "range_start", "range_end"), _answer(0, "Nothing to do."))
    vars(module).update(quiet, range=_Nothing)
    return module


def _late_amp():
    from cygrad.compatibility import amp
    return amp


def _one_device(name, text):
    """Return the module of the CPU."""
    module = ModuleType(f"cygrad.{name}", text)
    module.__path__ = []
    vars(module).update(_QUIET)
    vars(module).update(
        is_available=_answer(True, "Yes."), is_initialized=_answer(True, "Yes."), device_count=_answer(1, "One."),
        current_device=lambda: "cpu", set_device=_answer(None, "Nothing to do."),
        current_stream=lambda device=None: None, stream=_Nothing, StreamContext=_Nothing,
        Stream=_Nothing, amp=_late_amp())
    return module


def _accelerators():
    """Return the module of the current accelerator."""
    module = _accelerator("accelerator")
    vars(module).update(
        current_accelerator=lambda check_available=False: None, device_index=_Nothing,
        current_device_index=_refusal("accelerator", "current_device_index"),
        set_device_index=_refusal("accelerator", "set_device_index"),
        set_device_idx=_refusal("accelerator", "set_device_idx"))
    return module


MODULES = {
    **{name: _accelerator(name) for name in ("cuda", "mps", "xpu", "mtia", "hpu")},
    "accelerator": _accelerators(), "cpu": _one_device("cpu", "The device where everything is."),
}
for _name in ("cuda", "xpu"):
    for _kind in ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "Bool", "BFloat16"):
        setattr(MODULES[_name], f"{_kind}Tensor", absent.placeholder(f"torch.{_name}.{_kind}Tensor"))


def find(name):
    """Return the module of a device."""
    return MODULES[name]


cuda, mps, xpu, mtia, hpu, accelerator, cpu = (MODULES[name] for name in (
    "cuda", "mps", "xpu", "mtia", "hpu", "accelerator", "cpu"))
nvtx = cuda.nvtx
