"""
Placeholders of unavailable modules: importing them works, using them raises an error.

Each of their names is a class, so that annotations and `isinstance` work; calling it, instantiating a subclass, or
decorating with it raises an error that says why it is not available.
"""

from types import ModuleType

__all__ = ["ABSENT", "Anything", "module", "placeholder"]

_GRAPHS = "Programs are not traced into graphs here: run them as they are."
_QUANTIZED = "There is no quantization: compute in float32."
_MACHINES = "There are no remote procedure calls and pipelines here."
ABSENT = {
    "torch.fx": _GRAPHS, "torch._inductor": _GRAPHS, "torch._functorch": _GRAPHS, "torch.export": _GRAPHS,
    "torch._export": _GRAPHS, "torch.utils.mobile_optimizer": _GRAPHS, "torch._higher_order_ops": _GRAPHS,
    "torch._subclasses": _GRAPHS, "torch._decomp": _GRAPHS, "torch._prims": _GRAPHS, "torch._prims_common": _GRAPHS,
    "torch._refs": _GRAPHS, "torch._lowrank": _GRAPHS,
    "torch.utils._sympy": _GRAPHS, "torch._guards": _GRAPHS,
    "torch.onnx": "Models are not written as ONNX here: save the state_dict, and export from PyTorch.",
    "torch.ao": _QUANTIZED, "torch.quantization": _QUANTIZED, "torch.nn.quantized": _QUANTIZED,
    "torch.nn.qat": _QUANTIZED, "torch.nn.intrinsic": _QUANTIZED, "torch.nn.quantizable": _QUANTIZED,
    "torch.distributed.rpc": _MACHINES, "torch.distributed.pipelining": _MACHINES,
    "torch.distributed.elastic": _MACHINES,
    "torch.distributed": "It is no part of what distributed has here: collectives, DistributedDataParallel, samplers.",
    "torch._custom_ops": "Define operators with torch.library.custom_op.",
    **dict.fromkeys(("torch.utils.data.datapipes", "torch.utils.data.graph_settings", "torch.utils.data.graph"),
                    "PyTorch has given data pipes up: use data sets and loaders."),
    **dict.fromkeys(("torch._C._distributed_c10d", "torch._C._distributed_rpc", "torch.numa"), _MACHINES),
    "torch.cuda.profiler": "There is only the CPU: use cygrad.profiler.", "torch.jit._recursive": _GRAPHS,
    "torch.classes": "There are no classes of extensions.",
    "torch.utils.cpp_extension": "Extensions for PyTorch cannot be loaded: define operators with autograd.Function.",
    "torch.nested": "There are no nested tensors: use nn.utils.rnn.pad_sequence or pack_sequence.",
    "torch.masked": "There are no masked tensors: use where() and boolean indices.",
    "torch.package": "Packages of code are not written here: use save() for tensors.",
    "torch.monitor": "Nothing is monitored here.",
    "torch.utils.bottleneck": "Use cygrad.profiler, or cProfile.",
    "torch.utils.collect_env": "See cygrad.show_config().", "torch._lazy": _GRAPHS, "torch.contrib": _GRAPHS,
}


class Anything(type):
    """Metaclass of placeholders."""

    def __call__(cls, *args, **options):
        raise NotImplementedError(f"{cls._path} is not available in cygrad. {cls._why}")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _known(cls._path, name) or placeholder(f"{cls._path}.{name}", cls._why)

    def __repr__(cls):
        return f"<{cls._path}, not available in cygrad>"

    def __getitem__(cls, item):
        return cls


def placeholder(path, why=None):
    """Return the placeholder of an unavailable name."""
    if why is None:
        from cygrad.compatibility.names import reason
        why = reason(path)
    return Anything(path.rpartition(".")[2], (), {"_path": path, "_why": why, "__doc__": why, "__module__": __name__})


class Absent(ModuleType):
    """A module that can only be imported."""

    def __init__(self, path, why):
        super().__init__(path, why)
        self.__path__, self._why = [], why

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{self.__name__}.{name}"
        found = _known(self.__name__, name) or module(path, listed=True) or placeholder(path, self._why)
        vars(self)[name] = found
        return found

    def __mro_entries__(self, bases):
        return (placeholder(self.__name__, self._why),)


def _same(function):
    return function


# Names that work in unavailable modules: decorators and predicates.
KNOWN = {
    **dict.fromkeys(("torch.onnx.symbolic_helper.parse_args", "torch.onnx.symbolic_helper.quantized_args"),
                    lambda *args, **options: _same),
    "torch.onnx.register_custom_op_symbolic": lambda *args, **options: None,
    **dict.fromkeys(("torch.fx.wrap", "torch.distributed.rpc.api._require_initialized"), lambda function: function),
    "torch.fx.experimental.proxy_tensor.get_proxy_mode": lambda: None,
}
_made = {}


def _known(path, name):
    """Names available without the rest: predicates, markers in networks to be quantized, placement specifications."""
    if name.startswith(("is_", "_is_")):                   # nothing is fake, traced or exported here
        return lambda *args, **options: False
    if ("quanti" in path and name in ("QuantStub", "DeQuantStub", "FloatFunctional")) or (
            "tensor" in path and name in ("Shard", "Replicate", "Partial")):
        import importlib
        return getattr(importlib.import_module("cygrad.compatibility.library_names"), name)
    return KNOWN.get(f"{path}.{name}")


def module(path, listed=False):
    """Return the placeholder of an unavailable module of torch, or None. `listed`: only if it is listed by name."""
    if path not in _made:
        start = path
        while start not in ABSENT and "." in start and not listed:
            start = start.rpartition(".")[0]
        if start not in ABSENT:
            return None
        _made[path] = Absent(path, ABSENT[start])
    return _made[path]
