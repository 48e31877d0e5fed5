"""Stubs of the public modules below `cygrad`, such as `nn` and `optim`.

The build writes them from the package just built; types come from docstrings and from bool defaults, else `Any`.
"""

import inspect
import re

from build_tools.stubs import HEADER, function_text, returned

MODULES = ("distributions", "func", "linalg", "nn", "nn.functional", "nn.init", "nn.utils", "optim",
           "optim.lr_scheduler", "special", "utils.data")
IMPORTS = """from typing import Generic

from typing_extensions import Self

from cygrad import Tensor, dtype as _dtype

_T = TypeVar("_T", covariant=True)
"""
DOCUMENTED = {"int": "_int", "bool": "_bool", "float": "_float", "str": "str", "Tensor": "Tensor", "callable": "Any"}
# Types of methods of Module, Optimizer and containers that docstrings do not tell.
MEMBERS = {
    **{name: {"return": "Self"} for name in ("float", "double", "half", "bfloat16", "type", "to", "to_empty", "cpu",
                                             "cuda", "apply", "eval", "share_memory", "append", "extend")},
    "train": {"mode": "_bool", "return": "Self"}, "requires_grad_": {"requires_grad": "_bool", "return": "Self"},
    "parameters": {"recurse": "_bool", "return": "Iterator[Parameter]"},
    "named_parameters": {"prefix": "str", "return": "Iterator[tuple[str, Parameter]]"},
    "buffers": {"recurse": "_bool", "return": "Iterator[Tensor]"},
    "named_buffers": {"prefix": "str", "return": "Iterator[tuple[str, Tensor]]"},
    "modules": {"return": "Iterator[Module]"}, "named_modules": {"return": "Iterator[tuple[str, Module]]"},
    "children": {"return": "Iterator[Module]"}, "named_children": {"return": "Iterator[tuple[str, Module]]"},
    "zero_grad": {"set_to_none": "_bool", "return": "None"}, "state_dict": {"return": "dict[str, Any]"},
    "register_buffer": {"name": "str", "return": "None"}, "register_parameter": {"name": "str", "return": "None"},
    "register_module": {"name": "str", "return": "None"}, "add_module": {"name": "str", "return": "None"},
    "extra_repr": {"return": "str"}, "get_last_lr": {"return": "list[_float]"},
    "add_param_group": {"return": "None"}, "reset_parameters": {"return": "None"},
    "get_submodule": {"return": "Module"},
    **{name: {"return": "Tensor"} for name in ("cdf", "entropy", "icdf", "log_prob", "mean", "rsample", "sample",
                                               "stddev", "variance")},
    "__len__": {"return": "_int"}, "__contains__": {"return": "_bool"}, "__getitem__": {}, "__call__": {},
    "__setitem__": {"return": "None"}, "__delitem__": {"return": "None"},
}
ITERATED = {"ModuleList": "Module", "Sequential": "Module", "ModuleDict": "str", "ParameterDict": "str"}
# Generic classes -> their base.
GENERIC = {
    **dict.fromkeys(("Dataset", "Sampler", "DataLoader"), "Generic[_T]"), "IterableDataset": "Dataset[_T]",
    **dict.fromkeys(("Subset", "ConcatDataset"), "Dataset[_T]"), "StackDataset": "Dataset[Any]",
    "ChainDataset": "IterableDataset[Any]", "TensorDataset": "Dataset[tuple[Tensor, ...]]",
    **dict.fromkeys(("RandomSampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"),
                    "Sampler[_int]"), "BatchSampler": "Sampler[list[_int]]",
}
PARAMETER = """class Parameter(Tensor):
    def __init__(self, data: Any = ..., requires_grad: _bool = True) -> None: ...
"""


def stub_text(module) -> str:
    """Return the stub of one module."""
    imports, texts = set(), []
    public = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    classes = {value: name for name, value in reversed(public.items()) if isinstance(value, type)}
    for name, value in public.items():
        if inspect.ismodule(value):
            if value.__name__ == f"{module.__name__}.{name}":
                imports.add(f"from {module.__name__} import {name} as {name}")
        elif not getattr(value, "__module__", "").startswith("cygrad"):
            continue
        elif isinstance(value, type):
            texts.append(class_text(name, value, classes) if classes[value] == name else f"{name} = {classes[value]}\n")
        elif callable(value):
            texts.append(function_text(name, value, documented(value)))
    body = "\n".join(texts)
    if module.__name__ != "cygrad.nn":
        imports |= {f"from cygrad.nn import {name} as {name}" for name in ("Module", "Parameter")
                    if re.search(rf"\b{name}\b", body)}
    return HEADER + IMPORTS + "\n".join([*sorted(imports), "", body]) + "\n"


