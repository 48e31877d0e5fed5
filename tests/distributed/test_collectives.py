"""Collectives compared with NumPy, for every dtype and layout."""

import functools
import time

import numpy as np
import pytest

import cygrad as torch

from .ranks import ranks

dist = torch.distributed
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64,
          torch.complex64, torch.complex128]
REDUCTIONS = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and,
              "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}


def given(rank, dtype, shape=(3, 4)):
    """Return the tensor of a rank."""
    random = np.random.default_rng(rank)
    numbers = random.integers(0, 5, shape)
    if dtype.is_complex:
        numbers = numbers + 1j * random.integers(0, 5, shape)
    return torch.from_numpy(np.asarray(numbers).astype(dtype.numpy_dtype))


def layouts(tensor):
    """The same elements in memory of several kinds."""
    yield tensor.clone()
    yield tensor.t().contiguous().t() if tensor.ndim == 2 else tensor.clone()
    wide = torch.zeros(*tensor.shape, 2, dtype=tensor.dtype)
    wide[..., 1] = tensor
    yield wide[..., 1]


def check(tensor, expected):
    np.testing.assert_allclose(tensor.numpy(), np.asarray(expected).astype(tensor.dtype.numpy_dtype), rtol=1e-6)


@ranks(2, 4)
def test_reductions_of_every_dtype_and_layout():
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        everything = [given(other, dtype).numpy() for other in range(n)]
        for name, function in REDUCTIONS.items():
            op = getattr(dist.ReduceOp, name)
            if (dtype.is_complex and name in ("MIN", "MAX")) or (name[0] == "B" and everything[0].dtype.kind in "fc"):
                with pytest.raises(TypeError, match="not defined"):
                    dist.all_reduce(given(rank, dtype), op)
                continue
            if dtype is torch.bool:
                function = {"SUM": np.logical_or, "PRODUCT": np.logical_and}.get(name, function)
            expected = everything[0]
            for other in everything[1:]:
                expected = function(expected, other)
            for tensor in layouts(given(rank, dtype)):
                version = tensor._version
                assert dist.all_reduce(tensor, op) is None
                check(tensor, expected)
                assert tensor._version > version
            tensor = given(rank, dtype)
            dist.reduce(tensor, n - 1, op)
            check(tensor, expected if rank == n - 1 else everything[rank])
            part = torch.empty(3, 4, dtype=dtype)
            dist.reduce_scatter_tensor(part, torch.cat([given(rank, dtype)] * n), op)
            check(part, expected)
            dist.reduce_scatter(part, [given(rank, dtype)] * n, op)
            check(part, expected)
    mean = torch.full((2,), float(rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    check(mean, [(n - 1) / 2] * 2)
    with pytest.raises(TypeError, match="AVG is not defined"):
        dist.all_reduce(torch.ones(2, dtype=torch.int64), dist.ReduceOp.AVG)


@ranks(2, 4)
def test_moves_of_every_dtype_and_layout():
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        everything = [given(other, dtype) for other in range(n)]
        for tensor in layouts(everything[rank]):
            dist.broadcast(tensor, src=n - 1)
            check(tensor, everything[-1].numpy())
        for own in layouts(everything[rank]):
            places = [next(iter(layouts(torch.zeros(3, 4, dtype=dtype)))) for _ in range(n)]
            places[0] = torch.zeros(4, 3, dtype=dtype).t()
            dist.all_gather(places, own)
            for place, expected in zip(places, everything, strict=True):
                check(place, expected.numpy())
            for shape in ((n, 3, 4), (3 * n, 4)):
                whole = torch.empty(shape, dtype=dtype)
                dist.all_gather_into_tensor(whole, own)
                check(whole.reshape(n, 3, 4), np.stack([one.numpy() for one in everything]))
            places = [torch.zeros(3, 4, dtype=dtype) for _ in range(n)] if rank == 1 else None
            dist.gather(own, places, dst=1)
            for place, expected in zip(places or [], everything, strict=False):
                check(place, expected.numpy())
            place = torch.zeros(4, 3, dtype=dtype).t()
            dist.scatter(place, everything if rank == 1 else None, src=1)
            check(place, everything[rank].numpy())
            dist.scatter(place, [one.t().clone().t() for one in everything] if rank == 1 else None, src=1)
            check(place, everything[rank].numpy())
        sent = [torch.full((other + 1, rank + 1), rank * n + other).to(dtype) for other in range(n)]
        places = [torch.zeros(rank + 1, other + 1, dtype=dtype) for other in range(n)]
        dist.all_to_all(places, sent)
        for other, place in enumerate(places):
            check(place, np.full((rank + 1, other + 1), other * n + rank))
    whole = torch.arange(2 * n) + 100 * rank
    out = torch.empty(2 * n, dtype=torch.int64)
    dist.all_to_all_single(out, whole)
    check(out, [100 * other + 2 * rank + k for other in range(n) for k in range(2)])
    rows = torch.full((n * (n + 1) // 2, 2), float(rank))
    out = torch.empty(n * (rank + 1), 2)
    dist.all_to_all_single(out, rows, [rank + 1] * n, [other + 1 for other in range(n)])
    check(out, np.repeat(np.arange(n), rank + 1)[:, None].repeat(2, 1))


@ranks(2)
def test_sizes_from_nothing_to_large():
    for shape in ((), (0,), (1,), (3, 0, 2), (300_000,), (1 << 21,)):
        tensor = torch.ones(shape, dtype=torch.float64)
        dist.all_reduce(tensor)
        assert tensor.shape == shape and (tensor == 2).all()
        dist.tree_all_reduce(tensor)
        assert (tensor == 4).all()
        dist.broadcast(tensor)
        places = [torch.zeros(shape, dtype=torch.float64) for _ in range(2)]
        dist.all_gather(places, tensor)
        assert (places[1] == 4).all()


@ranks(2, 4)
def test_handles():
    rank, n = dist.get_rank(), dist.get_world_size()
    tensors = [torch.full((1000 * k + 1,), float(rank)) for k in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work, tensor in zip(reversed(works), reversed(tensors), strict=True):
        assert work.wait() == [tensor] == work.result() == work.get_future().value()
        assert work.is_completed() and work.is_success() and work.exception() is None
        assert (tensor == n * (n - 1) / 2).all()
    doubled = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    assert doubled.wait().tolist() == [2 * n] * 3
    twice = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(
        lambda future: dist.all_reduce(future.value()[0], async_op=True))
    assert twice.wait()[0].tolist() == [n * n] * 3
    dist.all_reduce(torch.ones(100_000), async_op=True)          # a handle that is not kept
    dist.barrier()
    work = dist.barrier(async_op=True)
    work.wait()


@ranks(4)
def test_order_of_what_follows():
    """Second steps and functions given to `then` start at other moments on each rank, and still meet their own kind."""
    rank, n = dist.get_rank(), dist.get_world_size()
    random = np.random.default_rng(rank)
    for turn in range(20):
        futures = []
        for k in range(4):
            futures.append((dist.tree_all_reduce(torch.full((5,), float(k)), async_op=True), n * k))
            futures.append((dist.all_reduce(torch.full((3,), float(turn)), async_op=True), n * turn))
            futures.append((dist.all_reduce(torch.full((7,), float(k)), async_op=True).get_future().then(
                lambda future: dist.tree_all_reduce(future.value()[0], async_op=True)).then(
                lambda future: dist.all_reduce(future.value()[0], async_op=True)), n ** 3 * k))
            if random.random() < 0.5:
                time.sleep(random.random() * 1e-3)
                futures[random.integers(len(futures))][0].done()
        for number in random.permutation(len(futures)):
            future, expected = futures[number]
            assert (future.wait()[0] == expected).all()


@ranks(2, 4)
def test_messages():
    rank, n = dist.get_rank(), dist.get_world_size()
    following, before = (rank + 1) % n, (rank - 1) % n
    for dtype in DTYPES:
        for tensor in layouts(given(rank, dtype)):
            work = dist.isend(tensor, following)
            place = torch.zeros(4, 3, dtype=dtype).t()
            assert dist.recv(place, before) == before
            work.wait()
            check(place, given(before, dtype).numpy())
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((2,), float(rank)), following, tag=5),
                                    dist.P2POp(dist.irecv, place := torch.zeros(2), before, tag=5)])
    for work in works:
        work.wait()
    assert place.tolist() == [before] * 2
    if rank:
        dist.send(torch.tensor([rank]), 0)
    else:
        seen = set()
        for _ in range(n - 1):
            place = torch.zeros(1, dtype=torch.int64)
            assert dist.recv(place) == place.item()
            seen.add(place.item())
        assert seen == set(range(1, n))
    for function in (dist.isend, dist.irecv):
        with pytest.raises(ValueError, match="cannot send to itself"):
            function(torch.ones(1), rank)


@ranks(2, 4)
def test_objects():
    rank, n = dist.get_rank(), dist.get_world_size()
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank, "much": "x" * rank * 1000})
    assert [one["rank"] for one in found] == list(range(n)) and len(found[-1]["much"]) == 1000 * (n - 1)
    things = [rank, {"a": torch.ones(2)}] if rank == 1 else [None, None]
    dist.broadcast_object_list(things, src=1)
    assert things[0] == 1 and things[1]["a"].tolist() == [1, 1]
    found = [None] * n if rank == 0 else None
    dist.gather_object(("from", rank), found)
    assert found == ([("from", other) for other in range(n)] if rank == 0 else None)
    place = [None]
    dist.scatter_object_list(place, [{"for": other} for other in range(n)] if rank == n - 1 else None, src=n - 1)
    assert place == [{"for": rank}]


