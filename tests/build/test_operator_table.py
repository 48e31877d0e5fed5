"""Operator table: generated files, stub, documentation, and detected mistakes."""

import marshal
import math
import shutil
import subprocess
import sys

import pytest

operator_table = pytest.importorskip("build_tools.operator_table", reason="build_tools is only in the source tree")
from build_tools import table_documents  # noqa: E402

TABLE = '''
[sum]
call = "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)"
self = "unreduce(grad, self.shape, dim, keepdim)"
out = true
doc = """
Sum of the elements, with a \\\\ and a "quote"."""

[unreduce]
call = "unreduce(Tensor grad, int[] shape, int[]? dims, bool keepdim)"
function = false

[mul]
call = "mul(Tensor|number self, Tensor|number other)"
forward = "primitive"
self = "grad * conj(other)"
other = "grad * conj(self)"
inplace = true
out = true
alias = ["multiply"]
kink = "none | nowhere"

[mul_scaled]
call = "mul_scaled(Tensor|number self, Tensor|number other, *, number alpha)"
forward = "mul(self, mul(other, alpha))"
function = false
inplace = true
alias = ["multiply_scaled"]

[put]
call = "put(Tensor self, Tensor index)"
vmap = "leading"
kernel = "put_copy"
into = "put_into"
function = false
inplace = true
inplace_method = true

[conj]
call = "conj(Tensor self)"
forward = "primitive"
self = "conj(grad)"

[leaky]
call = "leaky(Tensor self, float slope=inf)"
forward = "mul(self, slope)"
name = "leaky_relu"
inplace = true

[sort]
call = "sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False)"
results = ["values", "indices"]
differentiable = ["values"]

[split]
call = "split(Tensor self, int[] split_size, int dim=0)"
list = true
view = true

[view]
call = "view(Tensor self, int[] size)"
vmap = "leading"
function = false
method = true

[reshape]
call = "reshape(Tensor self, int[] shape)"
vmap = "leading"
variadic = true
view = true

[cat]
call = "cat(Tensor[] tensors, int dim=0)"
alias = ["concat"]
'''


@pytest.fixture
def ops(tmp_path):
    directory = tmp_path / "ops"
    directory.mkdir()
    (directory / "arithmetic.toml").write_text(TABLE)
    return directory


@pytest.fixture
def rows(ops):
    rows, docs = marshal.loads(operator_table.compiled(ops))
    return {row["name"]: row for row in rows}, marshal.loads(docs)


def test_rows_say_what_operators_are_called_with(rows):
    sum_, leaky = rows[0]["sum"], rows[0]["leaky"]
    assert sum_["arguments"][1] == ("dim", 5, True, False, None, False)
    assert (leaky["public"], leaky["arguments"][1][4], leaky["inplace"]) == ("leaky_relu", math.inf, True)
    assert rows[0]["mul"]["alias"] == ("multiply",)
    assert rows[0]["reshape"]["variadic"]
    assert (rows[0]["put"]["kernel"], rows[0]["put"]["into"]) == ("put_copy", "put_into")


def test_rows_say_where_operators_are_found(rows):
    def names(key):
        return [name for name, row in rows[0].items() if row[key]]
    assert names("function") == ["sum", "mul", "conj", "leaky", "sort", "split", "reshape", "cat"]
    assert names("method") == ["sum", "mul", "conj", "leaky", "sort", "split", "view", "reshape"]
    assert names("inplace_method") == ["mul", "put", "leaky"]


def test_docstrings_are_apart_from_rows(rows):
    assert rows[1]["sum"] == 'Sum of the elements, with a \\ and a "quote".'
    assert rows[1]["conj"] == "Operator `conj(Tensor self)`."


@pytest.mark.parametrize(("name", "inplace", "signature"), [
    ("sum", False, "(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None)"),
    ("leaky", False, "(input, slope=inf)"),
    ("reshape", False, "(input, *sizes, shape=None)"),
    ("unreduce", False, "(grad, shape, dims, keepdim=None, *, keepdims=None)"),
    ("mul", False, "(input, other, *, out=None)"),
    ("mul", True, "(input, other)"),
    ("split", False, "(input, split_size, dim=0, *, axis=None)"),
])
def test_signatures_are_those_of_rows(rows, name, inplace, signature):
    row = rows[0][name]
    assert str(operator_table.table_module("signature").python_signature(row, inplace)) == signature


def test_equal_tables_are_equal_bytes(ops):
    assert operator_table.compiled(ops) == operator_table.compiled(ops)


