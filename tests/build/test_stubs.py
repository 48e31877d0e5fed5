"""The generated type stub is valid Python and lists all public names."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import cygrad

stubs = pytest.importorskip("build_tools.stubs", reason="build_tools is only in the source tree")
from build_tools import module_stubs, table_documents  # noqa: E402

OPERATOR_TABLE = Path(__file__).resolve().parents[2] / "cygrad" / "_core" / "table" / "ops"


@pytest.fixture(scope="module")
def tree():
    # Modules that the generator loads on its way become attributes of the package: it is to find them there.
    for name in ("compatibility", "numpy_protocols"):
        importlib.import_module(f"cygrad.{name}")
    return ast.parse(stubs.stub_text(cygrad, *table_documents.types(OPERATOR_TABLE)))


def names(body):
    """Return the definitions in a module or class of a stub."""
    found = set()
    for item in body:
        if isinstance(item, ast.FunctionDef | ast.ClassDef):
            found.add(item.name)
        elif isinstance(item, ast.AnnAssign):
            found.add(item.target.id)
        elif isinstance(item, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in item.names}
    return found


def function(body, name):
    return next(item for item in body if isinstance(item, ast.FunctionDef) and item.name == name)


def tensor(tree):
    return next(item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == "Tensor").body


def test_stub_names_every_public_name(tree):
    # PyTorch names that are created on first access are in no stub.
    public = {name for name, value in vars(cygrad).items() if name in dir(cygrad)
              and not (inspect.ismodule(value) and value.__name__ != f"cygrad.{name}")
              and not str(getattr(value, "__module__", "")).startswith("cygrad.compatibility")}
    assert not public - names(tree.body)


def test_stub_names_every_member_of_tensor(tree):
    members = {name for name in vars(cygrad.Tensor) if not name.startswith("_")}
    assert not members - names(tensor(tree))


def test_nothing_is_defined_twice(tree):
    for body in (tree.body, tensor(tree)):
        functions = [item.name for item in body if isinstance(item, ast.FunctionDef) and not item.decorator_list]
        assert len(functions) == len(set(functions))


def test_operators_have_the_types_of_their_row(tree):
    assert ast.unparse(function(tree.body, "cumsum").args).startswith("input: Tensor, dim: _int | None=None")
    assert ast.unparse(function(tensor(tree), "cumsum").args).startswith("input, dim: _int | None=None")
    assert ast.unparse(function(tree.body, "sort").returns) == "_sort_result"


def test_short_names_of_dtypes_do_not_hide_types(tree):
    """In this namespace `int` is a dtype, and in Tensor a method: annotations must not mean those."""
    for item in ast.walk(tree):
        if isinstance(item, ast.arg | ast.FunctionDef):
            annotation = item.annotation if isinstance(item, ast.arg) else item.returns
            inside = {name.id for name in ast.walk(annotation) if isinstance(name, ast.Name)} if annotation else set()
            assert not inside & {"bool", "int", "float", "complex"}, item


def test_build_writes_it_for_a_package_to_be_installed(tree, tmp_path):
    """The function that the build calls, with a package that has no rows of operators."""
    package = copytree(Path(cygrad.__file__).parent, tmp_path / "cygrad", ignore=ignore_patterns("ops", "*.pyi"))
    stubs.write(tmp_path)
    written = names(ast.parse((package / stubs.STUB).read_text()).body)
    # Names that other tests have accessed stay in the namespace: compare the initial ones.
    first = subprocess.run([sys.executable, "-c", "import cygrad; print(*vars(cygrad))"], cwd=package.parent,
                           check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert len(first) > 500
    assert names(tree.body) & set(first) <= written
    assert not written - names(tree.body)


def test_package_that_does_not_import_keeps_no_old_stub(tmp_path, capfd):
    (tmp_path / "cygrad").mkdir()
    (tmp_path / "cygrad" / stubs.STUB).write_text("from math import *\n")
    (tmp_path / "cygrad" / "__init__.py").write_text("raise ImportError('half built')\n")
    stubs.write(tmp_path)
    assert "half built" in capfd.readouterr().err
    assert not (tmp_path / "cygrad" / stubs.STUB).exists()


@pytest.mark.parametrize("name", module_stubs.MODULES)
def test_stubs_of_modules(name):
    module = importlib.import_module(f"cygrad.{name}")
    body = ast.parse(module_stubs.stub_text(module)).body
    public = {key for key in dir(module) if not key.startswith("_")
              and getattr(getattr(module, key), "__module__", "").startswith("cygrad")}
    defined = names(body) | {item.targets[0].id for item in body if isinstance(item, ast.Assign)}
    assert public and not public - defined


def test_stub_of_a_module_class():
    text = module_stubs.stub_text(importlib.import_module("cygrad.nn"))
    assert ("class Linear(Module):\n"
            "    def __init__(self, in_features: _int, out_features: _int, bias: _bool = True,") in text
    assert "    def train(self, mode: _bool = True) -> Self: ..." in text
    assert "class Parameter(Tensor):" in text


def test_completion_shows_public_names_only():
    assert {"zeros", "nn", "numpy", "Tensor"} <= set(dir(cygrad))
    assert not {"composite", "operators", "type_slots", "LAYOUTS"} & set(dir(cygrad))
    for module, shown, hidden in ((cygrad.nn, "Linear functional init", "activation Module_ container"),
                                  (cygrad.optim, "Adam lr_scheduler", "adam optimizer"),
                                  (cygrad.func, "grad vmap", "inputs backward"),
                                  (cygrad.nn.init, "zeros_ xavier_uniform_", "math cygrad __doc__ _older"),
                                  (cygrad.autograd.graph, "Node to_svg", "__file__ Tensor"),
                                  (cygrad.nn, "utils parallel", "attributes registry stateful"),
                                  (cygrad.utils.data, "DataLoader random_split", "dataset workers")):
        assert set(shown.split()) <= set(dir(module)) and not set(hidden.split()) & set(dir(module))
    for module in (cygrad, cygrad.nn, cygrad.linalg, cygrad.autograd, cygrad.distributions):
        assert not [name for name in dir(module) if name.startswith("_") or not hasattr(module, name)]


def test_signatures_name_parameters():
    """Not ``*arguments, **named``, but for what takes any: containers and functions of the user's own."""
    found = {name: str(inspect.signature(getattr(module, name)))
             for module in (cygrad.distributions, cygrad.nn, cygrad.optim, cygrad.func, cygrad.linalg)
             for name in dir(module) if callable(getattr(module, name)) and name != "LinAlgError"}
    assert {name for name, text in found.items() if "*arg" in text and "**" in text} == {"Identity"}
    assert found["Normal"] == "(loc, scale, validate_args=None)" and found["Chi2"] == "(df, validate_args=None)"
    assert found["Tanh"] == "()" and found["ReLU"] == "(inplace=False)"
    assert str(inspect.signature(cygrad.clamp_)) == "(input, min=None, max=None)"
