"""
Run a program for PyTorch with this library in its place.

    python -m cygrad program.py arguments...
    python -m cygrad -m module arguments...
    python -m cygrad -c text arguments...
"""

import os
import runpy
import sys
from types import ModuleType

from cygrad.compatibility import stand_in

USAGE = """\
usage: python -m cygrad program.py [arguments...]
       python -m cygrad -m module [arguments...]
       python -m cygrad -c text [arguments...]

Run a program that imports torch, with cygrad in its place; - reads it from standard input."""


def main():
    """Run what the command line names."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments in (["-m"], ["-c"]):
        print(USAGE)
        sys.exit(0 if arguments[:1] in (["-h"], ["--help"]) else 2)
    if arguments[0].startswith("-") and arguments[0] not in ("-m", "-c", "-"):
        sys.exit(f"{USAGE}\n\npython -m cygrad: unknown option {arguments[0]}")
    stand_in()
    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        run(arguments)


def run(arguments):
    """Run a program as Python runs a script: as the module ``__main__``, with its folder on the path."""
    program = ModuleType("__main__")
    program.__builtins__, program.__spec__ = __builtins__, None
    first, *rest = arguments
    if first in ("-c", "-"):
        path, folder = "<string>" if first == "-c" else "<stdin>", ""
        text = rest.pop(0) if first == "-c" else sys.stdin.read()
    else:
        path, folder = first, os.path.dirname(os.path.realpath(first))
        program.__file__ = path
        vars(program)["__cached__"] = None
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            sys.exit(f"python -m cygrad: can't open file {path!r}: {error.strerror}")
    code = compile(text, path, "exec", dont_inherit=True)
    sys.modules["__main__"] = program
    sys.argv[:] = [first, *rest]
    sys.path[0] = folder
    exec(code, vars(program))


if __name__ == "__main__":
    main()
