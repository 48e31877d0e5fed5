"""Selection of attention implementations; has no effect, because there is one."""

import enum
from contextlib import contextmanager

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """
    Implementations of `functional.scaled_dot_product_attention`; cygrad has one for all sizes and masks.

    Examples
    --------
    >>> nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """
    Select an implementation of attention; has no effect, because there is one.

    Parameters
    ----------
    backends : SDPBackend or list of SDPBackend
    set_priority : bool, default False
        Ignored.

    Raises
    ------
    TypeError
        If `backends` is something else.

    Examples
    --------
    >>> from cygrad.nn.attention import SDPBackend, sdpa_kernel
    >>> query = cygrad.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     cygrad.nn.functional.scaled_dot_product_attention(query, query, query).shape
    (1, 1, 2, 4)
    """
    several = backends if isinstance(backends, (list, tuple)) else [backends]
    if not several or not all(isinstance(backend, SDPBackend) for backend in several):
        raise TypeError(f"sdpa_kernel: expected an SDPBackend or a list of them (got {backends!r}).")
    yield
