"""
Names that only PyTorch programs use, and the messages for missing names.

`HOMES` lists names of the package's namespace, in which `cygrad.__getattr__` looks last.
"""

import importlib
from difflib import get_close_matches

__all__ = ["HOMES", "find", "reason"]

_HERE = "cygrad.compatibility"
# name -> module, and the name there ("" for the module itself, "=" for the same name)
HOMES = {
    **dict.fromkeys(("finfo", "iinfo"), (f"{_HERE}.limits", "=")),
    **{name: (f"{_HERE}.{name}", "") for name in (
        "amp", "backends", "compiler", "futures", "hub", "jit", "library", "overrides", "quasirandom", "testing",
        "version")},
    **dict.fromkeys(("accelerator", "cpu", "cuda", "hpu", "mps", "mtia", "xpu"), (f"{_HERE}.accelerators", "=")),
    **dict.fromkeys(("autocast", "GradScaler", "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype",
                     "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cache_enabled",
                     "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled",
                     "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype",
                     "set_autocast_enabled", "get_autocast_ipu_dtype", "get_autocast_xla_dtype",
                     "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "set_autocast_gpu_dtype",
                     "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype",
                     "set_autocast_xla_enabled"), (f"{_HERE}.amp", "=")),
    **dict.fromkeys(("are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
                     "get_float32_matmul_precision", "get_num_interop_threads",
                     "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
                     "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
                     "set_flush_denormal", "set_num_interop_threads", "set_warn_always",
                     "use_deterministic_algorithms"), (f"{_HERE}.switches", "=")),
    **dict.fromkeys(("BoolTensor", "ByteTensor", "CharTensor", "ComplexDoubleTensor", "ComplexFloatTensor",
                     "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "ShortTensor", "BFloat16Tensor",
                     "HalfTensor", "ComplexHalfTensor", "UInt16Tensor", "UInt32Tensor", "UInt64Tensor"),
                    (f"{_HERE}.legacy", "=")),
    **dict.fromkeys(("BoolStorage", "ByteStorage", "CharStorage", "DoubleStorage", "FloatStorage", "IntStorage",
                     "LongStorage", "ShortStorage", "HalfStorage", "BFloat16Storage", "ComplexFloatStorage",
                     "ComplexDoubleStorage", "Storage", "StorageBase",
                     "TypedStorage", "UntypedStorage", "is_storage"), (f"{_HERE}.storages", "=")),
    **dict.fromkeys(("empty_permuted", "empty_strided", "from_file", "frombuffer", "get_device", "get_device_module",
                     "is_distributed", "range", "sym_float", "sym_int", "sym_max", "sym_min", "sym_not", "sym_sqrt",
                     "typename", "compiled_with_cxx11_abi", "is_vulkan_available", "histogramdd", "narrow_copy"),
                    (f"{_HERE}.functions", "=")),
    "torch": ("cygrad", ""), **dict.fromkeys(("pca_lowrank", "svd_lowrank"), (f"{_HERE}.internal", "=")),
    **dict.fromkeys((
        "affine_grid_generator", "alpha_dropout", "alpha_dropout_", "batch_norm", "constant_pad_nd", "conv_tbc",
        "convolution", "detach", "dropout", "dropout_", "embedding", "embedding_bag", "embedding_renorm_",
        "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "frobenius_norm",
        "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "group_norm", "instance_norm", "kl_div", "layer_norm",
        "max_pool1d_with_indices", "native_batch_norm", "native_channel_shuffle", "native_dropout",
        "native_group_norm", "native_layer_norm", "norm_except_dim", "nuclear_norm"), (f"{_HERE}.forms", "=")),
    **dict.fromkeys(("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
                     "sparse_csc_tensor", "sparse_csr_tensor"), ("cygrad.sparse", "=")),
    **dict.fromkeys(("dsmm", "hsmm", "hspmm", "smm", "spmm"), ("cygrad.sparse", "mm")),
    "saddmm": ("cygrad.sparse", "addmm"), "alias_copy": ("cygrad", "clone"), "native_norm": ("cygrad", "norm"),
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh", "segment_reduce"), (f"{_HERE}.recurrent_forms", "=")),
    "default_generator": ("cygrad.random.generator", "="), "inference_mode": ("cygrad.autograd", "="),
    "torch_version": (f"{_HERE}.torch_version", ""), "ops": ("cygrad.utils.operator_modes", "="),
    **dict.fromkeys(("is_anomaly_enabled", "is_anomaly_check_nan_enabled"), ("cygrad.autograd.anomaly_mode", "=")),
    "set_anomaly_enabled": ("cygrad.autograd.anomaly_mode", "set_detect_anomaly"),
    **dict.fromkeys(("Future",), (f"{_HERE}.futures", "=")), "OutOfMemoryError": ("builtins", "MemoryError"),
    **dict.fromkeys(("AcceleratorError", "JITException"), ("builtins", "RuntimeError")),
    **dict.fromkeys(("ScriptModule", "ScriptFunction", "ScriptMethod"), (f"{_HERE}.jit", "=")),
    "fork": (f"{_HERE}.jit", "fork"), "wait": (f"{_HERE}.jit", "wait"), "to_dlpack": ("cygrad.utils.dlpack", "="),
    **dict.fromkeys(("DisableTorchFunctionSubclass", "DisableTorchFunction", "_assert", "_assert_async", "_check",
                     "_shape_as_tensor", "binomial", "has_lapack", "has_mkl", "has_openmp", "has_spectral",
                     "init_num_threads", "legacy_contiguous_format", "pca_lowrank", "poisson", "svd_lowrank",
                     "sym_ite", "sym_sum", "thread_safe_generator", "while_loop", "cond", "lobpcg"),
                    (f"{_HERE}.internal", "=")),
    # Functions that PyTorch also has at its top level, with the same parameters.
    **dict.fromkeys((
        "adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "bilinear", "binary_cross_entropy_with_logits",
        "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "cosine_embedding_loss", "cosine_similarity", "ctc_loss", "hinge_embedding_loss", "margin_ranking_loss",
        "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle",
        "poisson_nll_loss", "prelu", "rms_norm", "rrelu", "threshold", "triplet_margin_loss",
        "selu_", "celu_", "rrelu_", "threshold_"), ("cygrad.nn.functional", "=")),
}
# Replacements of missing names, by the longest prefix.
REASONS = {
    "": "It is not part of this library; docs/compatibility.md lists what is.",
    "quant": "There is no quantization: compute in float32.",
    "fake_quantize": "There is no quantization: compute in float32.",
    "q_": "There is no quantization: compute in float32.",
    "cudnn": "It is a function of another device: use that of nn.functional.",
    "miopen": "It is a function of another device: use that of nn.functional.",
    "mkldnn": "It is a function of another library: use that of nn.functional.",
    "fbgemm": "It is a function of another library: use nn.functional.linear.",
    "Stream": "There is only the CPU, which has no streams: leave them out where cuda.is_available() is False.",
    "Event": "There is only the CPU, which has no streams: measure with time.perf_counter().",
    "nested": "There are no nested tensors: use nn.utils.rnn.pad_sequence or pack_sequence.",
    "export": "There are no exported programs: save the state_dict with save().",
    "classes": "There are no classes of extensions.",
    "rpc": "There are no remote procedure calls.",
}


