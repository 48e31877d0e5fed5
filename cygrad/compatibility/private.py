"""Private names of PyTorch that programs use, mostly base classes for `isinstance`."""

import copy
import os
from collections import namedtuple
from collections.abc import Callable

import cygrad
from cygrad.compatibility.absent import placeholder
from cygrad.distributions import constraints, gamma_samples, transform, vectors
from cygrad.distributions.utils import sum_last
from cygrad.nn import normalization, padding, pooling
from cygrad.nn.convolution import _Conv, _Convolution, _ConvTranspose
from cygrad.nn.dropout import _Dropout
from cygrad.nn.loss import Loss, WeightedLoss
from cygrad.nn.multihead_attention import NonDynamicallyQuantizableLinear  # noqa: F401
from cygrad.optim import line_search
from cygrad.optim.lr_scheduler import LRScheduler
from cygrad.utils.checkpoint import Reentrant
from cygrad.utils.data.dataloader import _Ahead, _Here

_ConvNd, _ConvTransposeNd, _ConvTransposeMixin = _Convolution, _ConvTranspose, _ConvTranspose
_BatchNorm, _InstanceNorm, _NormBase = normalization._BatchNorm, normalization._InstanceNorm, normalization._Statistics
_MaxPoolNd, _AvgPoolNd, _LPPoolNd = pooling._MaxPool, pooling._AvgPool, pooling._LPPool
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd, _MaxUnpoolNd = (
    pooling._AdaptiveAvgPool, pooling._AdaptiveMaxPool, pooling._MaxUnpool)
_Loss, _WeightedLoss, _LRScheduler = Loss, WeightedLoss, LRScheduler
_Conv, CheckpointFunction = _Conv, Reentrant
_ConstantPadNd, _IndependentConstraint = padding._ConstantPad, constraints.independent
_precision_to_scale_tril, _batch_mv, _batch_mahalanobis = vectors._factor_of_inverse, vectors._times, vectors._distance
_standard_gamma, _InverseTransform = gamma_samples.standard_gamma, transform._InverseTransform


class _Either(type):
    """Metaclass for `isinstance` checks of several classes."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.classes)


class _DropoutNd(metaclass=_Either):
    """Dropout layers."""

    classes = (_Dropout,)


class _ReflectionPadNd(metaclass=_Either):
    """Layers that pad by reflection."""

    classes = (padding.ReflectionPad1d, padding.ReflectionPad2d, padding.ReflectionPad3d)


class _ReplicationPadNd(metaclass=_Either):
    """Layers that pad by replication."""

    classes = (padding.ReplicationPad1d, padding.ReplicationPad2d, padding.ReplicationPad3d)


def _ntuple(n, name="parse"):
    """Return a function that repeats a number n times and converts iterables to tuples."""
    def parse(value):
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n
    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(values, n):
    """Return the values in reverse, each n times."""
    return tuple(value for value in reversed(values) for _ in range(n))


def _list_with_default(sizes, defaults):
    """Replace None in sizes by `defaults`, from the end."""
    return [default if size is None else size
            for size, default in zip(sizes, defaults[-len(sizes):], strict=True)]


def factory_kwargs(kwargs):
    """Return the keyword arguments of factories: device, dtype, memory_format."""
    unknown = set(kwargs) - {"device", "dtype", "factory_kwargs", "memory_format"}
    if unknown:
        raise TypeError(f"factory_kwargs: unexpected keyword arguments (got {', '.join(sorted(unknown))}).")
    given = dict(kwargs.get("factory_kwargs") or {})
    return given | {name: value for name, value in kwargs.items() if name != "factory_kwargs"}


def _standard_normal(shape, dtype, device=None):
    """Draw standard normal numbers."""
    return cygrad.randn(tuple(shape), dtype=dtype)


def _sum_rightmost(value, dim):
    """Sum over the last `n` dimensions."""
    return sum_last(value, dim)


# Types for annotations.
MAP_LOCATION = FILE_LIKE = Callable | str | os.PathLike | cygrad.device | dict | None
ParamsT = _params_t = StateDict = object
_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def _calculate_fan_in_and_fan_out(tensor):
    """Return fan-in and fan-out of a weight."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = tensor[0, 0].numel()
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    """Return fan-in or fan-out."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def _no_grad(name):
    def changed(tensor, *args, **options):
        with cygrad.no_grad():
            return getattr(tensor, name)(*args, **options)
    return changed


_no_grad_uniform_, _no_grad_normal_, _no_grad_fill_ = map(_no_grad, ("uniform_", "normal_", "fill_"))


def _get_activation_fn(activation):
    """Return the function of a name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(cygrad.nn.functional, activation)


