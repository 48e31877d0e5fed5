"""
Run tests on several ranks.

A test under ``@ranks(2, 4)`` starts ``mpiexec`` once for each number; there this file, run as a program, calls the
body of the test on each rank. An assertion that fails on some rank ends the job and fails the test, with what that
rank has printed. No process may be left when it is over.
"""

import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "CYGRAD_TEST_RUN"
# Options for Open MPI to run as root, with more ranks than cores.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",         # of version 5
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMP_NUM_THREADS": "1",  # of version 4
            "PYTHONUNBUFFERED": ""}           # a line is one write, which the launcher does not cut


def mpiexec():
    """Return the mpiexec of the MPI that mpi4py loads, next to the interpreter or on the path, or None."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    launcher = Path(sys.executable).with_name("mpiexec")
    return str(launcher) if launcher.exists() else shutil.which("mpiexec")


def marked(mark):
    """Processes that were started with a mark in their environment and still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0")
            if ours and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Job:
    """A program on several ranks."""

    def __init__(self, n, arguments, environment=None, options=()):
        self.mark = uuid.uuid4().hex
        surroundings = {**os.environ, **SETTINGS, **(environment or {}), MARK: self.mark, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen([mpiexec(), "-n", str(n), *options, sys.executable, *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings,
                                        stdin=subprocess.DEVNULL, start_new_session=True)

    def ranks(self):
        """The processes of the ranks, in no order."""
        found = []
        for number in marked(self.mark):
            try:
                if Path(f"/proc/{number}/exe").resolve() == Path(sys.executable).resolve():
                    found.append(number)
            except OSError:
                continue
        return found

    def wait_for(self, word, times):
        """Read standard output until a word has occurred `times` times; lines of ranks may interleave."""
        seen = ""
        while seen.count(word) < times:
            line = self.process.stdout.readline()
            assert line, f"the job ended after {seen!r}\n{self.end()}"
            seen += line
        return seen

    def end(self, limit=60):
        """Wait for the end; return exit code, standard output, standard error. Nothing may be left then."""
        try:
            out, error = self.process.communicate(timeout=limit)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        deadline = time.monotonic() + 5
        while (left := marked(self.mark)) and not late and time.monotonic() < deadline:
            time.sleep(0.02)
        for number in left:
            os.kill(number, signal.SIGKILL)
        if late:
            out, error = self.process.communicate()
        assert not late, f"the job did not end in {limit} seconds\n{out}\n{error}"
        assert not left, f"{len(left)} processes were left\n{out}\n{error}"
        return self.process.returncode, out, error


def run(n, arguments, limit=60, **options):
    """Run a program on several ranks; return exit code, standard output, standard error."""
    return Job(n, arguments, **options).end(limit)


def ranks(*numbers, limit=60, environment=None):
    """The body of the test runs on each rank, once for each of the numbers of ranks."""
    import pytest

    def decorate(body):
        @pytest.mark.parametrize("n", numbers)
        @functools.wraps(body)
        def test(n):
            if mpiexec() is None:
                pytest.skip("MPI is not installed")
            code, out, error = run(n, [__file__, sys.modules[body.__module__].__file__, body.__name__], limit,
                                   environment=environment)
            assert code == 0, f"{out}\n{error}"
        del test.__wrapped__                 # whose parameters are not those of the test
        test.body = body
        return test
    return decorate


def main():
    """On a rank: call the body of a test."""
    path, name = Path(sys.argv[1]), sys.argv[2]
    sys.path.insert(0, str(ROOT))
    import cygrad
    cygrad.distributed.init_process_group("mpi", timeout=30)
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    getattr(module, name).body()


if __name__ == "__main__":
    main()
