"""Base classes of the asv suite."""

from .scenarios import SCENARIOS
from .workloads import ALL_LIBRARIES, library

THREADS = (1, 2)


class _Scenarios:
    """Scenarios of the comparison by library and number of threads. asv ignores the name."""

    param_names = ("library", "scenario", "threads")

    def setup(self, name, key, threads):
        scenario = SCENARIOS[key]
        if name not in ("cygrad", *scenario.others):
            raise NotImplementedError(f"{key} is not for {name}")
        self.step = scenario.make(library(name, threads))
        self.step()

    def time_step(self, name, key, threads):
        self.step()


def over(*keys, libraries=ALL_LIBRARIES):
    """Return parameters: libraries, keys of scenarios, and numbers of threads."""
    return libraries, keys, THREADS