class _RequiredParameter:
    """Marks an option without default."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _use_grad_for_differentiable(step):
    """Return the step of an optimizer, outside of the graph."""
    return cygrad.no_grad()(step)


def _get_value(x):
    """Return the number in a tensor."""
    return x.item() if isinstance(x, cygrad.Tensor) else x


def _dispatch_sqrt(x):
    """Return the square root of a number or tensor."""
    return x.sqrt() if isinstance(x, cygrad.Tensor) else x ** 0.5


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Return (False, False): steps are always fused."""
    return False, False


def _get_capturable_supported_devices(supports_xla=True):
    """Return no devices with graph capture."""
    return []


def noop_context_fn():
    """Return two context managers without effect."""
    from contextlib import nullcontext
    return nullcontext(), nullcontext()


def detach_variable(inputs):
    """Detach the tensors, keeping requires_grad."""
    return tuple(part.detach().requires_grad_(part.requires_grad) if isinstance(part, cygrad.Tensor) else part
                 for part in inputs)


def check_backward_validity(inputs):
    """Do nothing."""


# The iterators of data loaders.
_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = _Here, _Ahead


class _BaseDataLoaderIter(metaclass=_Either):
    """The iterators of data loaders."""

    classes = (_Here, _Ahead)


class _DatasetKind:
    """Kinds of datasets."""

    Map, Iterable = 0, 1


def set_checkpoint_early_stop(enable):
    """Accept early stopping of checkpoints, which is the default."""
    from contextlib import nullcontext
    return nullcontext()


def set_checkpoint_debug_enabled(enabled):
    """Return a context manager without effect."""
    from contextlib import nullcontext
    return nullcontext()



# ------------------------------------------------------------------------------------------ of torch.distributed

def _no(*args, **options):
    """Return False."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = _no


def is_gloo_available():
    """Return True: gloo names the available collectives."""
    return True


def get_node_local_rank(fallback_rank=None):
    """Return the local rank set by the launcher."""
    if "LOCAL_RANK" in os.environ or fallback_rank is None:
        return int(os.environ["LOCAL_RANK"])
    return fallback_rank


class Backend(str):
    """Name of a communication backend."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = (UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL)

    def __new__(cls, name):
        return super().__new__(cls, name.lower())


# --------------------------------------------------------------------------------------------- of torch.profiler

emit_nvtx, emit_itt = placeholder("torch.autograd.profiler.emit_nvtx"), placeholder("torch.autograd.profiler.emit_itt")


def kineto_available():
    """Return True: `profile` is available."""
    return True


def get_unsafe_globals_in_checkpoint(f):
    """Return no names; `load` reports disallowed globals in its error."""
    return []


def apply_permutation(tensor, permutation, dim=1):
    """Permute a tensor along a dimension."""
    return tensor.index_select(dim, permutation)


def functional_datapipe(name, enable_df_api_tracing=False):
    """Return a decorator without effect: data pipes are data sets."""
    return lambda cls: cls


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Remove a prefix such as "module." from the keys of a state dict, in-place."""
    for names in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in list(names):
            # Metadata has the module itself under the prefix without its dot.
            if key.startswith(prefix) or (names is not state_dict and key == prefix.rstrip(".")):
                names[key.removeprefix(prefix) if key.startswith(prefix) else ""] = names.pop(key)


def _get_clones(module, N):
    return cygrad.nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _addindent(s_, numSpaces):
    return s_.replace("\n", "\n" + " " * numSpaces)


def _none_or_dtype(input):
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """Convert a bool mask of attention to an additive one: -inf where true."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != cygrad.bool:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported (got {mask.dtype}).")
    return cygrad.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    linear = cygrad.nn.functional.linear
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(q, k, v, w, b=None):
    """Project queries, keys and values by the three parts of one weight."""
    biases = (None,) * 3 if b is None else b.chunk(3)
    return list(_in_projection(q, k, v, *w.chunk(3), *biases))


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    points = (line_search.Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return line_search.cubic_minimum(*points, *(bounds or sorted((x1, x2))))


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """Return value and gradient at the found step, the step, and the number of evaluations."""
    if (c1, c2) != (line_search.SUFFICIENT, line_search.CURVATURE):
        raise NotImplementedError(f"_strong_wolfe: only c1=1e-4, c2=0.9 are supported (got {c1}, {c2}).")

    def evaluate(step):
        value, gradient = obj_func(x, step, d)
        return line_search.Point(step, float(value), gradient, float(gradient.dot(d)))
    start = line_search.Point(0.0, float(f), g, float(gtd))
    found, evaluations = line_search.strong_wolfe(
        evaluate, start, t, float(d.abs().max()), tolerance_change, max_ls)
    return found.value, found.gradient, found.step, evaluations