# Types for annotations and `isinstance`; instantiating one is an error.
MENTIONED = {"Event", "Graph", "Node", "PyTorchFileReader", "PyTorchFileWriter", "ScriptObject", "Stream", "SymBool",
             "SymFloat", "SymInt", "Value",
             *(f"{kind}Type" for kind in (
                 "Any", "Bool", "Class", "DeviceObj", "Dict", "Enum", "Float", "Future", "Int", "Interface", "List",
                 "None", "Number", "Optional", "String", "Tensor", "Tuple", "Union"))}


def find(name):
    """Return the object of a name that `cygrad` itself lacks; raise AttributeError if missing."""
    if name in HOMES:
        module, part = HOMES[name]
        module = importlib.import_module(module)
        return module if not part else getattr(module, name if part == "=" else part)
    if name in MENTIONED:
        return importlib.import_module("cygrad.compatibility.absent").placeholder(f"torch.{name}")
    found = _made(name) or importlib.import_module("cygrad.compatibility.absent").module(f"torch.{name}")
    if found is None and name.endswith("_") and not name.startswith("_"):
        found = getattr(importlib.import_module("cygrad").Tensor, name, None)      # resize_(x, ...) is x.resize_(...)
    if found is None:
        raise UnknownName(f"module 'cygrad' has no attribute {name!r}. ", name=name)
    return found


# Names of NumPy and JAX -> names here.
ELSEWHERE = {"array": "tensor", "expand_dims": "unsqueeze", "power": "pow", "invert": "bitwise_not",
             "value_and_grad": "func.value_and_grad", "jit": "compile", "jacobian": "func.jacrev",
             "hessian": "func.hessian", "jacrev": "func.jacrev", "identity": "eye"}


class UnknownName(AttributeError):
    """A missing name of the namespace; suggestions are computed when the error is printed."""

    def __str__(self):
        found = reason(self.name or "")
        return self.args[0] + (suggestion(self.name or "") or found if found == REASONS[""] else found)


def suggestion(name):
    """Return a suggestion as a question, or an empty text."""
    package = importlib.import_module("cygrad")
    public = [known for known in {*dir(package), *HOMES} if not known.startswith("_")]
    close = [ELSEWHERE[name]] if name in ELSEWHERE else get_close_matches(name, public, 1, 0.75)
    return f"Did you mean {close[0]!r}?" if close else ""


def _made(name):
    """Return a function that is created by its name, or None."""
    forms = f"{_HERE}.forms"
    for module in (f"{_HERE}.internal", f"{_HERE}.library_names") if name.startswith("_") else ():
        found = vars(importlib.import_module(module)).get(name)
        if found is not None and not name.startswith("__"):
            return found
    if name.startswith("_foreach_"):
        return importlib.import_module(forms).foreach(name.removeprefix("_foreach_"))
    if name.endswith("_copy") and not name.startswith("_"):
        return importlib.import_module(forms).copy_of_view(name.removesuffix("_copy"))
    return None


def reason(path):
    """Return the replacement of a missing dotted path or name."""
    name = path.rpartition(".")[2]
    return REASONS[max((start for start in REASONS if name.startswith(start)), key=len)]
