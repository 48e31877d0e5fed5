"""Private names of PyTorch that libraries import: types for annotations, predicates, and helpers."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.utils.data import Dataset, IterableDataset, default_collate

# ----------------------------------------------------------------------------------------------- of torch.utils.data
IterDataPipe, MapDataPipe = IterableDataset, Dataset
_collate_fn_t = _worker_init_fn_t = Callable
HAS_NUMPY, MP_STATUS_CHECK_INTERVAL, python_exit_status = True, 5.0, False
np_str_obj_array_pattern = re.compile(r"[SaUO]")


class _InfiniteConstantSampler:
    """An infinite sampler of None."""

    def __iter__(self):
        while True:
            yield None


class _IterableDatasetStopIteration:
    """Sent by a worker at the end of its iterable dataset."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


class _ResumeIteration:
    """Sent to a worker to restart."""

    def __init__(self, seed=None):
        self.seed = seed


def _generate_state(base_seed, worker_id):
    """Return four words that seed NumPy's generator in a worker."""
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32]).generate_state(4).tolist()


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack the tensors of a batch."""
    return cygrad.stack(list(batch))


def collate(batch, *, collate_fn_map=None):
    """Collate as `default_collate`, with functions for some types."""
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(batch[0], kind):
            return function(batch, collate_fn_map=collate_fn_map)
    return default_collate(batch)


def pin_memory(data, device=None):
    """Return the batch: memory is not pinned."""
    return data


default_collate_fn_map = {Tensor: collate_tensor_fn}


# ------------------------------------------------------------------------------------------------- of torch.nn
class Reduction:
    """Codes of reductions."""

    NAMES = ("none", "mean", "sum")


def get_enum(reduction):
    """Return the code of a reduction."""
    if reduction not in Reduction.NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return Reduction.NAMES.index(reduction)


def legacy_get_string(size_average, reduce, emit_warning=True):
    """Return the name of a reduction by the deprecated arguments."""
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """Return the code of a reduction by the deprecated arguments."""
    return get_enum(legacy_get_string(size_average, reduce))


_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
DEFAULT_PROTOCOL = 2


# ------------------------------------------------------------------------------------------ of torch.utils, torch._C
def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Group lists of tensors by device and dtype of the first list."""
    groups = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        key = (None, None) if tensor is None else (tensor.device, tensor.dtype)
        lists, places = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for list_, source in zip(lists, tensorlistlist, strict=True):
            if source:
                list_.append(source[place])
        places.append(place)
    return groups


def _get_foreach_kernels_supported_devices():
    """Return no devices with fused functions of lists."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _has_foreach_support(tensors, device):
    """Return False: functions of lists are loops."""
    return False


def _device_has_foreach_support(device):
    """Return False: functions of lists are loops."""
    return False


def is_batchedtensor(tensor):
    """Return whether a tensor is batched by `vmap`."""
    from cygrad.func.batched import Batched
    return isinstance(tensor, Batched)


def is_legacy_batchedtensor(tensor):
    """Return False."""
    return False


def _always_false(*args, **options):
    """Return False."""
    return False


is_functorch_wrapped_tensor = is_batchedtensor
is_gradtrackingtensor = is_functionaltensor = _is_torch_function_mode_enabled = _is_tracing = _has_xpu = _always_false
_get_cudnn_enabled = _profiler_enabled = _always_false
# Every operator has a batching rule, so there is no fallback that `vmap` could allow or warn of.
_is_vmap_fallback_enabled = _debug_only_are_vmap_fallback_warnings_enabled = _always_false
_set_vmap_fallback_enabled = _debug_only_display_vmap_fallback_warnings = _always_false


def _is_alias_of(first, second):
    """Return whether two tensors share memory."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _get_privateuse1_backend_name():
    """Return the name of the unavailable custom device."""
    return "privateuseone"


def _element_size(dtype):
    """Return the bytes of an element."""
    return dtype.itemsize


def _cast_Long(input, non_blocking=False):
    """Return the tensor as int64."""
    return input.long()


def _check_tensor_all(cond, message=None):
    """Raise unless all elements are true."""
    if not bool(cond.all()):
        raise RuntimeError(message() if message is not None else "Expected cond to be True, but got False.")


