"""Tools for parameters and gradients: clipping, flattening, parametrization, sequences of different lengths."""

from cygrad.nn.utils import parametrizations, parametrize, rnn, stateless
from cygrad.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from cygrad.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from cygrad.nn.utils.init import skip_init
from cygrad.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from cygrad.nn.utils.weight_norm import remove_weight_norm, weight_norm
