"""Layers, activations and losses as functions."""

from cygrad._core import late_attributes as _late_attributes
from cygrad.nn.functional.activation import (
    celu,
    elu,
    elu_,
    gelu,
    glu,
    hardtanh,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    relu,
    relu6,
    relu6_,
    relu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanh,
    tanhshrink,
)
from cygrad.nn.functional.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
)
from cygrad.nn.functional.attention import multi_head_attention_forward, scaled_dot_product_attention
from cygrad.nn.functional.channel_dropout import alpha_dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from cygrad.nn.functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from cygrad.nn.functional.ctc import ctc_loss
from cygrad.nn.functional.distance import cosine_similarity, pairwise_distance, pdist
from cygrad.nn.functional.embedding import embedding, embedding_bag
from cygrad.nn.functional.grid_sampling import affine_grid, grid_sample
from cygrad.nn.functional.gumbel import gumbel_softmax
from cygrad.nn.functional.layers import bilinear, dropout, linear, normalize, one_hot, pad
from cygrad.nn.functional.likelihood_loss import gaussian_nll_loss, linear_cross_entropy, poisson_nll_loss
from cygrad.nn.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from cygrad.nn.functional.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from cygrad.nn.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from cygrad.nn.functional.patches import fold, unfold
from cygrad.nn.functional.piecewise import (
    celu_,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh_,
    prelu,
    rrelu,
    rrelu_,
    softshrink,
    threshold,
    threshold_,
)
from cygrad.nn.functional.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from cygrad.nn.functional.resampling import (
    channel_shuffle,
    interpolate,
    pixel_shuffle,
    pixel_unshuffle,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

__getattr__, __dir__ = _late_attributes(__name__, dict.fromkeys(
    (f"fractional_max_pool{n}d{suffix}" for n in (2, 3) for suffix in ("", "_with_indices")), "fractional_pooling")
    | {"grad": ".grad"})
