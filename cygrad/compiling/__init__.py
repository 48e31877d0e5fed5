"""Compiling functions: ``cygrad.compile`` traces a function once and then executes it without Python."""

from cygrad._core import public_dir as _public_dir
from cygrad.compiling.function import Compiled, CompiledModule, CompileError, compile
from cygrad.compiling.report import Explanation, draw, explain

__all__ = ["CompileError", "Compiled", "CompiledModule", "Explanation", "compile", "draw", "explain"]

__dir__ = _public_dir(__name__)
