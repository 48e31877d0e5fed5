"""Names with an underscore that programs for PyTorch use all the same: base classes, mostly, by which they ask."""

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
    """A question with `isinstance` that several classes answer."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.classes)


class _DropoutNd(metaclass=_Either):
    """Layers that leave elements or channels out."""

    classes = (_Dropout,)


class _ReflectionPadNd(metaclass=_Either):
    """Layers that pad by reflection."""

    classes = (padding.ReflectionPad1d, padding.ReflectionPad2d, padding.ReflectionPad3d)


class _ReplicationPadNd(metaclass=_Either):
    """Layers that pad with the elements at the edge."""

    classes = (padding.ReplicationPad1d, padding.ReplicationPad2d, padding.ReplicationPad3d)


def _ntuple(n, name="parse"):
    """A function that repeats a number n times and makes a tuple of what is iterable."""
    def parse(value):
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n
    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(values, n):
    """Return the values in reverse, each n times."""
    return tuple(value for value in reversed(values) for _ in range(n))


def _list_with_default(sizes, defaults):
    """Sizes, with those of `defaults` from the end for None."""
    return [default if size is None else size
            for size, default in zip(sizes, defaults[-len(sizes):], strict=True)]


def factory_kwargs(kwargs):
    """Those of the keyword arguments that factories take: device, dtype, memory_format."""
    unknown = set(kwargs) - {"device", "dtype", "factory_kwargs", "memory_format"}
    if unknown:
        raise TypeError(f"factory_kwargs: unexpected keyword arguments (got {', '.join(sorted(unknown))}).")
    given = dict(kwargs.get("factory_kwargs") or {})
    return given | {name: value for name, value in kwargs.items() if name != "factory_kwargs"}


class NonDynamicallyQuantizableLinear(cygrad.nn.Linear):
    """A linear layer."""


def _standard_normal(shape, dtype, device=None):
    """Numbers of the standard normal distribution."""
    return cygrad.randn(tuple(shape), dtype=dtype)


def _sum_rightmost(value, dim):
    """Summed over the last dimensions; 0: none."""
    return sum_last(value, dim)


# Types that programs annotate with.
MAP_LOCATION = FILE_LIKE = Callable | str | os.PathLike | cygrad.device | dict | None
ParamsT = _params_t = StateDict = object
_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs and outputs an element of a weight's results has."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = tensor[0, 0].numel()
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    """One of both, by its name."""
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
    """The number that a tensor holds."""
    return x.item() if isinstance(x, cygrad.Tensor) else x


def _dispatch_sqrt(x):
    """The root of a number or of what a tensor holds."""
    return x.sqrt() if isinstance(x, cygrad.Tensor) else x ** 0.5


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Which way of computing steps is taken: neither."""
    return False, False


def _get_capturable_supported_devices(supports_xla=True):
    """Devices that replay graphs: none."""
    return []


def noop_context_fn():
    """Two blocks that change nothing."""
    from contextlib import nullcontext
    return nullcontext(), nullcontext()


def detach_variable(inputs):
    """Return the tensors outside the graph, wanting gradients as before."""
    return tuple(part.detach().requires_grad_(part.requires_grad) if isinstance(part, cygrad.Tensor) else part
                 for part in inputs)


def check_backward_validity(inputs):
    """Nothing to check."""


# The iterators of data loaders.
_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = _Here, _Ahead


class _BaseDataLoaderIter(metaclass=_Either):
    """The iterators of data loaders."""

    classes = (_Here, _Ahead)


class _DatasetKind:
    """What a dataset is."""

    Map, Iterable = 0, 1


def set_checkpoint_early_stop(enable):
    """A block that changes nothing: what is computed again ends when all is there that is needed."""
    from contextlib import nullcontext
    return nullcontext()


def set_checkpoint_debug_enabled(enabled):
    """Return a block that changes nothing."""
    from contextlib import nullcontext
    return nullcontext()



# ------------------------------------------------------------------------------------------ of torch.distributed

def _no(*args, **options):
    """No."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = _no


def is_gloo_available():
    """Yes: its name stands for the collectives that there are."""
    return True


def get_node_local_rank(fallback_rank=None):
    """The number of this process on its machine, as the program that started it says."""
    if "LOCAL_RANK" in os.environ or fallback_rank is None:
        return int(os.environ["LOCAL_RANK"])
    return fallback_rank


class Backend(str):
    """The name of a way of communicating."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = (UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL)

    def __new__(cls, name):
        return super().__new__(cls, name.lower())


# --------------------------------------------------------------------------------------------- of torch.profiler

emit_nvtx, emit_itt = placeholder("torch.autograd.profiler.emit_nvtx"), placeholder("torch.autograd.profiler.emit_itt")


def kineto_available():
    """Whether `profile` can do what it can do."""
    return True


def get_unsafe_globals_in_checkpoint(f):
    """What a file needs besides tensors, which `load` says when it refuses."""
    return []


def apply_permutation(tensor, permutation, dim=1):
    """Return the parts of a tensor along a dimension in another order."""
    return tensor.index_select(dim, permutation)


def functional_datapipe(name, enable_df_api_tracing=False):
    """A decorator that returns the class: data pipes are data sets here."""
    return lambda cls: cls


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take a prefix such as "module." from the keys of a state dict that have it, in place."""
    for names in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in list(names):
            # The metadata knows the module itself by the prefix without its dot.
            if key.startswith(prefix) or (names is not state_dict and key == prefix.rstrip(".")):
                names[key.removeprefix(prefix) if key.startswith(prefix) else ""] = names.pop(key)


def _get_clones(module, N):
    return cygrad.nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _addindent(s_, numSpaces):
    return s_.replace("\n", "\n" + " " * numSpaces)


def _none_or_dtype(input):
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask of attention as numbers that are added: -inf where a bool mask is true."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != cygrad.bool:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported (got {mask.dtype}).")
    return cygrad.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    linear = cygrad.nn.functional.linear
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(q, k, v, w, b=None):
    """Queries, keys and values of attention, by the three parts of one weight."""
    biases = (None,) * 3 if b is None else b.chunk(3)
    return list(_in_projection(q, k, v, *w.chunk(3), *biases))


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    points = (line_search.Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return line_search.cubic_minimum(*points, *(bounds or sorted((x1, x2))))


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """Return the value and gradient at the step that is found, the step, and the number of evaluations."""
    if (c1, c2) != (line_search.SUFFICIENT, line_search.CURVATURE):
        raise NotImplementedError(f"_strong_wolfe: only c1=1e-4, c2=0.9 are supported (got {c1}, {c2}).")

    def evaluate(step):
        value, gradient = obj_func(x, step, d)
        return line_search.Point(step, float(value), gradient, float(gradient.dot(d)))
    start = line_search.Point(0.0, float(f), g, float(gtd))
    found, evaluations = line_search.strong_wolfe(
        evaluate, start, t, float(d.abs().max()), tolerance_change, max_ls)
    return found.value, found.gradient, found.step, evaluations
