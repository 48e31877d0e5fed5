"""The generator: what modules, stub and documentation it makes of a table, and which mistakes it finds."""

import ast
from pathlib import Path

import pytest

generate = pytest.importorskip("build_tools.generate", reason="build_tools is only in the source tree")
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
function = false
method = true

[reshape]
call = "reshape(Tensor self, int[] shape)"
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


def test_generated_module(ops, tmp_path):
    [path] = generate.generate(ops, tmp_path / "out")
    assert path == tmp_path / "out" / "functions_arithmetic.pyx"
    text = path.read_text()
    for line in [
        "def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None):",
        "    cdef PyObject *arguments[4]",
        "    arguments[3] = <PyObject *>dtype",
        "    return call(_sum, arguments, out)",
        "    return binary(_mul, input, other, out)",
        "    return call_inplace(_mul, arguments)",
        "    return unary(_conj, input, None)",
        'def leaky_relu(input, slope=float("inf")):',
        "def leaky_relu_(input, slope=float(\"inf\")):",
        "def reshape(input, *sizes, shape=None):",
        "def unreduce(grad, shape, dims, keepdim):",
        "    'arguments': (('self', 0, False, True, None, False,),),",
        "    'into': 'put_into',",
        "    'into': None,",
        "    'leaky_': leaky_relu_,",
    ]:
        assert line in text.splitlines()
    assert "'multiply': mul," in text
    assert "'multiply_': mul_," in text


def dictionary(text, name):
    """The keys of a dictionary in the text of a generated module."""
    body = text[text.index(f"{name} = "):].partition("= ")[2]
    return [key.value for key in ast.parse(body[:body.index("}") + 1], mode="eval").body.keys]


def test_functions_and_methods(ops, tmp_path):
    text = generate.generate(ops, tmp_path)[0].read_text()
    assert dictionary(text, "OPERATORS") == [
        "sum", "unreduce", "mul", "mul_scaled", "put", "conj", "leaky", "sort", "split", "view", "reshape", "cat"]
    assert dictionary(text, "INPLACE") == ["mul_", "mul_scaled_", "put_", "leaky_"]
    assert dictionary(text, "FUNCTIONS") == [
        "sum", "mul", "multiply", "conj", "leaky_relu", "sort", "split", "reshape", "cat", "concat"]
    assert dictionary(text, "METHODS") == [
        "sum", "mul", "mul_", "multiply", "multiply_", "put_", "conj", "leaky_relu", "leaky_relu_", "sort", "split",
        "view", "reshape"]


def test_generated_module_is_cython(ops, tmp_path):
    compiler = pytest.importorskip("Cython.Compiler.Main")
    [path] = generate.generate(ops, tmp_path)
    root = Path(generate.__file__).resolve().parents[1]
    result = compiler.compile_single(
        str(path), compiler.CompilationOptions(include_path=[str(root)], language_level=3,
                                               output_file=str(tmp_path / "module.c")),
        "cygrad._core.functions_arithmetic")
    assert result.num_errors == 0


def test_unchanged_modules_are_not_written_again(ops, tmp_path):
    [path] = generate.generate(ops, tmp_path)
    time = path.stat().st_mtime_ns
    generate.generate(ops, tmp_path)
    assert path.stat().st_mtime_ns == time


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
    assert "| [`mul`](functions/mul.md), `multiply` | `mul(Tensor\\|number self, " in text
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
    ('[a]\ncall = "a(Tensor self, int dim)"\ndim = "grad"', "of 'dim', which is int and no Tensor"),
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
    ('[a]\ncall = "a(Tensor self)"\nname = "is"', "not a name for a Python function"),
    ('[a]\ncall = "a(Tensor self)"\nresults = ["x"]\ndifferentiable = ["y"]', "names no result"),
    ('[a]\ncall = "a(Tensor self)"\nresults = ["x"]\nlist = true', "exclude each other"),
    ('[a]\ncall = "a(Tensor self)"\nkernel = "x"\nforward = "primitive"', "exclude each other"),
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
    ('[mul]\ncall = "mul(Tensor self)"', "the name 'mul' is taken by 'mul' in arithmetic.toml"),
    ('[a]\ncall = "a(Tensor self)"\nalias = ["mul_"]', "the name 'mul_' is taken by"),
    ("a = 1", "'a' stands outside of a row"),
    ("[a", "Expected"),
])
def test_mistakes_name_file_and_row(ops, tmp_path, row, message):
    (ops / "family.toml").write_text(row + "\n")
    with pytest.raises(generate.TableError, match=message) as info:
        generate.generate(ops, tmp_path)
    assert "family.toml" in str(info.value)
