"""Threads: independent branches, several Python threads, and the cost of teams, locks and the GIL."""

from .networks import training_step
from .workloads import LIBRARIES, library

TEAMS = 1000


class Branches:
    """Backward through eight independent products of 512 x 512."""

    params = (LIBRARIES, (1, 2))
    param_names = ("library", "threads")

    def setup(self, name, threads):
        from .threads import branches

        self.run = branches(library(name, threads))
        self.run()

    def time_backward(self, name, threads):
        self.run()


class TinyGraph:
    """Ten nodes of four elements, forward and backward, 200 times, which must not start a team."""

    params = (LIBRARIES, (1, 2))
    param_names = ("library", "threads")

    def setup(self, name, threads):
        from .threads import tiny_graph

        self.run = tiny_graph(library(name, threads))
        self.run()

    def time_forward_and_backward(self, name, threads):
        self.run()


class PythonThreads:
    """Training steps per second of several Python threads, together."""

    params = (LIBRARIES, (1, 2, 4), (64, 256))
    param_names = ("library", "python_threads", "batch")
    unit = "steps/s"

    def setup(self, name, python_threads, batch):
        lib = library(name)
        self.steps = [training_step(lib, batch) for _ in range(python_threads)]
        for step in self.steps:
            step()

    def track_models_of_their_own(self, name, python_threads, batch):
        from .measuring import concurrent_steps

        return concurrent_steps(self.steps, 0.5)


class Hogwild:
    """Steps per second on one shared set of weights."""

    params = (LIBRARIES, (1, 2))
    param_names = ("library", "python_threads")
    unit = "steps/s"

    def setup(self, name, python_threads):
        from .threads import hogwild_steps

        self.steps = hogwild_steps(library(name), python_threads)
        for step in self.steps:
            step()

    def track_steps(self, name, python_threads):
        from .measuring import concurrent_steps

        return concurrent_steps(self.steps, 0.5)


class Costs:
    """A thousand times: start a team, take a lock, release and acquire the GIL."""

    params = (("cygrad",),)
    param_names = ("library",)

    def setup(self, name):
        library(name).set_num_threads(2)
        try:
            from cygrad._core.testing import probes
        except ImportError:
            raise NotImplementedError("this version has no probes") from None
        if not hasattr(probes, "start_and_end_teams"):
            raise NotImplementedError("this version cannot measure teams")
        self.probes = probes
        probes.assemble_teams(1, 2)

    def time_start_and_end_team(self, name):
        self.probes.start_and_end_teams(TEAMS, 2)

    def time_assemble_team(self, name):
        self.probes.assemble_teams(TEAMS, 2)

    def time_lock(self, name):
        self.probes.take_and_return_locks(TEAMS)

    def time_gil(self, name):
        self.probes.hand_over_the_gil(TEAMS)


class HandOver:
    """A thousand times: release and acquire the GIL, while another Python thread does the same."""

    params = (("cygrad",),)
    param_names = ("library",)

    def setup(self, name):
        import threading

        costs = Costs()
        costs.setup(name)
        self.probes, self.stop = costs.probes, threading.Event()

        def compute():
            while not self.stop.is_set():
                self.probes.hand_over_the_gil(10)

        self.other = threading.Thread(target=compute, daemon=True)
        self.other.start()

    def time_gil(self, name):
        self.probes.hand_over_the_gil(TEAMS)

    def teardown(self, name):
        self.stop.set()
        self.other.join()
