"""Private names that libraries on top of PyTorch import: types to annotate with, questions, and small helpers."""

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
    """None, for ever."""

    def __iter__(self):
        while True:
            yield None


class _IterableDatasetStopIteration:
    """What a worker sends when its part of a dataset is at its end."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


class _ResumeIteration:
    """What a worker is sent to begin anew."""

    def __init__(self, seed=None):
        self.seed = seed


def _generate_state(base_seed, worker_id):
    """Four words for NumPy's generator in a worker."""
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32]).generate_state(4)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """One tensor of the tensors of a batch."""
    return cygrad.stack(list(batch))


def collate(batch, *, collate_fn_map=None):
    """`default_collate`, by functions of one's own for some types."""
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(batch[0], kind):
            return function(batch, collate_fn_map=collate_fn_map)
    return default_collate(batch)


default_collate_fn_map = {Tensor: collate_tensor_fn}


# ------------------------------------------------------------------------------------------------- of torch.nn
class Reduction:
    """Numbers for the names of reductions."""

    NAMES = ("none", "mean", "sum")


def get_enum(reduction):
    """Return the number of a reduction."""
    if reduction not in Reduction.NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return Reduction.NAMES.index(reduction)


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The name of a reduction, of the two switches that were used before."""
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The number of a reduction, of the two switches that were used before."""
    return get_enum(legacy_get_string(size_average, reduce))


_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
DEFAULT_PROTOCOL = 2


# ------------------------------------------------------------------------------------------ of torch.utils, torch._C
def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Lists of tensors that belong to each other, by the device and dtype of those in the first list."""
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
    """Devices whose functions of lists are worth while: none."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _has_foreach_support(tensors, device):
    """Whether functions of lists are worth while: they take the tensors one by one."""
    return False


def _device_has_foreach_support(device):
    """Whether functions of lists are worth while on a device: they take tensors one by one."""
    return False


def is_batchedtensor(tensor):
    """Whether a tensor stands for many in `vmap`."""
    from cygrad.func.batched import Batched
    return isinstance(tensor, Batched)


def is_legacy_batchedtensor(tensor):
    """No."""
    return False


def _no_word(*args, **options):
    """False."""
    return False


is_functorch_wrapped_tensor = is_batchedtensor
is_gradtrackingtensor = is_functionaltensor = _is_torch_function_mode_enabled = _is_tracing = _has_xpu = _no_word
_get_cudnn_enabled = _profiler_enabled = _no_word


def _is_alias_of(first, second):
    """Whether two tensors share memory."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _get_privateuse1_backend_name():
    """The name of a device that is not there."""
    return "privateuseone"


def _element_size(dtype):
    """How many bytes an element has."""
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
    """Where each row begins, of the sorted row of each element."""
    counts = cygrad.bincount(input, minlength=size).cumsum(0)
    return cygrad.cat([counts.new_zeros(1), counts]).to(cygrad.int32 if out_int32 else cygrad.int64)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The row and column of each element, of where each row begins."""
    rows = cygrad.repeat_interleave(cygrad.arange(crow_indices.numel() - 1), crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return cygrad.stack([part.to(cygrad.int32 if out_int32 else cygrad.int64) for part in pair])


def _softmax_backward_data(grad_output, output, dim, input_dtype=None):
    """Return the gradient of softmax, of that of its output."""
    return output * (grad_output - (grad_output * output).sum(dim, keepdim=True))


def _sample_dirichlet(concentration, generator=None):
    """Samples of the Dirichlet distribution."""
    return cygrad.distributions.Dirichlet(concentration).sample()


def _clipped_sigmoid(x):
    """A sigmoid that is never 0 or 1."""
    info = cygrad.finfo(x.dtype)
    return cygrad.sigmoid(x).clamp(info.tiny, 1.0 - info.eps)


class _DecoratorContextManager:
    """A block that decorates functions, too: each call is such a block."""

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def called(*args, **options):
            with self.clone():
                return function(*args, **options)
        return called

    def clone(self):
        """Another one of this kind."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that decorates without parentheses, too."""

    def __new__(cls, function=None):
        made = super().__new__(cls)
        return made if function is None else made(function)


class UninitializedTensorMixin:
    """The base of tensors without a shape, in annotations and questions."""


class WeakIdKeyDictionary(dict):
    """A dict by the identity of its keys, which it keeps."""

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
        """The value of a key, if it is there."""
        return super().get(id(key), (None, default))[1]


WeakTensorKeyDictionary = WeakIdKeyDictionary
Context, DeviceObjType = Any, cygrad.device
_TensorsOrIterable = Iterable[Tensor]


# ------------------------------------------------------------------------------------------- of torch.ao.quantization
class QuantStub(cygrad.nn.Identity):
    """Where a network would begin to be quantized: nothing is done."""

    def __init__(self, qconfig=None):
        super().__init__()


class DeQuantStub(QuantStub):
    """Where a network would end to be quantized: nothing is done."""


class FloatFunctional(cygrad.nn.Module):
    """Arithmetic as a module, as networks write it that are to be quantized."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = cygrad.nn.Identity()

    def forward(self, x):
        """Refuse, as its methods are what is called."""
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
    """Classes whose attributes are their names."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Names):
    """Names of ways of computing, of which there is one here."""


class DispatchKeySet(frozenset):
    """Some of these names."""

    def __new__(cls, *keys):
        return super().__new__(cls, keys)

    def has(self, key):
        """Whether a name is among them."""
        return key in self


class _ExcludeDispatchKeyGuard:
    """A block without some ways of computing: it changes nothing."""

    def __init__(self, keys):
        self.keys = keys

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


# ------------------------------------------------------------------------------------- of torch.distributed.tensor
@dataclass(frozen=True)
class Shard:
    """Says that parts of a tensor along a dimension lie on different machines."""

    dim: int


@dataclass(frozen=True)
class Replicate:
    """Says that a tensor lies on all machines."""


@dataclass(frozen=True)
class Partial:
    """Says that a tensor is the sum of what lies on all machines."""

    reduce_op: str = "sum"


# ------------------------------------------------------------------------------------------ of torch.jit.annotations
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list


# ----------------------------------------------------------------------------------------------- of torch.utils
def has_triton(*args):
    """Whether kernels can be compiled by Triton: no."""
    return False


has_triton_package = has_triton_tma = has_triton