def documented(thing) -> dict[str, str]:
    """Return the types of parameters and result that a docstring gives in one word."""
    doc = inspect.getdoc(thing) or ""
    try:
        options = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        options = ()
    hints = {option.name: "_bool" for option in options if isinstance(option.default, bool)}
    for names, kind in re.findall(r"^(\w+(?:, \w+)*) : ([^\n]+)$", doc.partition("Returns\n---")[0], re.MULTILINE):
        known = DOCUMENTED.get(kind.removesuffix(", optional").removesuffix(" or None"))
        if known:
            hints |= dict.fromkeys(names.split(", "), known + (" | None" if " or None" in kind else ""))
    if returned(thing) != "Any":
        hints["return"] = returned(thing)
    return hints


class _Constructor:
    """The constructor of a class that has a signature only, with `self`."""

    def __init__(self, cls: type):
        options = inspect.signature(cls).parameters.values()
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.__signature__ = inspect.Signature([own, *options])

    def __call__(self):
        """Be callable, as `inspect.signature` requires."""


def class_text(name: str, cls: type, classes: dict[type, str]) -> str:
    """Return the stub of a class: its first public base, and members that the base lacks."""
    if name == "Parameter":
        return PARAMETER
    bases = [base for base in cls.__mro__[1:] if base in classes][:1]
    inherited = set(bases[0].__mro__) if bases else {object}
    members = {}
    for part in reversed([part for part in cls.__mro__ if part not in inherited]):
        members |= vars(part)
    lines = []
    if "__signature__" in members and "__init__" not in vars(cls):
        lines.append(function_text("__init__", _Constructor(cls), documented(cls) | {"return": "None"}, True))
    elif "__init__" in members and not issubclass(cls, tuple):
        hints = documented(cls) | {"return": "None"}
        if GENERIC.get(name, "").endswith("[_T]"):
            hints["dataset"] = "Dataset[_T] | Sequence[_T]"
        lines.append(function_text("__init__", members["__init__"], hints, True))
    for member, value in members.items():
        if member == "__iter__":
            found = "_T" if name == "IterableDataset" else ITERATED.get(name, "Any")
            lines.append(f"def __iter__(self) -> Iterator[{found}]: ...")
        elif isinstance(value, property) and not member.startswith("_"):
            lines.append(f"@property\n    def {member}(self) -> {MEMBERS.get(member, {}).get('return', 'Any')}: ...")
        elif inspect.isfunction(value) and (member in MEMBERS or not member.startswith("_")):
            hints = MEMBERS.get(member) or documented(value)
            if member == "forward":
                hints = {"return": "Any"}
            if member == "__getitem__" and GENERIC.get(name, "").endswith("[_T]"):
                hints = {"return": "_T"}
            lines.append(function_text(member, value, hints, True))
    attributes = (inspect.getdoc(cls) or "").partition("Attributes\n---")[2].partition("\n---")[0]
    for names in re.findall(r"^(\w+(?:, \w+)*) : Parameter(?![^\n]*None)", attributes, re.MULTILINE):
        lines += [f"{attribute}: Parameter" for attribute in names.split(", ")]
    constraints = getattr(cls, "arg_constraints", {})      # of a distribution
    lines += [f"{parameter}: Tensor" for parameter in (constraints if isinstance(constraints, dict) else ())
              if parameter not in members]
    if name == "Distribution":
        lines += ["arg_constraints: Any", "has_enumerate_support: Any", "has_rsample: Any", "support: Any"]
    if name == "Module":
        lines += ["training: _bool", "def __getattr__(self, name: str) -> Any: ...",
                  "def __dir__(self) -> list[str]: ..."]
    if issubclass(cls, tuple):
        lines.append("def __new__(cls, *args: Any, **options: Any) -> Self: ...")
    base = GENERIC.get(name) or (classes[bases[0]] if bases else "tuple[Any, ...]" if issubclass(cls, tuple) else "")
    base = f"({base})" if base else ""
    return f"class {name}{base}:\n" + "".join(f"    {line}\n" for line in lines or ["..."])