def test_types(ops):
    hints, tuples = table_documents.types(ops)
    assert hints["multiply"] == {"input": "Tensor | _Number", "other": "Tensor | _Number", "out": "Tensor | None",
                                 "keepdims": "_bool | None", "return": "Tensor"}
    assert hints["reshape"]["sizes"] == "_int | Sequence[_int]"
    assert hints["sum"]["axis"] == hints["sum"]["dim"] == "_int | Sequence[_int] | None"
    assert (hints["split"]["dim"], hints["split"]["axis"]) == ("_int", "_int | None")
    assert hints["split"]["return"] == "list[Tensor]"
    assert hints["sort"]["return"] == "_sort_result"
    assert hints["mul_"]["return"] == "Tensor"
    assert any(text.startswith("class _sort_result(NamedTuple):\n    values: Tensor\n") for text in tuples)


def test_documentation(ops):
    text = table_documents.documentation(ops)
    assert "| [`mul`](reference/cygrad.mul.rst), `multiply` | `mul(Tensor\\|number self, " in text
    assert "none \\| nowhere |" in text
    assert "unreduce(" not in text


def test_kinks(ops):
    lines = table_documents.kinks(ops).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| `mul` |")
    assert lines[2].endswith("| none \\| nowhere |")


@pytest.mark.parametrize(("row", "message"), [
    ('[a]\ncal = "a(Tensor self)"', "a: the key 'call' is missing"),
    ('[a]\ncall = "a(Tensor self)"\nkernl = "b"', "'kernl' is neither a key nor an argument"),
    ('[a]\ncall = "a(Tensor self)"\nother = "grad"', "'other' is neither a key nor an argument"),
    ('[a]\ncall = "a(Tensor self, int dim)"\ndim = "grad"', "of 'dim', which is int, not a Tensor"),
    ('[a]\ncall = "a(Tensor self)"\nself = 1', "the key 'self' has a value of the wrong type"),
    ('[a]\ncall = "a(Tensor self)"\nout = "yes"', "the key 'out' has a value of the wrong type"),
    ('[a]\ncall = "b(Tensor self)"', "call is of another name"),
    ('[a]\ncall = "a Tensor self"', "call is not a signature"),
    ('[a]\ncall = "a(Tensr self)"', "unknown type .got 'Tensr'"),
    ('[a]\ncall = "a(Tensor)"', "not 'type name'"),
    ('[a]\ncall = "a(Tensor self, int dim=x)"', "not a Python literal"),
    ('[a]\ncall = "a(Tensor self, int self)"', "an argument twice"),
    ('[a]\ncall = "a(Tensor self, int dim=0, int other)"', "without default follows"),
    ('[a]\ncall = "a(Tensor self, int lambda)"', "keyword of Python"),
    ('[a]\ncall = "a(Tensor self)"\nname = "is"', "not a valid Python name"),
    ('[a]\ncall = "a(Tensor self)"\nresults = ["x"]\ndifferentiable = ["y"]', "names no result"),
    ('[a]\ncall = "a(Tensor self)"\nresults = ["x"]\nlist = true', "are mutually exclusive"),
    ('[a]\ncall = "a(Tensor self)"\nkernel = "x"\nforward = "primitive"', "are mutually exclusive"),
    ('[a]\ncall = "a(Tensor self)"\ngradient = false\nself = "grad"', "'gradient = false' with"),
    ('[a]\ncall = "a(int n)"\ninplace = true', "needs a Tensor as first argument"),
    ('[a]\ncall = "a(Tensor self)"\nvariadic = true', "needs int"),
    ('[a]\ncall = "a(Tensor self)"\ninto = 1', "the key 'into' has a value of the wrong type"),
    ('[a]\ncall = "a(Tensor self)"\ninto = "b"\nforward = "primitive"', "'into' needs an array kernel"),
    ('[a]\ncall = "a(int n)"\ninto = "b"', "'into' needs an array kernel and a Tensor"),
    ('[a]\ncall = "a(Tensor self)"\ninplace_method = true', "needs 'inplace = true'"),
    ('[a]\ncall = "a(Tensor self)"\nself = "grad * b(self)"', "unknown operator 'b'"),
    ('[a]\ncall = "a(Tensor self)"\nself = "grad *"', "invalid syntax"),
    ('[a]\ncall = "a(Tensor self)"\nforward = "b + 1"', "unknown name 'b'"),
    ('[a]\ncall = "a(Tensor self)"', "no rule for vmap follows from the row"),
    ('[a]\ncall = "a(Tensor self)"\nvmap = "loop"', "'vmap' is an unknown rule .got 'loop'"),
    ('[a]\ncall = "a(Tensor self)"\nper_sample = { self = "sum" }', "expected an argument with a formula"),
    ('[a]\ncall = "a(Tensor self)"\nself = "grad"\nper_sample = { self = "all" }', "got self = 'all'"),
    ('[a]\ncall = "a(Tensor self, int n)"\nnumpy = ["add"]', "the row takes tensors only"),
    ('[a]\ncall = "a(Tensor self)"\narray_api = "add"', "'array_api' needs 'numpy'"),
    ('[mul]\ncall = "mul(Tensor self)"', "the name 'mul' is taken by 'mul' in arithmetic.toml"),
    ('[a]\ncall = "a(Tensor self)"\nalias = ["mul_"]', "the name 'mul_' is taken by"),
    ("a = 1", "'a' stands outside of a row"),
    ("[a", "Expected"),
])
def test_mistakes_name_file_and_row(ops, row, message):
    (ops / "family.toml").write_text(row + "\n")
    with pytest.raises(operator_table.TableError, match=message) as info:
        operator_table.compiled(ops)
    assert "family.toml" in str(info.value)


