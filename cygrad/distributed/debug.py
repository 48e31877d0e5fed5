"""The debug mode: whether all ranks call the same collective with tensors that fit, asked before each call."""

import os

import numpy as np

from cygrad import Tensor
from cygrad.distributed.errors import DistError
from cygrad.distributed.work import Work

__all__ = ["debugging", "same_everywhere"]

LONGEST = 400              # bytes that say what a rank calls


def debugging():
    """Is the debug mode on? ``CYGRAD_DISTRIBUTED_DEBUG=1`` in the environment turns it on."""
    return os.environ.get("CYGRAD_DISTRIBUTED_DEBUG", "0") not in ("", "0")


def same_everywhere(group, name, facts):
    """
    Compare a call with those of the other ranks.

    Parameters
    ----------
    group : ProcessGroup
    name : str
        Of the operation.
    facts : tuple
        What has to be the same.

    Raises
    ------
    DistError
        On all ranks, if they differ: it says what each calls.
    """
    text = f"{name}({', '.join(map(_told, facts))})"
    calls = []
    Work(group, "comparison of calls (CYGRAD_DISTRIBUTED_DEBUG) before " + text,
         _gathered(group, text.encode(), calls)).wait()
    if len(set(calls)) > 1:
        found = "; ".join(f"rank {rank}: {call}" for rank, call in zip(group.ranks, calls, strict=True))
        raise DistError(f"{name}: the ranks of {group.name} do not call the same (got {found}). All have to call the "
                        "same collectives in the same order, with tensors of one size and dtype.")


def _told(fact):
    if isinstance(fact, Tensor):
        return f"{fact.dtype.name}{list(fact.shape)}"
    if isinstance(fact, (list, tuple)):
        return f"[{', '.join(map(_told, fact))}]"
    return str(getattr(fact, "name", fact))


def _gathered(group, encoded, calls):
    own = np.zeros(LONGEST, np.uint8)
    own[:len(encoded)] = np.frombuffer(encoded, np.uint8)[:LONGEST] if len(encoded) <= LONGEST else 0
    if len(encoded) > LONGEST:
        own[:] = np.frombuffer(encoded[:LONGEST - 3] + b"...", np.uint8)
    everybody = np.empty((group.size(), LONGEST), np.uint8)
    yield group.comparisons.Iallgather(own, everybody)
    calls += [bytes(row).rstrip(b"\0").decode(errors="replace") for row in everybody]
