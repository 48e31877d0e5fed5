"""Hooks that send gradients as they are, or in 16 bits for each element."""

import numpy as np

import cygrad
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.fixed_tree import tree_all_reduce
from cygrad.distributed.world import member

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

TO_NUMBERS = {"f": np.float32, "c": np.complex64}


def allreduce_hook(process_group, bucket):
    """
    The average, as without a hook.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future
    """
    group = member(process_group)
    work = all_reduce(bucket.buffer(), group=group, async_op=True, detail=bucket.told)
    return work.get_future().then(lambda future: future.value()[0].div_(group.size()))


def to_bfloat16(elements):
    """The upper 16 bits of float32 numbers, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(elements, np.float32).view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + half) >> np.uint32(16)).astype(np.uint16)
    undefined = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)      # nan, whose rounding could overflow
    if undefined.any():
        rounded[undefined] = np.uint16(0x7FC0)
    return rounded


def from_bfloat16(halves):
    """The float32 numbers that begin with these 16 bits."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_float16(elements):
    """Half-precision numbers; those beyond their range become infinite."""
    with np.errstate(over="ignore"):
        return elements.astype(np.float16)


FORMS = {"bfloat16": (to_bfloat16, from_bfloat16), "float16": (to_float16, lambda halves: halves.astype(np.float32))}


def _compressed(process_group, bucket, form):
    """Average a bucket whose elements travel in another form."""
    group = member(process_group)
    buffer = bucket.buffer()
    numbers = cygrad.view_as_real(buffer) if buffer.is_complex() else buffer
    work = tree_all_reduce(numbers.reshape(-1), group, True, form=FORMS[form], factor=1 / group.size(),
                           detail=lambda: f"{bucket.told()} as {form}")
    return work.get_future().then(lambda future: buffer)


def bf16_compress_hook(process_group, bucket):
    """
    Let elements travel as bfloat16, with half as many bytes: range of float32, three decimal digits.

    Sums are computed in float32, in the order of ranks; elements are rounded before they are sent, and sums once more.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future
    """
    return _compressed(process_group, bucket, "bfloat16")


def fp16_compress_hook(process_group, bucket):
    """
    Let elements travel as float16: four decimal digits, up to 65,504. See `bf16_compress_hook`.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future
    """
    return _compressed(process_group, bucket, "float16")


def _wrapped(hook, form):
    encode, decode = FORMS[form]

    def compressing(state, bucket):
        array = bucket.array
        numbers = array.view(array.real.dtype) if array.dtype.kind == "c" else array
        numbers[...] = decode(encode(numbers))
        return hook(state, bucket)
    return compressing


def bf16_compress_wrapper(hook):
    """A hook that rounds gradients to bfloat16 before another hook takes them; -> hook."""
    return _wrapped(hook, "bfloat16")


def fp16_compress_wrapper(hook):
    """A hook that rounds gradients to float16 before another hook takes them; -> hook."""
    return _wrapped(hook, "float16")