# A row that no code or document mentions; NumPy's ufunc of this name has no counterpart here.
NEW = '''
[soft_abs]
call = "soft_abs(Tensor self)"
forward = "sqrt(square(self) + 1) - 1"
self = "grad * self / (result + 1)"
inplace = true
out = true
alias = ["smooth_abs"]
numpy = ["spacing"]
array_api = "soft_abs"
kink = "none, as it is smooth"
returns = "Of the same shape and type."
doc = """
The root of one plus the square of each element, less one.

Examples
--------
>>> cygrad.soft_abs(cygrad.tensor([0.0]))
tensor([0.])
"""
'''
USES = """
import inspect, pathlib, pickle, sys

read = pathlib.Path.read_bytes
pathlib.Path.read_bytes = lambda path: read(pathlib.Path(sys.argv[1]) if path.name == "rows.marshal" else path)

import numpy as np

import cygrad
from cygrad import array_api
from cygrad.func import grad, jvp, vmap

values = np.array([[-2.0, 0.0, 1.5], [0.5, 3.0, -1.0]])
expected, slope = np.sqrt(values ** 2 + 1) - 1, values / np.sqrt(values ** 2 + 1)
x = cygrad.tensor(values)


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


for function in (cygrad.soft_abs, cygrad.smooth_abs, cygrad.Tensor.soft_abs, vmap(cygrad.soft_abs), np.spacing,
                 array_api.soft_abs, pickle.loads(pickle.dumps(cygrad.soft_abs)), cygrad.compile(cygrad.soft_abs)):
    same(function(x), expected)
    same(function(x.clone().requires_grad_()), expected)
same(cygrad.soft_abs_(x.clone()), expected)
same(x.clone().soft_abs_(), expected)
same(cygrad.soft_abs(x, out=cygrad.empty(2, 3, dtype=x.dtype)), expected)
same(cygrad.soft_abs(input=x), expected)
same(jvp(cygrad.soft_abs, (x,), (cygrad.ones_like(x),))[1], slope)
same(vmap(vmap(grad(cygrad.soft_abs)))(x), slope)
same(vmap(vmap(grad(grad(cygrad.soft_abs))))(x), (values ** 2 + 1) ** -1.5)
leaf = x.clone().requires_grad_()
(leaf * 1).soft_abs_().sum().backward()
same(leaf.grad, slope)
assert np.spacing(np.float32(1)) and array_api.soft_abs(array_api.asarray([1.0])).dtype == cygrad.float32
assert "soft_abs" in array_api.__all__ and {"soft_abs", "smooth_abs"} <= set(dir(cygrad))
assert cygrad.soft_abs.__doc__.startswith("The root of one plus the square of each element, less one.")
assert "Tensor that the result is written to." in cygrad.soft_abs.__doc__
assert str(inspect.signature(cygrad.soft_abs)) == "(input, *, out=None)"
"""


def test_a_row_is_all_that_a_new_operator_needs(tmp_path):
    directory = tmp_path / "ops"
    shutil.copytree(operator_table.CORE / "table" / "ops", directory)
    with open(directory / "exponential.toml", "a") as file:
        file.write(NEW)
    table = tmp_path / "table"
    table.write_bytes(operator_table.compiled(directory))
    subprocess.run([sys.executable, "-c", USES, str(table)], check=True, cwd=operator_table.CORE.parents[1])
    hints, _ = table_documents.types(directory)
    assert hints["soft_abs"]["return"] == hints["soft_abs_"]["return"] == "Tensor"
    assert "| [`soft_abs`](reference/cygrad.soft_abs.rst), `smooth_abs` |" in table_documents.documentation(directory)
    assert "| `soft_abs` |" in table_documents.kinks(directory)
