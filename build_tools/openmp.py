"""Probe for OpenMP: compile, link and run a small program."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

# First, because it provides distutils.
# isort: off
import setuptools  # noqa: F401
from distutils.ccompiler import new_compiler
from distutils.errors import CompileError, LinkError
from distutils.sysconfig import customize_compiler
# isort: on

PROGRAM = """
#include <omp.h>
int main(void) {
    int members = 0;
    #pragma omp parallel num_threads(2) reduction(+:members)
    members += 1;
    return members >= 1 && omp_get_max_threads() >= 1 ? 0 : 1;
}
"""
FLAGS = ["-fopenmp"]
# Set for a cross build, as in sysconfig: the result cannot run on this machine.
CROSS_BUILD = "_PYTHON_HOST_PLATFORM" in os.environ


@dataclass(frozen=True)
class OpenMP:
    """Result of the probe; `reason` says why OpenMP is off."""

    enabled: bool
    reason: str

    @property
    def flags(self) -> list[str]:
        return FLAGS if self.enabled else []


def probe() -> OpenMP:
    """Try the flags; a compiler may accept them without a runtime library."""
    if os.environ.get("CYGRAD_OPENMP") == "0":
        return OpenMP(False, "switched off by CYGRAD_OPENMP=0")
    compiler = new_compiler()
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "probe.c")
        source.write_text(PROGRAM)
        try:
            # distutils puts the object below output_dir at the source's path: next to the source.
            objects = compiler.compile([str(source)], output_dir="/", extra_postargs=FLAGS)
            compiler.link_executable(objects, "probe", output_dir=directory, extra_postargs=FLAGS)
        except CompileError:
            return OpenMP(False, f"the compiler does not accept {' '.join(FLAGS)}")
        except LinkError:
            return OpenMP(False, "the OpenMP runtime library does not link")
        if CROSS_BUILD:
            return OpenMP(True, "the probe compiled and linked in a cross build")
        try:
            subprocess.run([Path(directory, "probe")], check=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            return OpenMP(False, f"the probe compiled but did not run: {error}")
    return OpenMP(True, "the probe compiled, linked and ran")
