"""
Modules of PyTorch that have another name here, or whose names are in several modules.

`MODULES` maps module to module; `GATHERED` lists the modules with the names of a module that exists only in PyTorch.
"""

import importlib
from types import ModuleType

from cygrad.compatibility.names import reason

__all__ = ["FURTHER", "GATHERED", "MODULES", "among", "first_of", "home", "name_classes"]

_HERE = "cygrad.compatibility"
# PyTorch's module -> module, or "module:name" of an attribute.
MODULES = {
    **{f"torch.{name}": f"{_HERE}.{name}" for name in (
        "amp", "backends", "compiler", "futures", "hub", "jit", "overrides", "testing", "torch_version", "version")},
    **{f"torch.{name}": f"{_HERE}.accelerators:{name}" for name in (
        "accelerator", "cpu", "cuda", "hpu", "mps", "mtia", "xpu")},
    **{f"torch.{name}.{part}": f"{_HERE}.accelerators:{name}" for name in ("cuda", "mps", "xpu")
       for part in ("comm", "memory", "random", "streams", "_utils")},
    **dict.fromkeys((f"torch.{name}.amp" for name in ("cuda", "cpu")), f"{_HERE}.amp"),
    **dict.fromkeys((f"torch.{name}amp.{part}" for name in ("", "cuda.", "cpu.")
                     for part in ("grad_scaler", "autocast_mode")), f"{_HERE}.amp"),
    **{f"torch.backends.{name}": f"{_HERE}.backends:{name}" for name in (
        "cpu", "cuda", "cudnn", "cusparselt", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum",
        "quantized", "xeon", "xnnpack")},
    **dict.fromkeys(("torch._dynamo", "torch._dynamo.eval_frame", "torch._dynamo.utils", "torch._dynamo.decorators",
                     "torch._dynamo._trace_wrapped_higher_order_op"),
                    f"{_HERE}.compiler"), "torch._dynamo.config": f"{_HERE}.compiler:config",
    "torch.utils.hooks": f"{_HERE}.hooks", "torch.utils.deterministic": f"{_HERE}.switches",
    **dict.fromkeys(("torch.utils.tensorboard", "torch.utils.tensorboard.writer", "torch.utils.tensorboard.summary"),
                    f"{_HERE}.tensorboard"),
    "torch.storage": f"{_HERE}.storages", "torch.optim._functional": "cygrad.optim",
    "torch.nn.attention": f"{_HERE}.attention", "torch.nn.attention.flex_attention": f"{_HERE}.flex_attention",
    "torch.library": f"{_HERE}.library", "torch.ops": f"{_HERE}.library:ops",
    "torch.quasirandom": f"{_HERE}.quasirandom", "torch.__config__": f"{_HERE}.build",
    "torch.utils.flop_counter": f"{_HERE}.flop_counter",
    **dict.fromkeys(("torch.autograd.profiler", "torch.autograd.profiler_util", "torch.autograd.profiler_legacy",
                     "torch.profiler.profiler"),
                    "cygrad.profiler"),
    **dict.fromkeys(("torch.utils.benchmark", "torch.utils.benchmark.utils.timer", "torch.utils.benchmark.utils.common",
                     "torch.utils.benchmark.utils.compare", "torch.utils.benchmark.utils"), f"{_HERE}.benchmark"),
    "torch.signal.windows.windows": "cygrad.signal.windows", "torch.utils.model_zoo": f"{_HERE}.hub",
    **dict.fromkeys(("torch._utils", "torch._jit_internal", "torch._tensor_str", "torch.utils._mode_utils"),
                    f"{_HERE}.internal"),
}
_LIBRARIES = f"{_HERE}.library_names"
_NN = (f"{_HERE}.private", "cygrad.nn", "cygrad.nn.functional", "cygrad")
# Names in the modules of `torch.nn.modules`.
CLASSES = {
    "activation": "Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish ELU CELU SELU GLU "
                  "GELU Hardshrink LeakyReLU LogSigmoid Softplus Softshrink MultiheadAttention PReLU Softsign "
                  "Tanhshrink Softmin Softmax Softmax2d LogSoftmax",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d LazyBatchNorm1d BatchNorm2d LazyBatchNorm2d BatchNorm3d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "Container Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
            "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    "distance": "PairwiseDistance CosineSimilarity",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
                    "LazyInstanceNorm3d",
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": "L1Loss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss MSELoss BCELoss BCEWithLogitsLoss "
            "HingeEmbeddingLoss MultiLabelMarginLoss SmoothL1Loss HuberLoss SoftMarginLoss CrossEntropyLoss "
            "LinearCrossEntropyLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss MarginRankingLoss MultiMarginLoss "
            "TripletMarginLoss TripletMarginWithDistanceLoss CTCLoss",
    "normalization": "LocalResponseNorm CrossMapLRN2d LayerNorm GroupNorm RMSNorm",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
               "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d "
               "ZeroPad2d ZeroPad3d",
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d AvgPool2d AvgPool3d "
               "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d AdaptiveMaxPool1d "
               "AdaptiveMaxPool2d AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d",
    "rnn": "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer",
    "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
}
GATHERED = {
    "torch.utils._pytree": ("cygrad.utils.pytree", f"{_HERE}.pytree_names"),
    # Modules of their own, because importing one sets its name in the module of its parent.
    **dict.fromkeys(("torch._functorch", *(f"torch._functorch.{name}" for name in (
        "apis", "eager_transforms", "functional_call", "vmap"))), ("cygrad.func", _LIBRARIES)),
    **{f"torch.nn.modules.{name}": _NN for name in CLASSES},
    "torch.nn.modules.utils": (f"{_HERE}.private", "cygrad.nn.utils"),
    "torch.nn.common_types": (f"{_HERE}.functions",), "torch.types": (f"{_HERE}.functions",),
    "torch._VF": (f"{_HERE}.internal", "cygrad"), "torch._tensor": ("cygrad",), "torch.functional": ("cygrad",),
    "torch._C": ("cygrad", f"{_HERE}.functions", f"{_HERE}.internal", f"{_HERE}.engine", _LIBRARIES),
    **dict.fromkeys(("torch._C._autograd", "torch._C._functions", "torch.autograd._functions"), (f"{_HERE}.engine",)),
    "torch._vmap_internals": (f"{_HERE}.engine", "cygrad.func"),
    "torch.jit.annotations": ("typing", _LIBRARIES),
    **dict.fromkeys(("torch.jit._script", "torch.jit._trace", "torch.jit._state"), (f"{_HERE}.jit",)),
    **dict.fromkeys(("torch._C._functorch", "torch.nn._reduction", "torch.utils._contextlib", "torch.utils.weak",
                     "torch.utils._foreach_utils", "torch.utils.data._utils.worker",
                     "torch.utils.data._utils.pin_memory", "torch.utils.data._utils.signal_handling",
                     "torch.ao.quantization.stubs", "torch.utils._triton"), (_LIBRARIES,)),
    **{f"torch.optim.{name}": ("cygrad.optim", f"{_HERE}.private") for name in (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam", "radam", "rmsprop", "rprop",
        "sgd")},
    **{f"torch.utils.data.{name}": ("cygrad.utils.data", f"{_HERE}.private", _LIBRARIES) for name in (
        "_utils", "dataloader", "dataset", "sampler")},
    "torch.utils.data._utils.collate": (_LIBRARIES, "cygrad.utils.data"),
    **{f"torch.nn.parallel.{name}": ("cygrad.nn.parallel",) for name in (
        "comm", "data_parallel", "distributed", "parallel_apply", "replicate", "scatter_gather")},
    **{f"torch.distributions.{name}": (
        "cygrad.distributions", f"{_HERE}.private", "cygrad.distributions.utils", "cygrad") for name in (
        "bernoulli", "beta", "binomial", "categorical", "cauchy", "chi2", "continuous_bernoulli", "dirichlet",
        "exp_family", "exponential", "fishersnedecor", "gamma", "generalized_pareto", "geometric", "gumbel",
        "half_cauchy", "half_normal", "independent", "inverse_gamma", "kumaraswamy", "laplace", "lkj_cholesky",
        "log_normal", "logistic_normal", "lowrank_multivariate_normal", "mixture_same_family", "multinomial",
        "multivariate_normal", "negative_binomial", "normal", "one_hot_categorical", "pareto", "poisson",
        "relaxed_bernoulli", "relaxed_categorical", "studentT", "transformed_distribution", "uniform", "von_mises",
        "weibull", "wishart")},
    "torch._C._nn": ("cygrad.nn.functional", "cygrad", f"{_HERE}.internal"),
    "torch.return_types": (f"{_HERE}.return_types",),
    "torch.utils._python_dispatch": (f"{_HERE}.overrides",), "torch._ops": (f"{_HERE}.overrides",),
}
# Further modules with the names of a module of cygrad.
FURTHER = {
    "torch.nn.modules": _NN, **dict.fromkeys(("torch.distributed", "torch.profiler"), (f"{_HERE}.private",)),
    "torch.nn.functional": (f"{_HERE}.overrides", f"{_HERE}.internal", f"{_HERE}.forms", f"{_HERE}.private",
                            _LIBRARIES),
    **dict.fromkeys(("torch.autograd", "torch.autograd.forward_ad", "torch.autograd.function",
                     "torch.autograd.grad_mode"), (f"{_HERE}.engine",)),
    "torch.random": (f"{_HERE}.internal",),
    **dict.fromkeys(("torch.autograd.gradcheck", "torch.autograd.functional"), (f"{_HERE}.jacobians",)),
    **dict.fromkeys((
        "torch.nn", "torch.nn.modules.module", "torch.optim.lr_scheduler", "torch.optim.optimizer",
        "torch.utils.data.dataloader", "torch.utils.data.dataset", "torch.utils.data.sampler",
        "torch.distributions.utils", "torch.distributions.transforms", "torch.distributions.constraints",
        "torch.serialization", "torch.nn.init", "torch.nn.parallel", "torch.nn.parameter", "torch.utils.data",
        "torch.utils.checkpoint"), (f"{_HERE}.private", _LIBRARIES))}


