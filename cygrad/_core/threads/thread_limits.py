"""What threadpoolctl sees of cygrad: a BLAS library with a limit of its own for each thread.

Limits that threadpoolctl sets on OpenMP are noticed without this, by a look at OpenMP itself; but only where they
differ from what OpenMP says anyway, and not those for BLAS alone.
"""

from threadpoolctl import LibController, register

from cygrad._core.threads.parallel import get_limit, set_limit


class CygradController(LibController):
    """Found by the file name of our copy of OpenBLAS; the limit is that of all our parallel work."""

    user_api = "blas"
    internal_api = "cygrad"
    filename_prefixes = ("libcygradopenblas",)

    def get_num_threads(self):
        """How many threads this thread's operations may use."""
        return get_limit()

    def set_num_threads(self, num_threads):
        """Limit them, in this thread; a number that is no limit lifts the last one."""
        set_limit(num_threads)

    def get_version(self):
        """Unknown to threadpoolctl: `cygrad.show_config()` tells it."""
        return None


register(CygradController)