@ranks(4)
def test_groups():
    rank = dist.get_rank()
    odd, even, all_of_them = dist.new_group([3, 1]), dist.new_group([0, 2]), dist.new_group()
    own, other = (odd, even) if rank % 2 else (even, odd)
    assert other is dist.GroupMember.NON_GROUP_MEMBER
    assert (dist.get_rank(own), dist.get_rank(other)) == (rank // 2, -1)
    assert (dist.get_world_size(own), dist.get_world_size(other), all_of_them.size()) == (2, -1, 4)
    assert dist.get_process_group_ranks(own) == [rank % 2, rank % 2 + 2]
    assert dist.get_global_rank(own, 1) == rank % 2 + 2 and dist.get_group_rank(own, rank) == rank // 2
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor, group=own)
    assert tensor.item() == (4 if rank % 2 else 2)
    tensor = torch.tensor([rank])
    dist.broadcast(tensor, src=2 + rank % 2, group=own)
    assert tensor.item() == 2 + rank % 2
    dist.broadcast(tensor, group=own, group_src=0)
    with pytest.warns(UserWarning, match="does not belong"):
        assert dist.all_reduce(tensor, group=other) is None
    with pytest.raises(ValueError, match="unknown rank"):
        dist.broadcast(tensor, src=1 - rank % 2, group=own)
    dist.destroy_process_group(own)
    with pytest.raises(ValueError, match="destroyed"):
        dist.all_reduce(tensor, group=own)
    assert dist.group.WORLD.size() == 4
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group()
    dist.barrier()