def _check_with(error_type, cond, message=None):
    """Raise an error of a type unless a condition holds."""
    if not cond:
        raise error_type(message() if message is not None else "Expected cond to be True, but got False.")


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """Convert sorted COO row indices to CSR row pointers."""
    counts = cygrad.bincount(input, minlength=size).cumsum(0)
    return cygrad.cat([counts.new_zeros(1), counts]).to(cygrad.int32 if out_int32 else cygrad.int64)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """Convert CSR row pointers to COO row and column indices."""
    rows = cygrad.repeat_interleave(cygrad.arange(crow_indices.numel() - 1), crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return cygrad.stack([part.to(cygrad.int32 if out_int32 else cygrad.int64) for part in pair])


def _softmax_backward_data(grad_output, output, dim, input_dtype=None):
    """Return the gradient of softmax."""
    return output * (grad_output - (grad_output * output).sum(dim, keepdim=True))


def _sample_dirichlet(concentration, generator=None):
    """Draw samples of the Dirichlet distribution."""
    return cygrad.distributions.Dirichlet(concentration).sample()


def _clipped_sigmoid(x):
    """Return the sigmoid, clipped to the open interval (0, 1)."""
    info = cygrad.finfo(x.dtype)
    return cygrad.sigmoid(x).clamp(info.tiny, 1.0 - info.eps)


class _DecoratorContextManager:
    """A context manager that also decorates functions."""

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def called(*args, **options):
            with self.clone():
                return function(*args, **options)
        return called

    def clone(self):
        """Return a new context manager."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager that also decorates without parentheses."""

    def __new__(cls, function=None):
        made = super().__new__(cls)
        return made if function is None else made(function)


class UninitializedTensorMixin:
    """Base of uninitialized tensors."""


class WeakIdKeyDictionary(dict):
    """A dict by identity of its keys."""

    def __init__(self, items=()):
        super().__init__()
        for key, value in dict(items).items():
            self[key] = value

    def __setitem__(self, key, value):
        super().__setitem__(id(key), (key, value))

    def __getitem__(self, key):
        return super().__getitem__(id(key))[1]

    def __contains__(self, key):
        return super().__contains__(id(key))

    def get(self, key, default=None):
        """Return the value of a key, or a default."""
        return super().get(id(key), (None, default))[1]


WeakTensorKeyDictionary = WeakIdKeyDictionary
Context, DeviceObjType = Any, cygrad.device
_TensorsOrIterable = Iterable[Tensor]


# ------------------------------------------------------------------------------------------- of torch.ao.quantization
class QuantStub(cygrad.nn.Identity):
    """Start of a quantized network; no effect."""

    def __init__(self, qconfig=None):
        super().__init__()


class DeQuantStub(QuantStub):
    """End of a quantized network; no effect."""


class FloatFunctional(cygrad.nn.Module):
    """Arithmetic as a module, for networks to be quantized."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = cygrad.nn.Identity()

    def forward(self, x):
        """Refuse: call the methods instead."""
        raise RuntimeError("FloatFunctional: call its methods, such as add() (got a call of the module).")

    def __getattr__(self, name):
        functions = {"add": cygrad.add, "mul": cygrad.mul, "cat": cygrad.cat, "matmul": cygrad.matmul,
                     "add_scalar": cygrad.add, "mul_scalar": cygrad.mul,
                     "add_relu": lambda x, y: cygrad.relu(cygrad.add(x, y))}
        if name not in functions:
            return super().__getattr__(name)
        return lambda *args, **options: self.activation_post_process(functions[name](*args, **options))


# ------------------------------------------------------------------------------------------------- of torch._C
class _Names(type):
    """Metaclass of classes whose attributes are their names."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Names):
    """Dispatch keys, without effect."""


class DispatchKeySet(frozenset):
    """A set of dispatch keys."""

    def __new__(cls, *keys):
        return super().__new__(cls, keys)

    def has(self, key):
        """Return whether the set has a key."""
        return key in self


class _ExcludeDispatchKeyGuard:
    """Exclude dispatch keys in a block; no effect."""

    def __init__(self, keys):
        self.keys = keys

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


# ------------------------------------------------------------------------------------- of torch.distributed.tensor
@dataclass(frozen=True)
class Shard:
    """Placement: a tensor is sharded along a dimension."""

    dim: int


@dataclass(frozen=True)
class Replicate:
    """Placement: a tensor is replicated."""


@dataclass(frozen=True)
class Partial:
    """Placement: a tensor is a pending sum over ranks."""

    reduce_op: str = "sum"


# ------------------------------------------------------------------------------------------ of torch.jit.annotations
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list


# ----------------------------------------------------------------------------------------------- of torch.utils
def has_triton(*args):
    """Return False: Triton is not used."""
    return False


has_triton_package = has_triton_tma = has_triton
