"""Build script; metadata and tool settings are in pyproject.toml, the work is in build_tools/."""

import os
import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
os.chdir(ROOT)
# A build front end does not put the project on the path.
sys.path.insert(0, str(ROOT))

from build_tools import modules  # noqa: E402
from build_tools.build_ext import BuildExt, base_dir, link_dir  # noqa: E402
from build_tools.configuration import Configuration  # noqa: E402

# Guarded because worker processes of cythonize may import this file.
if __name__ == "__main__":
    BuildExt.configuration = Configuration.from_environment()
    setup(
        ext_modules=modules.find(BuildExt.configuration, link_dir(BuildExt.configuration)),
        cmdclass={"build_ext": BuildExt},
        options={
            "build": {
                "build_base": str(base_dir(BuildExt.configuration)),
                "build_lib": str(base_dir(BuildExt.configuration) / "lib"),
                "build_temp": str(base_dir(BuildExt.configuration) / "temp"),
            }
        },
    )
