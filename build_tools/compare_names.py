"""
Compare PyTorch's names with ours, and list missing ones in docs/compatibility_names.md.

    python -m build_tools.compare_names           writes the page
    python -m build_tools.compare_names --check   only prints how many names are missing

Needs PyTorch for its names; ours are listed in a process that runs the stand-in.
"""

import argparse
import importlib
import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "compatibility_names.md"
MODULES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.grad", "torch.nn.utils",
    "torch.nn.utils.rnn", "torch.nn.utils.prune", "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations",
    "torch.nn.utils.fusion", "torch.nn.parallel", "torch.nn.attention", "torch.nn.Module", "torch.optim",
    "torch.optim.Optimizer", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data", "torch.autograd",
    "torch.autograd.functional", "torch.autograd.forward_ad", "torch.autograd.graph", "torch.func", "torch.linalg",
    "torch.fft", "torch.special", "torch.sparse", "torch.distributions", "torch.multiprocessing", "torch.testing",
    "torch.signal.windows", "torch.profiler", "torch.hub", "torch.jit", "torch.amp", "torch.random", "torch.overrides",
    "torch.utils.checkpoint", "torch.utils.dlpack", "torch.utils.hooks", "torch.Generator", "torch.distributed",
)
# Names missing on purpose: prefix -> reason.
DIFFERENT = {
    "quantization: compute in float32": (
        "quantize", "quantized", "fake_quantize", "q_", "qscheme", "int_repr", "dequantize", "per_channel",
        "per_tensor", "fused_moving", "choose_qparams", "empty_quantized", "QInt", "QUInt", "fbgemm"),
    "functions of other devices and libraries: use those of nn.functional": (
        "cudnn", "miopen", "mkldnn", "to_mkldnn", "_to_mkldnn", "ipu", "mtia", "Stream", "Event", "vulkan"),
    "PyTorch's own compiler, its types and its graphs": (
        "AliasDb", "AnyType", "Argument", "AwaitType", "Benchmark", "Block", "BoolType", "CallStack", "Capsule",
        "ClassType", "Code", "CompilationUnit", "CompleteArgumentSpec", "ComplexType", "ConcreteModule",
        "DeepCopyMemoTable", "Deserialization", "DictType", "Dispatch", "EnumType", "ErrorReport",
        "ExcludeDispatch", "ExecutionPlan", "FatalError", "FileCheck", "FloatType", "FunctionSchema",
        "FutureType", "Gradient", "Graph", "IODescriptor", "InferredType", "IntType", "InterfaceType",
        "ListType", "LiteScript", "LockingLogger", "LoggerBase", "ModuleDict", "Node", "NoneType", "NoopLogger",
        "NumberType", "OperatorInfo", "OptionalType", "PyObjectType", "PyTorchFile", "RRefType", "Script",
        "Serialization", "StaticModule", "StringType", "Sym", "Tag", "TensorType",
        "Throughput", "TracingState", "TupleType", "Type", "UnionType", "Use", "Value", "import_ir", "parse_",
        "merge_type", "unify_type", "ParameterDict", "BufferDict", "AggregationType", "AVG", "SUM",
        "DeviceObjType", "StreamObjType", "USE_", "PRIVATE_OPS", "TYPE_CHECKING", "annotations", "sym_", "cpp",
        "get_file_path", "prepare_multiprocessing", "profiler_allow", "hash_tensor", "jit_module_from",
        "export_opnames", "frontend", "run_frozen", "last_executed", "save_jit", "set_module", "DType",
        "ProfilerConfig", "ProfilerEvent"),
    "removed from PyTorch itself, where they only raise an error": (
        "eig", "lstsq", "matrix_rank", "solve", "symeig"),
    "dtypes that PyTorch itself only names": (
        "bit", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "uint1", "uint2", "uint3", "uint4",
        "uint5", "uint6", "uint7", "float4"),
    "kernels of other devices, and how they are chosen and captured": (
        "batch_norm_", "SparseSemiStructured", "to_sparse_semi_structured", "register_flash", "activate_flash",
        "list_flash", "current_flash", "restore_flash", "WARN_FOR_UNFUSED", "graphsafe", "get_offset", "set_offset",
        "scaled_", "grouped_mm", "ScalingType", "SwizzleType", "xpu", "DLDeviceType", "set_warn_on_accumulate_grad",
        "set_override_stale_capture"),
    "methods of sparse tensors, which have them; those of dense ones only raise": (
        "ccol_indices", "col_indices", "crow_indices", "row_indices", "indices", "values", "coalesce", "is_coalesced",
        "sparse_resize", "to_sparse_bs", "resize_as_sparse", "smm", "sspaddmm", "to_padded_tensor"),
    "texts, and parts of PyTorch's own source that happen to have public names": (
        "common_notes", "reproducibility_notes", "tf32_notes", "sparse_support_notes", "T_destination",
        "classproperty", "GRID_SAMPLE_", "assert_int_or_pair", "NestedIOFunction", "slice_inverse", "BackwardHook",
        "enable_reentrant_dispatch", "redispatch_function", "autocast_decrement", "autocast_increment"),
    "data pipes, which PyTorch has given up": (
        "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "datapipes",
        "functional_datapipe", "guaranteed_datapipes", "non_deterministic", "runtime_validation"),
}
NOT_NAMES = ("typing", "collections", "collections.abc", "typing_extensions", "functools", "enum", "contextlib", "abc")


