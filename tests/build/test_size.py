"""Size of the package on disk, and the trimmed OpenBLAS."""

import ctypes
import subprocess
import sysconfig
import zlib
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from cygrad.config import CORE, show_config

unused_code = pytest.importorskip("build_tools.unused_code", reason="build_tools is only in the source tree")
openblas = pytest.importorskip("build_tools.openblas")

PROGRAM = """
#define OUTSIDE __attribute__((visibility("default")))
#define ALONE __attribute__((noinline, noclone))
static ALONE int twice(int x) { __asm__(""); return 2 * x; }
static ALONE int squared(int x) { __asm__(""); return x * x; }
static ALONE int never(int x) { __asm__(""); return x + 3; }
int (*volatile table[])(int) = {squared};
OUTSIDE ALONE int inner(int x) { __asm__(""); return twice(x) + 1; }
OUTSIDE int outer(int x) { return inner(x) + table[0](x); }
OUTSIDE int unused(int x) { return never(x); }
"""


FILLED = '__asm__(".text; .fill 300000, 1, 0xcc");'


def compiled(directory: Path, program=PROGRAM) -> bytes:
    (directory / "a.c").write_text(program)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-fno-toplevel-reorder", "-o", "a.so", "a.c"],
                   cwd=directory, check=True)
    return (directory / "a.so").read_bytes()


def code(data: bytes, name: str) -> bytes:
    """Return the code of a function by its name in the symbol table."""
    library = unused_code.Library(data)
    symbols = library.table(".symtab", unused_code.SYMBOL)
    symbol = symbols[library.names(symbols, ".strtab").index(name)]
    return library.code(symbol["value"], symbol["size"])


def test_only_functions_out_of_reach_are_filled(tmp_path):
    whole = compiled(tmp_path)
    trimmed = unused_code.filled(whole, {"outer"})
    x86 = unused_code.Library(whole).machine == unused_code.X86_64
    for name in ("outer", "inner", "twice", "squared"):         # called, called by the PLT, called, in a table
        assert code(trimmed, name) == code(whole, name)
    for name in ("unused", "never"):
        assert (set(code(trimmed, name)) == set(unused_code.FILL)) == x86
    (tmp_path / "b.so").write_bytes(trimmed)
    assert ctypes.CDLL(str(tmp_path / "b.so")).outer(5) == 36


def test_all_functions_are_kept_where_the_symbols_are_gone(tmp_path):
    compiled(tmp_path)
    subprocess.run(["strip", "a.so"], cwd=tmp_path, check=True)
    stripped = (tmp_path / "a.so").read_bytes()
    assert unused_code.filled(stripped, {"outer"}) == stripped


def test_filled_pages_leave_the_file_and_the_rest_runs(tmp_path):
    compiled(tmp_path, FILLED + PROGRAM + FILLED)
    subprocess.run(["strip", "a.so"], cwd=tmp_path, check=True)
    stripped = (tmp_path / "a.so").read_bytes()
    trimmed = unused_code.cut(stripped)
    x86 = unused_code.Library(stripped).machine == unused_code.X86_64
    assert (len(stripped) - len(trimmed) > 550_000) == x86
    (tmp_path / "b.so").write_bytes(trimmed)
    subprocess.run(["strip", "-o", "c.so", "b.so"], cwd=tmp_path, check=True)
    for name in ("b.so", "c.so"):
        library = ctypes.CDLL(str(tmp_path / name))
        assert (library.outer(5), library.unused(4)) == (36, 7)


def test_openblas_has_what_the_package_calls():
    users = [Path(path).read_bytes() for path in CORE.glob("compiled*.so")]
    called = set().union(*(unused_code.Library(user).imported() for user in users))
    library = unused_code.Library((CORE / openblas.LIBRARY).read_bytes())
    symbols = library.table(".dynsym", unused_code.SYMBOL)
    first = {name: library.code(value, 4)
             for name, value in zip(library.names(symbols, ".dynstr"), symbols["value"].tolist(), strict=True)}
    ours = {name for name in called if name.startswith(openblas.SYMBOL_PREFIX)}
    assert len(ours) > 50
    assert all(first[name] != unused_code.FILL * 4 for name in ours | {"scipy_openblas_get_config"})
    if library.machine == unused_code.X86_64:
        assert first["scipy_LAPACKE_dgesvj"] in (b"", unused_code.FILL * 4)


@pytest.mark.skipif(show_config("dicts")["debug"], reason="has debug information")
def test_package_takes_at_most_12_MB_as_a_wheel_and_42_MB_installed():
    """Files compressed as in a wheel, and with bytecode; libraries built in place have symbol tables in addition."""
    package = CORE.parent
    files = [path for path in package.rglob("*") if path.suffix in (".so", ".py", ".pyi", ".marshal", ".txt")
             and "testing" not in f"{path.parent.name} {path.name}"]
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in files) < 12_000_000
    files += [Path(cache_from_source(path)) for path in files if path.suffix == ".py"]
    assert sum(path.stat().st_size for path in files if path.exists()) < 42_000_000