class Gathered(ModuleType):
    """A module with the names of other modules."""

    def __init__(self, path, sources):
        super().__init__(path, f"What programs look for in {path}.")
        self.__path__ = []
        self._sources = sources
        classes = CLASSES.get(path.removeprefix("torch.nn.modules."), "").split()
        if classes:
            self.__all__ = [name for name in classes if among(sources, name)]
            vars(self).update({name: first_of(sources, name) for name in self.__all__})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{self.__name__}.{name}"
        found = home(path)
        vars(self)[name] = found = first_of(self._sources, path) if found is None else found
        return found


def name_classes(path, module):
    """Set ``__module__`` of classes to their paths in PyTorch."""
    if path == "torch.nn":
        homes = {name: f"{path}.modules.{home}" for home, names in CLASSES.items() for name in names.split()}
        homes |= {"Module": f"{path}.modules.module", **dict.fromkeys((
            "Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"), f"{path}.parameter")}
        attention = importlib.import_module("cygrad.nn.multihead_attention")
        attention.NonDynamicallyQuantizableLinear.__module__ = homes["Linear"]
    elif path == "torch.optim":
        homes = {name: f"{path}.{name.lower()}" for name, found in vars(module).items() if isinstance(found, type)}
    else:
        return
    for name, home in homes.items():
        found = getattr(module, name, None)
        if isinstance(found, type):
            found.__module__ = home


def among(sources, name):
    """Return whether one of these modules has a name."""
    return any(hasattr(importlib.import_module(source), name) for source in sources)


def first_of(sources, path):
    """Return the object of a name in the first of these modules that has it, or raise AttributeError."""
    name = path.rpartition(".")[2]
    for source in sources:
        source = importlib.import_module(source)
        found = getattr(source, name, source)
        if found is not source:
            return found
    raise AttributeError(f"{path} is not in cygrad, which stands in for torch. {reason(path)}", name=name)


_made = {}


def home(path):
    """Return the module for a path of torch in these tables."""
    if path in MODULES:
        module, _, part = MODULES[path].partition(":")
        module = importlib.import_module(module)
        return getattr(module, part) if part else module
    if path in GATHERED and path not in _made:
        _made[path] = Gathered(path, GATHERED[path])
    return _made.get(path)