def find(path):
    """Import a module, or get a class of one."""
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        return getattr(find(parent), name)


def names_of(path):
    """Return the public names of a module or class of PyTorch."""
    owner, found = find(path), []
    names = getattr(owner, "__all__", None) if path not in ("torch", "torch.nn") else None
    for name in names or dir(owner):
        value = getattr(owner, name, None)
        if name.startswith("_") or inspect.ismodule(value) or getattr(value, "__module__", None) in NOT_NAMES:
            continue
        found.append(name)
    return found


def missing_here(listed):
    """Return the names that the stand-in lacks; runs in its process."""
    from cygrad.compatibility import stand_in
    from cygrad.compatibility.absent import Absent, Anything

    stand_in()
    found = {}
    for path, names in listed.items():
        try:
            owner = find(path)
        except (ImportError, AttributeError):
            found[path] = names
            continue
        values = {name: getattr(owner, name, Anything) for name in names}
        found[path] = [name for name, value in values.items()
                       if value is Anything or isinstance(value, (Absent, Anything))]
    return found


def compare():
    """Return path -> (names of PyTorch, missing names)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = {path: names_of(path) for path in MODULES}
    program = ("import json, sys, warnings; warnings.simplefilter('ignore'); from build_tools.compare_names import "
               "missing_here; print(json.dumps(missing_here(json.load(sys.stdin))))")
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(listed), capture_output=True, text=True,
                          check=True, cwd=PAGE.parents[1])
    missing = json.loads(done.stdout.splitlines()[-1])
    return {path: (names, missing[path]) for path, names in listed.items()}


def intended(name):
    """Return the reason for a name missing on purpose, or None."""
    return next((reason for reason, starts in DIFFERENT.items() if name.startswith(starts)), None)


def page(found):
    """Return the page as Markdown."""
    lines = ["# Names of PyTorch, compared", "",
             "Written by `python -m build_tools.compare_names`: the public names of PyTorch 2.13 and which of them are "
             "here.", "", "| module | names | here | absent |", "|---|---|---|---|"]
    for path, (names, missing) in found.items():
        absent = [name for name in missing if intended(name) is None]
        lines.append(f"| `{path}` | {len(names)} | {len(names) - len(missing)} | {len(absent)} |")
    lines += ["", "Left out by intention:", ""]
    for reason in DIFFERENT:
        gone = sorted({name for _, missing in found.values() for name in missing if intended(name) == reason})
        lines.append(f"- {reason}: {len(gone)} names")
    lines += ["", "Absent:", ""]
    for path, (_, missing) in found.items():
        absent = [f"`{name}`" for name in missing if intended(name) is None]
        if absent:
            lines.append(f"- `{path}`: {', '.join(absent)}")
    return "\n".join([*lines, ""])


def main():
    """Write the page, or only count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    found = compare()
    absent = sum(intended(name) is None for _, missing in found.values() for name in missing)
    print(f"{sum(len(names) for names, _ in found.values())} names, {absent} absent")
    if not parser.parse_args().check:
        PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
