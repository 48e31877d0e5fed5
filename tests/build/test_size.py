"""Size of the package on disk, and the trimmed OpenBLAS."""

import ctypes
import subprocess
import sysconfig
import zlib
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


def compiled(directory: Path) -> bytes:
    (directory / "a.c").write_text(PROGRAM)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", "a.so", "a.c"], cwd=directory, check=True)
    return (directory / "a.so").read_bytes()


def code(data: bytes, name: str) -> bytes:
    """Return the code of a function by its name in the symbol table."""
    library = unused_code.Library(data)
    begin, offset, _ = library.sections[".text"]
    symbols = library.table(".symtab", unused_code.SYMBOL)
    symbol = symbols[library.names(symbols, ".strtab").index(name)]
    return data[offset + symbol["value"] - begin:][:symbol["size"]]


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


def test_openblas_has_what_the_package_calls():
    users = [Path(path).read_bytes() for path in CORE.glob("compiled*.so")]
    called = set().union(*(unused_code.Library(user).imported() for user in users))
    library = unused_code.Library((CORE / openblas.LIBRARY).read_bytes())
    begin, offset, _ = library.sections[".text"]
    symbols = library.table(".dynsym", unused_code.SYMBOL)
    first = {name: library.data[offset + value - begin:][:4]
             for name, value in zip(library.names(symbols, ".dynstr"), symbols["value"].tolist(), strict=True)}
    ours = {name for name in called if name.startswith(openblas.SYMBOL_PREFIX)}
    assert len(ours) > 50
    assert all(first[name] != unused_code.FILL * 4 for name in ours | {"scipy_openblas_get_config"})
    if library.machine == unused_code.X86_64:
        assert first["scipy_LAPACKE_dgesvj"] == unused_code.FILL * 4


@pytest.mark.skipif(show_config("dicts")["debug"], reason="has debug information")
def test_wheel_takes_at_most_12_MB():
    """Files of the package, compressed as in a wheel; libraries built in place have symbol tables in addition."""
    package = CORE.parent
    files = [path for path in package.rglob("*") if path.suffix in (".so", ".py", ".pyi", ".marshal", ".txt")
             and "testing" not in f"{path.parent.name} {path.name}"]
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in files) < 12_000_000
