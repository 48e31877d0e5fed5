"""Tools for parameters and gradients: clipping, flattening, parametrization, sequences of different lengths."""

from cygrad._core import public_dir as _public_dir
from cygrad.nn.utils import parametrizations, parametrize, rnn, stateless
from cygrad.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from cygrad.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from cygrad.nn.utils.init import skip_init
from cygrad.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from cygrad.nn.utils.weight_norm import remove_weight_norm, weight_norm

_LATE = {**dict.fromkeys(("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
                          "fusion"), "fusion"),
         **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
                          "memory_format"), "memory_format"),
         "clip_grad_norm": "clip_grad", "prune": "prune"}


def __getattr__(name):
    if name in _LATE:                                # loaded when they are first asked for
        from importlib import import_module
        module = import_module(f"cygrad.nn.utils.{_LATE[name]}")
        return module if name == _LATE[name] else getattr(module, name)
    raise AttributeError(f"module 'cygrad.nn.utils' has no attribute {name!r}")

__dir__ = _public_dir(__name__)
