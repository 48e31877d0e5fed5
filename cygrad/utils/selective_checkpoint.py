"""Selective checkpointing: save the results of some operators and recompute the others."""

import enum
from collections import defaultdict

from cygrad import Tensor
from cygrad.utils.operator_modes import OperatorMode, Overload

__all__ = ["SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

SAC_IGNORED_OPS = {Overload("detach")}             # not counted, because checkpointing adds them
_RECOMPUTE, _CONSUMED = "computed again", "handed out"
_MISMATCH = "The function must call the same operators in forward and recomputation."


class CheckpointPolicy(enum.Enum):
    """
    Whether a checkpoint saves or recomputes the result of an operator.

    MUST and PREFER are equivalent. CPU_OFFLOAD saves, because there is no other device.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import CheckpointPolicy
    >>> CheckpointPolicy.MUST_SAVE
    <CheckpointPolicy.MUST_SAVE: 0>
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = set(CheckpointPolicy) - {CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE}


class SelectiveCheckpointContext:
    """
    Information about a call for a policy.

    Attributes
    ----------
    is_recompute : bool
        Whether the call is in recomputation; always False, because policies run in forward only.
    op_output
        The result of the operator.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import SelectiveCheckpointContext
    >>> SelectiveCheckpointContext(is_recompute=False).is_recompute
    False
    """

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Counting(OperatorMode):
    """Mode that counts calls of each operator."""

    def __init__(self, storage):
        self.storage, self.counts = storage, defaultdict(int)

    def __enter__(self):
        self.counts.clear()
        return super().__enter__()

    def number(self, func):
        """Return the number of previous calls of the operator."""
        self.counts[func] += 1
        return self.counts[func] - 1


class _Keeping(_Counting):
    """Mode of forward: save results as the policy decides."""

    def __init__(self, policy, storage):
        super().__init__(storage)
        self.policy = policy

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Execute the call, then apply the policy."""
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        number = self.number(func)
        policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=result), func, *args, **kwargs)
        if isinstance(policy, bool):                    # deprecated bool results of policies
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        results = result if isinstance(result, tuple) else (result,)
        kept = policy in _SAVED and not func.changes and not isinstance(result, list)
        self.storage[func][number] = _RECOMPUTE if not kept else [
            (value.detach(), value._version) if isinstance(value, Tensor) else (value, None) for value in results]
        return result


class _HandingOut(_Counting):
    """Mode of recomputation: return saved results instead of executing."""

    def __init__(self, storage, allow_cache_entry_mutation):
        super().__init__(storage)
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Return the saved result of this call."""
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        number = self.number(func)
        entry = self.storage[func].get(number) if func in self.storage else None
        if entry is None:
            raise RuntimeError(f"checkpoint: {func} was called in the recomputation, but not found in storage (the "
                               f"forward made no call {number} of it). {_MISMATCH}")
        if entry is _RECOMPUTE:
            return func(*args, **kwargs)
        if entry is _CONSUMED:
            raise RuntimeError(f"checkpoint: Trying to backward an extra time (the saved results of {func} were "
                               "already used). A selective checkpoint supports one backward only.")
        self.storage[func][number] = _CONSUMED
        for value, version in entry:
            if version is not None and value._version != version and not self.allow_cache_entry_mutation:
                raise RuntimeError(f"checkpoint: a saved tensor has been mutated in place (got version "
                                   f"{value._version} of a result of {func}, expected {version}). Modify a clone() of "
                                   f"it, or pass allow_cache_entry_mutation=True.")
        return func.given(tuple(value for value, _ in entry), args, kwargs)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """
    Return the two contexts of a selective checkpoint.

    Parameters
    ----------
    policy_fn_or_list : callable or list of Overload
        ``policy(ctx, op, *args, **kwargs)`` returns the `CheckpointPolicy` of a call, or a list of operators to save.
    allow_cache_entry_mutation : bool, default False
        Whether saved results may be modified in place before backward.

    Returns
    -------
    tuple
        Contexts of forward and recomputation, for `context_fn` of `checkpoint`.

    Raises
    ------
    TypeError, ValueError
        If the policy is neither a function nor a list of operators.

    Examples
    --------
    >>> import functools
    >>> from cygrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> from cygrad.utils.operator_modes import ops
    >>> products_are_kept = functools.partial(create_selective_checkpoint_contexts, [ops.aten.mm.default])
    >>> x = cygrad.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: (x @ x).sin(), x, context_fn=products_are_kept).sum().backward()
    >>> x.grad
    tensor([[-1.6646, -1.6646],
            [-1.6646, -1.6646]])
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        wrong = [op for op in policy if not isinstance(op, Overload)]
        if wrong:
            raise ValueError("create_selective_checkpoint_contexts: Expected op in `op_list` to be an OpOverload, such "
                             f"as ops.aten.mm.default (got {wrong[0]} of type {type(wrong[0]).__name__}).")
        kept = set(policy)

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE
    elif not callable(policy):
        raise TypeError("create_selective_checkpoint_contexts: the policy must be either a function or a list of ops "
                        f"(got {type(policy).__name__}).")
    storage = defaultdict(dict)
    return _Keeping(policy, storage), _HandingOut(storage, allow_cache_entry_mutation)
