"""Configuration of the build: compiler flags and Cython directives, from the environment.

CYGRAD_DEBUG=1                      bounds checks, assertions about locks, -O1 -g, -DCYGRAD_DEBUG
CYGRAD_SANITIZE=address|undefined|thread
CYGRAD_OPENMP=0                     without OpenMP, whose limits are the default: one thread until told otherwise
CYGRAD_JOBS=4                       parallel compilations (default: the cores we may use)
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

from build_tools import openmp

# All directives; modules have only exceptions for single functions.
DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "boundscheck": True,  # of lists: user code may shorten one while it is read
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "clinic",  # becomes __text_signature__, leaves docstrings alone
    "auto_pickle": False,  # an unpickled object would lack its C memory
    "freethreading_compatible": True,
    "emit_code_comments": False,  # a fifth of the lines of the C code
    "profile": False,
}
DEBUG_DIRECTIVES = {"boundscheck": True, "wraparound": True, "initializedcheck": True}

# Never -ffast-math (nan and inf carry meaning) and never -march=native (the wheel stays generic).
# Without contraction, fused loops and separate operations are bit-identical on every CPU.
COMMON_FLAGS = [
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-Wno-unused-function",
    "-Wno-sign-compare",
    "-Wno-psabi",       # vectors are passed between inlined functions only, so their calling convention does not matter
]
RELEASE_FLAGS = ["-O3", "-g0"]
# Cython includes <stdatomic.h>, whose names hide ours (atomic.pxd), and Clang's refuse plain integers.
CLANG_FLAGS = ["-D__STDC_NO_ATOMICS__"]
# GCC's flags for C++ and for layers of _core, after the others.
TUNED_FLAGS = {
    # Loops have a variant where a constant step or argument pays; GCC's own take a twelfth of its time.
    "c++": ("-fno-version-loops-for-strides", "-fno-ipa-cp-clone", "-fno-loop-unroll-and-jam"),
    # Layers of every call: inlining by -O3 makes long functions save more registers, which costs 1 % of the
    # instructions of operations on small tensors.
    **dict.fromkeys(("memory", "arrays", "graph", "dispatch"), ("--param=max-inline-insns-auto=15",)),
    # Layers without loops over elements, where inlining gains nothing.
    **dict.fromkeys(("creation", "custom", "optimizers", "table"), ("-O2",)),
}
# The header with lock assertions comes first, so that it checks how Cython acquires the GIL.
DEBUG_FLAGS = ["-O1", "-g", "-UNDEBUG", "-DCYGRAD_DEBUG", "-include", "cygrad/_core/memory/lock_checks.h"]
SANITIZERS = ("address", "undefined", "thread")

MACROS = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
]


@dataclass(frozen=True)
class Configuration:
    """All settings of the compilers."""

    debug: bool
    sanitizer: str | None
    openmp: openmp.OpenMP
    jobs: int

    @classmethod
    def from_environment(cls) -> "Configuration":
        sanitizer = os.environ.get("CYGRAD_SANITIZE") or None
        if sanitizer not in (None, *SANITIZERS):
            raise SystemExit(f"CYGRAD_SANITIZE: unknown sanitizer (got {sanitizer!r}, "
                             f"expected one of {', '.join(SANITIZERS)}).")
        return cls(
            debug=os.environ.get("CYGRAD_DEBUG", "0") not in ("", "0"),
            sanitizer=sanitizer,
            openmp=openmp.probe(),
            jobs=int(os.environ.get("CYGRAD_JOBS") or _usable_cores()),
        )

    @property
    def directives(self) -> dict:
        return {**DIRECTIVES, **DEBUG_DIRECTIVES} if self.debug else DIRECTIVES

    @property
    def compile_args(self) -> list[str]:
        level = DEBUG_FLAGS if self.debug else RELEASE_FLAGS
        clang = CLANG_FLAGS if "clang" in compiler_version() else []
        return [*level, *COMMON_FLAGS, *clang, *self.openmp.flags, *self._sanitizer_compile_args]

    def compile_args_of(self, source: Path) -> list[str]:
        """Return the arguments for a file of _core."""
        language = ["-std=c++17"] if source.suffix == ".cpp" else []
        if self.debug or "clang" in compiler_version():
            return self.compile_args + language
        return [*self.compile_args, *language, *TUNED_FLAGS.get("c++" if language else source.parts[2], ())]

    @property
    def link_args(self) -> list[str]:
        sanitize = [f"-fsanitize={self.sanitizer}"] if self.sanitizer else []
        return [*self.openmp.flags, *sanitize]

    @property
    def _sanitizer_compile_args(self) -> list[str]:
        if self.sanitizer is None:
            return []
        return ["-g", "-fno-omit-frame-pointer", f"-fsanitize={self.sanitizer}"]

    @cached_property
    def key(self) -> str:
        """Return a directory name that differs for different configurations."""
        words = ["debug" if self.debug else "release", *filter(None, [self.sanitizer])]
        return "-".join([*words, _hash(self.facts())])

    @cached_property
    def translation_key(self) -> str:
        """Return a hash of what the C code depends on besides the sources."""
        return _hash([version("Cython"), self.directives])

    def facts(self) -> dict:
        """Return the configuration as plain values, for the package and for the key."""
        return {
            "python": sys.implementation.cache_tag + " " + sysconfig.get_platform(),
            "cython": version("Cython"),
            "numpy": version("numpy"),
            "compiler": compiler_version(),
            "compiler_environment": {
                name: os.environ[name]
                for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
                if name in os.environ
            },
            "compile_args": self.compile_args,
            "tuned_args": TUNED_FLAGS,
            "link_args": self.link_args,
            "directives": self.directives,
            "openmp": {"enabled": self.openmp.enabled, "reason": self.openmp.reason},
            "debug": self.debug,
            "sanitizer": self.sanitizer,
        }


@cache
def compiler_version() -> str:
    """Return the first line of `cc --version`."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"{command[0]} on {platform.system()}"
    return answer.stdout.partition("\n")[0]


def _hash(value) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:8]


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
