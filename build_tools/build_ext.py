"""The build_ext command: run Cython and the C compiler, and copy the files next to the modules."""

import fcntl
import gc
import os
import sysconfig
import time
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from pprint import pformat
from tempfile import TemporaryDirectory

from Cython.Build import cythonize
from Cython.Build.Dependencies import DependencyTree
from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

from build_tools import openblas, operator_table, stubs
from build_tools.configuration import Configuration
from build_tools.files import copy_if_changed, update, write_if_changed
from build_tools.modules import CORE, OPERATOR_TABLE, Library, headers, registers_kernels
from build_tools.openmp import CROSS_BUILD

FACTS = '''"""What the libraries hold, and facts about this build for `cygrad.show_config()`. Written by the build."""

LIBRARIES = {libraries}

# Modules with array kernels; those outside of the package `kernels` use other kernels, so they come last.
KERNELS = {kernels}

FACTS = {facts}
'''

# Cython 3.3 releases the item of a list comprehension twice when the list cannot grow.
LIST_APPEND = ("int result = PyList_Append(list, x);\n    Py_DECREF(x);",
               "int result = PyList_Append(list, x);\n    if (likely(!result)) Py_DECREF(x);")

find_pxd = DependencyTree.find_pxd


def find_own_pxd(tree: DependencyTree, name: str, file: str | None = None) -> str | None:
    """Find a .pxd. Cython searches all of `sys.path` for each name that is cimported, which took three seconds."""
    if not name.startswith("cygrad."):
        return find_pxd(tree, name, file if name.startswith(".") else None)
    path = name.replace(".", "/")
    return next(filter(os.path.exists, (f"{path}.pxd", f"{path}/__init__.pxd")), None)


DependencyTree.find_pxd = find_own_pxd


def link_dir(configuration: Configuration) -> Path:
    """Return the directory in which the linker finds our OpenBLAS."""
    return base_dir(configuration) / "openblas"


def base_dir(configuration: Configuration) -> Path:
    """Return the build directory, one per configuration: changing a flag back does not rebuild."""
    return Path("build") / configuration.key


def translation_dir(configuration: Configuration) -> Path:
    """Return the directory of the C code, which builds with other compilers or flags share."""
    return Path("build", f"cython-{configuration.translation_key}")


