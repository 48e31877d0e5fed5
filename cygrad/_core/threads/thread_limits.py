"""
Register cygrad with threadpoolctl as a BLAS library whose limit is per thread.

Limits on OpenMP are read from OpenMP, unless they equal OpenMP's default; limits on BLAS alone are set here.
"""

from threadpoolctl import LibController, register

from cygrad._core.threads.parallel import get_limit, set_limit


class CygradController(LibController):
    """Controller found by the file name of our OpenBLAS; its limit applies to all parallel work of cygrad."""

    user_api = "blas"
    internal_api = "cygrad"
    filename_prefixes = ("libcygradopenblas",)

    def get_num_threads(self):
        """Return how many threads the operations of this thread may use."""
        return get_limit()

    def set_num_threads(self, num_threads):
        """Limit the operations of this thread; an invalid number removes the limit."""
        set_limit(num_threads)

    def get_version(self):
        """Unknown to threadpoolctl: see `cygrad.show_config()`."""
        return None


register(CygradController)
