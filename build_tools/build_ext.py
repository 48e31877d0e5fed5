"""The build_ext command: Cython, then the C compiler, then what lies next to the modules."""

import os
import sysconfig
from compileall import compile_dir
from pathlib import Path
from pprint import pformat

from Cython.Build import cythonize
from setuptools.command.build_ext import build_ext

from build_tools import openblas, stubs
from build_tools.configuration import Configuration
from build_tools.files import copy_if_changed, write_if_changed
from build_tools.modules import CORE, GENERATED_ROOT

FACTS = '"""Facts about this build, for `cygrad.show_config()`. Written by the build."""\n\nFACTS = '


def link_dir(configuration: Configuration) -> Path:
    """Where the linker finds our OpenBLAS, also before the package directory exists."""
    return base_dir(configuration) / "openblas"


def base_dir(configuration: Configuration) -> Path:
    """One directory per configuration: changing a flag rebuilds, changing it back does not."""
    return Path("build") / configuration.key


class BuildExt(build_ext):
    """build_ext with Cython run in parallel and late, so that metadata commands stay quick."""

    configuration: Configuration  # set by setup.py

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or self.configuration.jobs
        if self.inplace:
            # An editable install would build in a temporary directory, from scratch every time.
            base = base_dir(self.configuration)
            self.build_lib, self.build_temp = str(base / "lib"), str(base / "temp")

    def run(self):
        library = openblas.copy_to(link_dir(self.configuration))
        self.cythonize()
        super().run()
        package = Path("." if self.inplace else self.build_lib, CORE)
        copy_if_changed(library, package / library.name)
        write_if_changed(package / openblas.LICENSE, openblas.license_text())
        write_if_changed(package / "build_config.py", self.facts())
        self.prune(Path(self.build_lib, CORE))
        self.prune(package)
        self.write_stub(package.parent)
        if self.inplace:
            # As an installer would: where Python may not write bytecode, every import would compile again.
            compile_dir(package.parent, quiet=2, workers=self.parallel)

    def cythonize(self):
        """Translate what changed, counting changes in any .pxd that is cimported."""
        translated = cythonize(
            self.extensions,
            nthreads=self.parallel,
            build_dir=str(base_dir(self.configuration) / "cython"),
            compiler_directives=self.configuration.directives,
            include_path=[".", str(GENERATED_ROOT)],
            force=self.force,
        )
        by_name = {extension.name: extension for extension in translated}
        ours = self.configuration.compile_args
        for extension in self.extensions:  # kept, because setuptools left notes on them
            vars(extension).update(vars(by_name[extension.name]))
            # A module's own flags come last, where the compiler lets them win.
            own = [flag for flag in extension.extra_compile_args if flag not in ours]
            extension.extra_compile_args = ours + own

    def copy_extensions_to_source(self):
        """As setuptools does, but also when the copy there is newer: it may be another build's."""
        for extension in self.extensions:
            filename = self.get_ext_filename(extension.name)
            copy_if_changed(Path(self.build_lib, filename), Path(filename))

    def prune(self, package: Path):
        """Remove what a renamed or deleted module left behind: it would still be imported."""
        if os.environ.get("CYGRAD_MODULES"):
            return  # the others are only left out of this build
        wanted = {Path(self.get_ext_filename(extension.name)).name for extension in self.extensions}
        for module in package.rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
            if module.name not in wanted:
                module.unlink()

    def write_stub(self, package: Path):
        """For editors. Python with a sanitizer, or with a part of the modules, may not import the package."""
        partial = self.configuration.sanitizer or os.environ.get("CYGRAD_MODULES")
        if not partial and (package / "__init__.py").exists():
            stubs.write(package.parent)

    def facts(self) -> str:
        facts = {**self.configuration.facts(), "openblas": openblas.facts()}
        return FACTS + pformat(facts, sort_dicts=False, width=100) + "\n"