class BuildExt(build_ext):
    """build_ext that runs Cython late and in parallel, so that metadata commands are fast."""

    configuration: Configuration  # set by setup.py

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or self.configuration.jobs
        if not self.inplace and not os.environ.get("CYGRAD_TESTING"):
            self.extensions = [library for library in self.extensions if not library.name.endswith("_testing")]
        symbols = self.inplace or self.configuration.debug or self.configuration.sanitizer
        self.link_args = [] if symbols else ["-Wl,--strip-all"]
        if self.inplace:
            # An editable install would build from scratch in a temporary directory.
            base = base_dir(self.configuration)
            self.build_lib, self.build_temp = str(base / "lib"), str(base / "temp")

    def run(self):
        library = openblas.copy_to(link_dir(self.configuration))
        package = Path("." if self.inplace else self.build_lib, CORE)
        tools, table = Path(__file__).parent.glob("*.py"), package / operator_table.FILE
        with update(table, [OPERATOR_TABLE, *OPERATOR_TABLE.glob("*.toml"), *OPERATOR_TABLE.parent.glob("*.py"),
                            *tools]) as changed:
            if changed:         # first: a mistake in it is found in a second
                write_if_changed(table, operator_table.compiled(OPERATOR_TABLE))
        self.modules = [module for extension in self.extensions for module in extension.modules]
        self.cythonize()
        super().run()
        users = [Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions]
        write_if_changed(package / library.name, openblas.trimmed(library, users))
        write_if_changed(package / openblas.LICENSE, openblas.license_text())
        write_if_changed(package / "build_config.py", self.facts())
        self.prune(Path(self.build_lib, CORE))
        self.prune(package)
        self.write_stub(package.parent)
        if self.inplace:
            # Without bytecode, each import would compile again where Python cannot write.
            compile_dir(package.parent, quiet=2, workers=self.parallel)

    def cythonize(self):
        """Translate changed modules, and those that cimport a changed .pxd."""
        gc.disable()    # in its processes too: looking for cycles in the trees took more than half of Cython's time
        chosen = [module for module in self.modules if module.chosen]
        translation_dir(self.configuration).mkdir(parents=True, exist_ok=True)
        with open(translation_dir(self.configuration) / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            translated = cythonize(
                chosen,
                nthreads=self.parallel,
                build_dir=str(translation_dir(self.configuration)),
                compiler_directives=self.configuration.directives,
                include_path=["."],
                force=self.force,
            )
            for module in chosen:
                path = Path(self.translated(module))
                write_if_changed(path, path.read_text().replace(*LIST_APPEND))
        by_name = {extension.name: extension for extension in translated}
        for module in chosen:
            own, ours = by_name[module.name].extra_compile_args, module.extra_compile_args
            module.depends = [*map(str, headers(Path(self.translated(module)))),
                              *(flag for flag in ours if flag.endswith(".h"))]
            # The last flags, those of the module, take precedence.
            module.extra_compile_args = ours + [flag for flag in own if flag not in ours]

    def build_extensions(self):
        """Compile changed files, and link the libraries."""
        tasks = {self.translated(module): module for module in self.modules if module.chosen}
        tasks |= {file.sources[0]: file for library in self.extensions for file in library.code}
        # Templates take longer than their size says, so C++ comes first; the last tasks are short.
        order = sorted(tasks, key=lambda source: (not source.endswith(".cpp"), -os.path.getsize(source)))
        with ThreadPoolExecutor(self.parallel) as pool:
            list(pool.map(self.compile, order, map(tasks.get, order)))
        self.wait_for_others()
        for library in self.extensions:
            self.link(library)

    def wait_for_others(self):
        """Lock the libraries against other builds until this process ends."""
        fcntl.flock(os.open(Path("build", "lock"), os.O_CREAT | os.O_WRONLY), fcntl.LOCK_EX)

    def translated(self, module: Extension) -> str:
        """Return the path of the C code of a module."""
        return str(translation_dir(self.configuration) / Path(module.sources[0]).with_suffix(".c"))

    def object(self, source: str) -> Path:
        return Path(*self.compiler.object_filenames([source], output_dir=self.build_temp))

    def compile(self, source: str, module: Extension):
        """Compile one file with the flags of its module, if its content changed: a line in a .pxd changes few."""
        target, read = self.object(source), [source, *module.depends]
        stamp = target.with_suffix(".digest")       # of what was compiled; as new as the last comparison
        fresh = target.exists() and not newer_group(read, stamp if stamp.exists() else target, "newer")
        if fresh and stamp.exists() and not self.force:
            return
        digest = sha256(b"".join(Path(path).read_bytes() for path in read)).hexdigest()
        if (fresh or (target.exists() and stamp.exists() and stamp.read_text() == digest)) and not self.force:
            stamp.write_text(digest)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.build_temp) as directory:      # another build may be linking the old file
            made = self.compiler.compile(
                [source],
                output_dir=directory,
                macros=module.define_macros,
                include_dirs=module.include_dirs,
                debug=self.debug,
                extra_postargs=module.extra_compile_args,
            )
            Path(*made).replace(target)
        stamp.write_text(digest)

    def link(self, library: Library):
        """Link all compiled modules, also those of earlier builds if CYGRAD_MODULES selects some."""
        library.held = [module for module in library.modules if self.object(self.translated(module)).exists()]
        sources = [*map(self.translated, library.held), *(file.sources[0] for file in library.code)]
        objects = [str(self.object(source)) for source in sources]
        target = Path(self.get_ext_fullpath(library.name))
        arguments = [*library.extra_link_args, *self.link_args]
        listed = Path(self.build_temp, target.name + ".linked")
        write_if_changed(listed, "\n".join([*objects, *arguments]))
        if not self.force and not newer_group([*objects, listed], target):
            return
        # Another process may be loading the old library, and sources may change meanwhile.
        begin, made = time.time() - 0.1, target.with_name(f".{target.name}.{os.getpid()}")
        self.compiler.link_shared_object(
            objects,
            str(made),
            libraries=self.get_libraries(library),
            library_dirs=library.library_dirs,
            runtime_library_dirs=library.runtime_library_dirs,
            extra_postargs=arguments,
            debug=self.debug,
            build_temp=self.build_temp,
            target_lang=library.language,
        )
        os.utime(made, (begin, begin))
        made.replace(target)

    def copy_extensions_to_source(self):
        """Copy as setuptools does, but also over a newer file, which may belong to another build."""
        for extension in self.extensions:
            filename = self.get_ext_filename(extension.name)
            copy_if_changed(Path(self.build_lib, filename), Path(filename))

    def prune(self, package: Path):
        """Remove libraries of deleted modules, which would still be imported."""
        wanted = {Path(self.get_ext_filename(extension.name)).name for extension in self.extensions}
        for module in package.rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
            if module.name not in wanted:
                module.unlink()

    def write_stub(self, package: Path):
        """Write the stubs, unless a sanitizer, missing modules or a cross build prevent the import."""
        partial = self.configuration.sanitizer or os.environ.get("CYGRAD_MODULES") or CROSS_BUILD
        if not partial and (package / "__init__.py").exists():
            sources = [path for suffix in ("py", "pyx", "toml") for path in CORE.parent.rglob(f"*.{suffix}")]
            with update(package / stubs.STUB, [*sources, *Path(__file__).parent.glob("*.py")]) as changed:
                if changed:
                    stubs.write(package.parent)

    def facts(self) -> str:
        libraries = {
            Path(self.get_ext_filename(library.name)).name:
                tuple(module.name.removeprefix("cygrad._core.") for module in library.held)
            for library in self.extensions
        }
        kernels = [module.name for library in self.extensions for module in library.held
                   if registers_kernels(Path(module.sources[0]))]
        kernels.sort(key=lambda name: (not name.startswith("cygrad._core.kernels."), name))
        facts = {**self.configuration.facts(), "openblas": openblas.facts()}
        return FACTS.format(libraries=pformat(libraries, width=100, compact=True),
                            kernels=pformat(tuple(kernels), width=100, compact=True),
                            facts=pformat(facts, sort_dicts=False, width=100))
