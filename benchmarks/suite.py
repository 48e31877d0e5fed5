"""What the classes of the asv suite are made of."""

from .scenarios import SCENARIOS
from .workloads import EVERYONE, library

THREADS = (1, 2)


class _Scenarios:
    """Scenarios of the comparison, over libraries and numbers of threads. With another name asv would run it, too."""

    param_names = ("library", "scenario", "threads")

    def setup(self, name, key, threads):
        scenario = SCENARIOS[key]
        if name not in ("cygrad", *scenario.peers):
            raise NotImplementedError(f"{key} is not for {name}")
        self.step = scenario.make(library(name, threads))
        self.step()

    def time_step(self, name, key, threads):
        self.step()


def over(*keys, libraries=EVERYONE):
    """Parameters: libraries, scenarios by their keys, and numbers of threads."""
    return libraries, keys, THREADS
