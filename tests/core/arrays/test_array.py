"""Arrays: layout, ownership, overlap, and conversion from and to NumPy."""

import itertools

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.memory.storage import memory_stats
from cygrad._core.testing import probes
from cygrad._core.testing.interop import call_kernel

BASE = np.arange(120.0).reshape(4, 5, 6)


@pytest.mark.parametrize(("array", "strides", "contiguous", "offset", "nbytes"), [
    (BASE, (30, 6, 1), True, 0, 960),
    (BASE[1], (6, 1), True, 0, 240),
    (BASE[:, 1], (30, 1), False, 0, 8 * 96),
    (BASE[::-1], (-30, 6, 1), False, 720, 960),
    (BASE.T, (1, 6, 30), False, 0, 960),
    (BASE[:1, :, :1], (30, 6, 1), False, 0, 8 * 25),
    (BASE[:1], (30, 6, 1), True, 0, 240),
    (BASE[0, 0, 0:1], (1,), True, 0, 8),
    (np.array(1.0), (), True, 0, 8),
    (np.zeros((0, 3)), (3, 1), True, 0, 0),
    (np.broadcast_to(np.ones(1), (3, 2)), (0, 0), False, 0, 8),
])
def test_layout(array, strides, contiguous, offset, nbytes):
    facts = probes.array_facts(array)
    assert facts["shape"] == array.shape
    assert facts["strides"] == strides
    assert facts["contiguous"] is contiguous
    assert facts["size"] == array.size
    assert facts["offset"] == offset
    assert facts["nbytes"] == nbytes
    assert facts["writable"] is array.flags.writeable
    assert facts["exclusive"] is False      # foreign memory never is


@pytest.mark.parametrize(("shape", "text"), [((), "()"), ((3,), "(3,)"), ((3, 4), "(3, 4)")])
def test_shape_as_text(shape, text):
    assert probes.array_facts(np.zeros(shape))["text"] == text


def test_a_long_shape_as_text_is_cut():
    text = probes.array_facts(np.zeros((1,) * 64))["text"]
    assert len(text) <= 256
    assert text.startswith("(1, 1, ")


@pytest.mark.parametrize(("array", "overlaps"), [
    (BASE, False), (BASE.T, False), (BASE[::-1, ::2], False), (BASE[:0], False),
    (np.broadcast_to(np.ones(3), (2, 3)), True), (np.broadcast_to(np.ones(3), (1, 3)), False),
    (as_strided(np.arange(9.0), (3, 3), (8, 8)), True),
    (as_strided(np.arange(9.0), (3, 3), (16, 8)), True),
    (as_strided(np.arange(9.0), (3, 3), (24, 8)), False),
    (as_strided(np.arange(9.0), (3, 1, 3), (8, 0, 24)), False),
    (np.broadcast_to(np.ones(1), (1, 1)), False),
])
def test_overlap_within_an_array(array, overlaps):
    assert probes.array_facts(array)["overlaps"] is overlaps


@pytest.mark.parametrize(("a", "b", "meet"), [
    (BASE, BASE, True), (BASE[:2], BASE[2:], False), (BASE[:3], BASE[2:], True),
    (BASE[1::-1], BASE[2:], False), (BASE[2::-1], BASE[2:], True), (BASE[:0], BASE, False),
    (BASE[..., ::2], BASE[..., 1::2], True), (BASE, BASE.copy(), False),
])
def test_overlap_of_two_arrays(a, b, meet):
    assert probes.arrays_meet(a, b) is meet


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 3), (500, 100), (1,) * 64])
@pytest.mark.parametrize("code", range(10))
def test_exclusive_only_while_nobody_else_sees_the_memory(shape, code):
    before = memory_stats()["small_in_use"]
    assert probes.exclusiveness(code, shape) == [True, False, False, True]
    assert memory_stats()["small_in_use"] == before


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64",
                                  "complex64", "complex128"])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2],
                                    lambda a: a[1, 1], lambda a: a[:0], lambda a: np.broadcast_to(a[0], (3, 4))])
def test_numpy_round_trip(name, layout):
    import cygrad._core.kernels.linalg.matmul  # noqa: F401

    array = np.asarray(layout(np.arange(12).reshape(3, 4).astype(name)))
    one = np.ones(1, name)
    flat = np.ascontiguousarray(array).reshape(-1)
    result = call_kernel("outer", one, flat)[0]
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result[0], flat)
    assert probes.array_facts(array)["shape"] == array.shape


def test_long_long_is_int64():
    import cygrad._core.kernels.linalg.matmul  # noqa: F401

    result = call_kernel("dot", np.arange(3, dtype=np.longlong), np.arange(3, dtype=np.int64))[0]
    assert result.dtype == np.int64
    assert result == 5


def test_results_share_memory_when_asked_and_keep_it_alive():
    import cygrad._core.kernels.linalg.matmul  # noqa: F401

    before = memory_stats()["small_in_use"]
    result = call_kernel("outer", np.ones(2), np.ones(3), raw=True)[0]
    assert result.base is not None
    assert result.flags.writeable
    assert result.ctypes.data % 64 == 0
    part = result[1:]
    del result
    np.testing.assert_array_equal(part, np.ones((1, 3)))
    del part
    assert memory_stats()["small_in_use"] == before


unaligned = np.frombuffer(b"0123456789abcdefg", dtype=np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(("array", "error", "match"), [
    ([1.0], TypeError, "from_numpy: not an ndarray"),
    (np.zeros(2, "longdouble"), TypeError, "from_numpy: the library has no dtype float128"),
    (np.zeros(2, "datetime64[s]"), TypeError, "from_numpy: the library has no dtype datetime64"),
    (np.array(["a"]), TypeError, "from_numpy: the library has no dtype <U1"),
    (np.array([None]), TypeError, "from_numpy: the library has no dtype object"),
    (np.zeros(2, ">f8"), ValueError, "from_numpy: the elements are byte-swapped"),
    (unaligned, ValueError, "from_numpy: the elements are not aligned"),
])
def test_what_cannot_be_shared_is_refused(array, error, match):
    with pytest.raises(error, match=match):
        probes.array_facts(array)


def test_strides_must_be_whole_elements():
    with pytest.raises(ValueError, match="a stride is no multiple of the element size"):
        probes.array_facts(as_strided(np.zeros(4, "complex64"), (2,), (12,)))


def test_call_kernel_refuses_what_it_cannot_pass():
    import cygrad._core.kernels.linalg.matmul  # noqa: F401

    with pytest.raises(KeyError, match="no kernel 'nothing' is registered"):
        call_kernel("nothing")
    with pytest.raises(TypeError, match="cannot pass a set"):
        call_kernel("mm", {1}, 2)
    with pytest.raises(TypeError, match="too many arguments"):
        call_kernel("mm", *range(40))


def test_one_object_for_each_dtype():
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
    objects = [getattr(dtypes, name) for name in names]
    for (name, a), b in itertools.product(zip(names, objects, strict=True), objects):
        assert (a is b) == (a == b)
        # torch's promotion is NumPy's, except that integers never widen a floating dtype
        promoted = dtypes.promote_types(a, b)
        if a.is_complex or b.is_complex or not (a.is_floating_point or b.is_floating_point):
            assert promoted.numpy_dtype == np.promote_types(name, b.name) or "int" in name + b.name
        assert dtypes.promote_types(b, a) is promoted
