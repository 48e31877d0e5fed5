"""Utilities for parameters, gradients and packed sequences."""

from cygrad._core import late_attributes as _late_attributes
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

__getattr__, __dir__ = _late_attributes(__name__, _LATE)
