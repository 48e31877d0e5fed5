"""Neural networks: layers and losses as modules, and `functional`."""

from cygrad._core import late_attributes as _late_attributes
from cygrad.nn import attention, functional, init, modules, parallel, utils  # isort: split  (use the modules above)
from cygrad.nn.activation import (
    ELU,
    GELU,
    SELU,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softsign,
    Tanh,
)
from cygrad.nn.adaptive import AdaptiveLogSoftmaxWithLoss
from cygrad.nn.container import ModuleDict, ModuleList, Sequential
from cygrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Fold,
    Unfold,
)
from cygrad.nn.distance import CosineSimilarity, PairwiseDistance
from cygrad.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from cygrad.nn.embedding import Embedding, EmbeddingBag
from cygrad.nn.layers import Bilinear, Flatten, Identity, Linear, Unflatten
from cygrad.nn.lazy import LazyLinear
from cygrad.nn.lazy_convolution import (
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
)
from cygrad.nn.likelihood_loss import CTCLoss, GaussianNLLLoss, PoissonNLLLoss
from cygrad.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    LinearCrossEntropyLoss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from cygrad.nn.margin_loss import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from cygrad.nn.module import Module
from cygrad.nn.multihead_attention import MultiheadAttention
from cygrad.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from cygrad.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from cygrad.nn.parallel import DataParallel
from cygrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from cygrad.nn.parameter_container import ParameterDict, ParameterList
from cygrad.nn.piecewise import (
    CELU,
    GLU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    PReLU,
    RReLU,
    Softmax2d,
    Softshrink,
    Tanhshrink,
    Threshold,
)
from cygrad.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from cygrad.nn.recurrent import GRU, LSTM, RNN, RNNBase
from cygrad.nn.recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from cygrad.nn.resampling import (
    ChannelShuffle,
    PixelShuffle,
    PixelUnshuffle,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
from cygrad.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

# Pickles of version 0.1 name these modules.
for _module, _names in {
    "distance": ["Bilinear"], "layers": ["Dropout"], "margin_loss": ["CTCLoss", "GaussianNLLLoss", "PoissonNLLLoss"],
    "resampling": ["AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "Unflatten"],
}.items():
    vars(globals()[_module]).update({_name: globals()[_name] for _name in _names})


_LATE = {                                 # imported on first access
    "SyncBatchNorm": "sync_batch_norm",
    **dict.fromkeys(("Container", "CrossMapLRN2d", "FractionalMaxPool2d", "FractionalMaxPool3d", "NLLLoss2d"),
                    "rare_layers"),
    "grad": "grad",
}

__getattr__, __dir__ = _late_attributes(__name__, _LATE)
