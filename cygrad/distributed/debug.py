"""
Checks that all ranks call the same collective with matching tensors.

Ranks compare digests of their calls by a reduction of two numbers, and exchange descriptions only if these differ.
Synchronous calls do so before they start, those with ``async_op=True`` on completion. In debug mode all calls compare
descriptions before they start.
"""

import contextlib
import hashlib
import os

import numpy as np

from cygrad import Tensor
from cygrad._core.creation.creation import from_numpy
from cygrad.distributed.errors import DistError
from cygrad.distributed.reduce_op import ReduceOp
from cygrad.distributed.work import Work

__all__ = ["compared", "debugging", "same_everywhere"]

LONGEST = 400              # bytes of the description of a call
MAX_DIGESTS = 1000
_digests = {}              # name and facts -> digest of their description


def debugging():
    """Return whether debug mode is enabled, by ``CYGRAD_DISTRIBUTED_DEBUG=1`` in the environment."""
    return os.environ.get("CYGRAD_DISTRIBUTED_DEBUG", "0") not in ("", "0")


def same_everywhere(group, name, facts):
    """
    Compare a call with those of the other ranks.

    Parameters
    ----------
    group : ProcessGroup
    name : str
        Name of the operation.
    facts : tuple
        Values that must be the same on all ranks.

    Raises
    ------
    DistError
        On all ranks, if calls differ; the message lists them.
    """
    text = f"{name}({', '.join(map(_fact_text, facts))})"
    calls = []
    Work(group, "comparison of calls before " + text,
         _gathered(group, text.encode(), calls)).wait()
    if len(set(calls)) > 1:
        found = "; ".join(f"rank {rank}: {call}" for rank, call in zip(group.ranks, calls, strict=True))
        raise DistError(f"{name}: the ranks of {group.name} must call the same collective (got {found}). All ranks "
                        "must call the same collectives in the same order, with tensors of the same size and dtype.")


def compared(group, name, facts, steps, first):
    """
    Run the steps of a collective with a comparison of digests; raise the `DistError` of `same_everywhere`.

    Parameters
    ----------
    group, name, facts
        See `same_everywhere`.
    steps : iterator
        See `Work`.
    first : bool
        Whether to wait for the comparison before the first step, instead of after the last one.
    """
    key = name, *map(_key, facts)
    try:
        digest = _digests[key]
    except (KeyError, TypeError):              # TypeError: unhashable, reported by the collective
        text = f"{name}({', '.join(map(_fact_text, facts))})"
        digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
        if len(_digests) >= MAX_DIGESTS:
            _digests.clear()
        with contextlib.suppress(TypeError):
            _digests[key] = digest
    largest = np.array((digest, -digest))
    request = next(group.progress.all_reduce(from_numpy(largest), ReduceOp.MAX.handles, group.comparison_handle))
    result = None if first else (yield from steps)
    yield request
    if largest[0] != -largest[1]:
        same_everywhere(group, name, facts)
    return (yield from steps) if first else result


def _key(fact):
    """Return the dtype and shape of a tensor; other values are returned unchanged."""
    if isinstance(fact, Tensor):
        return fact.dtype, fact.shape
    return tuple(map(_key, fact)) if isinstance(fact, (list, tuple)) else fact


def _fact_text(fact):
    if isinstance(fact, Tensor):
        return f"{fact.dtype.name}{list(fact.shape)}"
    if isinstance(fact, (list, tuple)):
        return f"[{', '.join(map(_fact_text, fact))}]"
    return str(getattr(fact, "name", fact))


def _gathered(group, encoded, calls):
    own = np.zeros(LONGEST, np.uint8)
    own[:len(encoded)] = np.frombuffer(encoded, np.uint8)[:LONGEST] if len(encoded) <= LONGEST else 0
    if len(encoded) > LONGEST:
        own[:] = np.frombuffer(encoded[:LONGEST - 3] + b"...", np.uint8)
    gathered = np.empty((group.size(), LONGEST), np.uint8)
    yield group.comparisons.Iallgather(own, gathered)
    calls += [bytes(row).rstrip(b"\0").decode(errors="replace") for row in gathered]