@ranks(2, 4)
def test_fixed_tree():
    """Pairwise sums are bit-identical for this order, any size, and on all ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for size in (1, 3, 1000, 100_003):
        parts = [np.random.default_rng(other).standard_normal(size).astype(np.float32) for other in range(n)]
        expected = [part.copy() for part in parts]
        while len(expected) > 1:
            expected = [sum(expected[k:k + 2][1:], expected[k]) for k in range(0, len(expected), 2)]
        tensor = torch.from_numpy(parts[rank].copy())
        dist.tree_all_reduce(tensor)
        assert tensor.numpy().tobytes() == expected[0].tobytes()


@ranks(2)
def test_wrong_calls_are_refused():
    """All ranks raise the error, before anything is sent."""
    n = dist.get_world_size()
    for error, words, call in [
            (TypeError, "expected a Tensor", lambda: dist.all_reduce([1.0])),
            (TypeError, "must be a ReduceOp", lambda: dist.all_reduce(torch.ones(2), "sum")),
            (RuntimeError, "share a memory location", lambda: dist.all_reduce(torch.ones(1).expand(3))),
            (RuntimeError, "share a memory location",
             lambda: dist.all_gather([torch.ones(1).expand(3)] * n, torch.ones(3))),
            (ValueError, "for each rank", lambda: dist.all_gather([torch.ones(3)], torch.ones(3))),
            (ValueError, "identical in size", lambda: dist.all_gather([torch.ones(2)] * n, torch.ones(3))),
            (ValueError, "2 times", lambda: dist.all_gather_into_tensor(torch.ones(5), torch.ones(3))),
            (ValueError, "2 times", lambda: dist.reduce_scatter_tensor(torch.ones(2), torch.ones(5))),
            (ValueError, "divisible", lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3))),
            (ValueError, "their sum", lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3), [1, 1], [1, 2])),
            (ValueError, "unknown rank", lambda: dist.broadcast(torch.ones(1), src=7)),
            (ValueError, "unknown rank", lambda: dist.reduce(torch.ones(1), None)),
            (ValueError, "an item for each rank", lambda: dist.all_gather_object([None], 1)),
            (ValueError, "unknown rank", lambda: dist.broadcast(torch.ones(1), src=1.0)),
            (ValueError, "a list with an item", lambda: dist.all_gather_object(None, 1)),
            (TypeError, "expected a list", lambda: dist.broadcast_object_list((1,))),
            (TypeError, "list of P2POp", lambda: dist.batch_isend_irecv([1])),
            (TypeError, "list of int", lambda: dist.new_group(3)),
            (TypeError, "list of int", lambda: dist.all_to_all_single(torch.ones(2), torch.ones(2), 3, 3)),
            (ValueError, "not in the group", lambda: dist.get_global_rank(dist.GroupMember.NON_GROUP_MEMBER, 0)),
            (TypeError, "all_gather: expected a Tensor", lambda: dist.nn.all_gather(None)),
            (TypeError, "input_list must be a list", lambda: dist.nn.reduce_scatter(None, None)),
            (TypeError, "ProcessGroup", lambda: dist.all_reduce(torch.ones(1), group="all")),
            (RuntimeError, "a default group already exists", dist.init_process_group),
            (ValueError, "distinct ranks", lambda: dist.new_group([0, 0])),
            (ValueError, "positive number", lambda: dist.barrier(async_op=True).wait(-1)),
    ]:
        with pytest.raises(error, match=words):
            call()
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2]


SHORT = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


@ranks(2, 4)
def test_short_floats():
    """Other collectives send their bytes; reductions compute in float32 or complex64 and round once."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype, wide in SHORT.items():
        def own(other, dtype=dtype, wide=wide):
            numbers = np.random.default_rng(other).standard_normal((n, 6, 2)).astype(np.float32)
            return (torch.view_as_complex(torch.from_numpy(numbers)) if wide.is_complex
                    else torch.from_numpy(numbers[..., 0].copy())).to(dtype)

        def same(tensor, expected, dtype=dtype):
            assert tensor.dtype is dtype and (tensor == expected.to(dtype)).all()
        inputs = [own(other) for other in range(n)]
        total = functools.reduce(torch.add, [tensor.to(wide) for tensor in inputs])
        for layout in (lambda tensor: tensor.clone(), lambda tensor: tensor.t().clone().t()):
            tensor = layout(inputs[rank])
            version = tensor._version
            dist.all_reduce(tensor)
            np.testing.assert_allclose(tensor.to(wide).numpy(), total.numpy(), rtol=2 ** -8, atol=2 ** -8)
            assert tensor._version > version
            for move in (lambda tensor: dist.broadcast(tensor, n - 1), dist.tree_all_reduce):
                tensor = layout(inputs[rank])
                move(tensor)
                expected = inputs[-1] if move is not dist.tree_all_reduce else total
                np.testing.assert_allclose(tensor.to(wide).numpy(), expected.to(wide).numpy(), rtol=2 ** -8,
                                           atol=2 ** -8)
        mean = inputs[rank].clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        np.testing.assert_allclose(mean.to(wide).numpy(), total.numpy() / n, rtol=2 ** -8, atol=2 ** -8)
        part, parts = torch.empty(6, dtype=dtype), [torch.empty(6, dtype=dtype) for _ in range(n)]
        for scattered in (lambda: dist.reduce_scatter_tensor(part, inputs[rank]),
                          lambda: dist.reduce_scatter(part, list(inputs[rank]))):
            scattered()
            np.testing.assert_allclose(part.to(wide).numpy(), total[rank].numpy(), rtol=2 ** -8, atol=2 ** -8)
        dist.all_gather(parts, inputs[rank][0])
        for other in range(n):
            same(parts[other], inputs[other][0])
        dist.all_to_all(parts, list(inputs[rank]))
        same(parts[0], inputs[0][rank])
        whole = torch.empty(n, 6, dtype=dtype)
        dist.all_to_all_single(whole, inputs[rank])
        same(whole[-1], inputs[-1][rank])
        dist.scatter(part, list(inputs[0]) if rank == 0 else None)
        same(part, inputs[0][rank])
        work = dist.isend(inputs[rank], (rank + 1) % n)
        place = torch.empty(6, n, dtype=dtype).t()
        dist.recv(place, (rank - 1) % n)
        work.wait()
        same(place, inputs[rank - 1])
        leaf = inputs[rank].clone().requires_grad_()
        dist.nn.all_reduce(leaf).abs().sum().backward()
        assert leaf.grad.dtype is dtype
        dist.reduce(tensor := inputs[rank].clone(), n - 1)
        if rank == n - 1:
            np.testing.assert_allclose(tensor.to(wide).numpy(), total.numpy(), rtol=2 ** -8, atol=2 ** -8)
        else:
            same(tensor, inputs[rank])
    most = torch.tensor([1.5, float(rank)], dtype=torch.bfloat16)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    assert most.tolist() == [1.5, n - 1]
    # What float16 would lose at each step is kept in the sum.
    small = torch.tensor([2048.0 if rank == 0 else 1.0], dtype=torch.float16)
    dist.all_reduce(small)
    assert small.item() == torch.tensor(2047.0 + n).half().item()
    for wrong in (lambda: dist.all_gather([torch.ones(2, dtype=torch.float16)] * n, torch.ones(2, dtype=torch.uint16)),
                  lambda: dist.reduce_scatter_tensor(torch.ones(2).bfloat16(), torch.ones(2 * n).half())):
        with pytest.raises(ValueError, match="dtype"):
            wrong()
