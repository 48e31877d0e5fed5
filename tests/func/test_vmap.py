"""vmap: dimensions, containers, chunks, random numbers, in-place operations, errors."""

import numpy as np
import pytest

import cygrad
from tests.func.test_transforms import compare, numbers
from tests.reference import torch


def changed(x, y):
    x = x.clone()
    x[0] = y
    x[1:].mul_(2)
    x.add_(y)
    return x


def written(x, i):
    found = x.new_zeros(4)
    found[i] = x
    return found


@pytest.mark.parametrize("draw", [
    lambda x, **options: cygrad.randn(4, **options) + x, lambda x, **options: x.clone().normal_(**options),
    lambda x, **options: cygrad.bernoulli(x * 0 + 0.5, **options),
    lambda x, **options: cygrad.normal(x, 1.0, **options),
    lambda x, **options: cygrad.randperm(9, **options), lambda x, **options: x.clone().random_(**options),
    lambda x, **options: cygrad.vmap(lambda y: cygrad.rand(3, **options) + y, randomness="same")(x)])
def test_a_given_generator_draws_in_the_mode_of_vmap(draw):
    def drawn(randomness):
        generator = cygrad.Generator().manual_seed(1)
        found = cygrad.vmap(lambda x: draw(x, generator=generator), randomness=randomness)(cygrad.zeros(20, 4))
        assert generator.initial_seed() == 1
        return found, generator.get_state()
    found, state = drawn("different")
    assert len({tuple(entry.flatten().tolist()) for entry in found}) > 5
    again, other = drawn("different")
    assert cygrad.equal(found, again) and cygrad.equal(state, other)
    found, _ = drawn("same")
    assert len({tuple(entry.flatten().tolist()) for entry in found}) == 1
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        drawn("error")


@pytest.mark.parametrize("use", [
    lambda x: x.sin(), lambda x: x + cygrad.ones(3), lambda x: x.mul_(2), lambda x: x[0],
    lambda x: cygrad.zeros_like(x),
    lambda x: cygrad.vmap(lambda y: x * y)(cygrad.ones(2, 3)), lambda x: x.copy_(cygrad.ones(3))])
def test_entries_cannot_be_used_after_the_end_of_vmap(use):
    kept = []
    cygrad.vmap(lambda x: (kept.append(x), x * 2)[1])(cygrad.ones(2, 3))
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        use(kept[0])
    assert kept[0].shape == (3,) and "size=2" in repr(kept[0])


@pytest.mark.parametrize("change", [
    lambda x: x.squeeze_(0), lambda x: x.squeeze_(), lambda x: x.t_(), lambda x: x.unsqueeze_(1),
    lambda x: x.transpose_(0, 1),
    lambda x: x.t_().mul_(2), lambda x: x.squeeze_(0).unsqueeze_(-1)])
def test_the_shape_of_entries_can_be_changed_in_place(change):
    x = cygrad.arange(12.0).view(3, 1, 4)
    expected = cygrad.stack([change(row.clone()) for row in x])
    assert cygrad.equal(cygrad.vmap(lambda row: change(row.clone()))(x), expected)
    assert cygrad.equal(cygrad.vmap(cygrad.vmap(lambda row: change(row.clone())))(x[None])[0], expected)

    def loss(weight, row, function=change):
        y = row.mm(weight)
        assert function(y) is y
        return (y * cygrad.arange(4.0).view(y.shape)).sum()
    weight = cygrad.eye(4)
    found = cygrad.vmap(lambda row: cygrad.func.grad(loss)(weight, row))(x)
    assert cygrad.equal(found, cygrad.stack([cygrad.func.grad(loss)(weight, row) for row in x]))


@pytest.mark.parametrize(("name", "program"), {
    "dims": lambda t: t.vmap(lambda x, y: x * y, in_dims=(1, None), out_dims=1)(numbers(t, 3, 2), numbers(t, 3)),
    "negative dims": lambda t: t.vmap(lambda x: x.sum(), in_dims=-1)(numbers(t, 3, 2)),
    "dims of containers": lambda t: t.vmap(lambda d, e: d["a"] + d["b"] * e[0], in_dims=({"a": 0, "b": None}, 0))(
        {"a": numbers(t, 3, 2), "b": numbers(t, 2)}, (numbers(t, 3),)),
    "one dim for a container": lambda t: t.vmap(lambda d: d["a"] * d["b"])(
        {"a": numbers(t, 3, 2), "b": numbers(t, 3, 2, start=6)}),
    "several results": lambda t: t.vmap(lambda x: (x, {"b": x.sum()}), out_dims=(1, 0))(numbers(t, 3, 2)),
    "result the same for all": lambda t: t.vmap(lambda x: (x, t.ones(2)), out_dims=(0, None))(numbers(t, 3, 2)),
    "result expanded": lambda t: t.vmap(lambda x: t.ones(2))(numbers(t, 3, 2)),
    "nested": lambda t: t.vmap(t.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None)), in_dims=(None, 0))(
        numbers(t, 3, 2), numbers(t, 4, 2, start=6)),
    "nested the other way": lambda t: t.vmap(lambda x: t.vmap(lambda y: x @ y, in_dims=1)(numbers(t, 2, 5)))(
        numbers(t, 3, 2)),
    "chunks": lambda t: t.vmap(lambda x, y: (x * y, x.sum()), in_dims=(0, None), out_dims=(1, 0), chunk_size=2)(
        numbers(t, 5, 3), numbers(t, 3)),
    "arguments by name": lambda t: t.vmap(lambda x, factor: x * factor)(numbers(t, 3), factor=numbers(t, 2).sum()),
    "no dims of dtype": lambda t: t.vmap(lambda x, y: x * y)(numbers(t, 3, 2).float(), numbers(t, 3)),
    "changes in place": lambda t: t.vmap(changed, in_dims=(0, None))(numbers(t, 3, 4), numbers(t, 1)[0]),
    "changes by others": lambda t: t.vmap(changed)(numbers(t, 3, 4), numbers(t, 3, start=20)),
    "the argument itself": lambda t: [x := numbers(t, 3, 4), t.vmap(lambda x: x.mul_(2))(x), x],
    "written at places": lambda t: t.vmap(written, in_dims=(0, None))(numbers(t, 3, 2), t.tensor([2, 0])),
    "written at places of their own": lambda t: t.vmap(written)(numbers(t, 3, 2), t.tensor([[2, 0], [1, 3], [0, 1]])),
    "read at places": lambda t: t.vmap(lambda x, i: x[:, i, None], in_dims=(None, 0))(
        numbers(t, 3, 4), t.tensor([[2, 0], [1, 3]])),
    "one place": lambda t: t.vmap(lambda x, i: x[i], in_dims=(None, 0))(numbers(t, 3, 4), t.tensor([2, 0])),
    "two places apart": lambda t: t.vmap(lambda x, i, j: x[i, :, j], in_dims=(0, 0, None))(
        numbers(t, 2, 3, 2, 4), t.tensor([[2, 0], [1, 1]]), t.tensor([3, 0])),
    "masks": lambda t: t.vmap(lambda x: x[t.tensor([True, False, True])])(numbers(t, 2, 3)),
    "where": lambda t: t.vmap(lambda x: t.where(x > 0, x, 0.0))(numbers(t, 3, 2)),
    "like": lambda t: t.vmap(lambda x: t.zeros_like(x).copy_(x) + t.ones_like(x) + t.full_like(x, 2.0))(
        numbers(t, 3, 2)),
    "stack and cat": lambda t: t.vmap(lambda x: t.cat([t.stack([x, t.ones(2, dtype=x.dtype)]), x[None]]))(
        numbers(t, 3, 2)),
    "einsum": lambda t: t.vmap(lambda x, y: t.einsum("ij,jk->ik", x, y), in_dims=(0, None))(
        numbers(t, 2, 3, 4), numbers(t, 4, 2)),
    "iteration": lambda t: t.vmap(lambda x: sum(row.sum() * k for k, row in enumerate(x)))(numbers(t, 2, 3, 4)),
    "solve": lambda t: t.vmap(t.linalg.solve)(numbers(t, 3, 2, 2), numbers(t, 3, 2, start=12)),
    "backward from outside": lambda t: [x := numbers(t, 3, 2).requires_grad_(),
                                        t.vmap(lambda x: x.sin().prod())(x).sum().backward(), x.grad][2],
}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_vmap_gives_what_the_peer_gives(name, program):
    compare(program)


@pytest.mark.parametrize(("error", "call"), [
    (ValueError, lambda t: t.vmap(lambda x: x)(3.0)),
    (ValueError, lambda t: t.vmap(lambda: 1)()),
    (ValueError, lambda t: t.vmap(lambda x, y: x)(t.ones(2), t.ones(3))),
    (ValueError, lambda t: t.vmap(lambda x: x, in_dims=(0, 0))(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: x, in_dims=1)(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: x, in_dims=(None,))(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: x, in_dims="a")(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: 1.0)(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: x, out_dims=None)(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(t.ones(2))),
    (ValueError, lambda t: t.vmap(lambda x: x, chunk_size=0)(t.ones(2))),
    (RuntimeError, lambda t: t.vmap(lambda x: x, randomness="any")(t.ones(2))),
    (RuntimeError, lambda t: t.vmap(lambda x: x + t.rand(2))(t.ones(2))),
    (RuntimeError, lambda t: t.vmap(lambda x: t.nn.functional.dropout(x))(t.ones(2, 3))),
    (RuntimeError, lambda t: t.vmap(lambda x: t.randperm(3))(t.ones(2))),
    (RuntimeError, lambda t: t.vmap(lambda x: x.item() * x)(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x: x if x > 1 else -x)(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x: t.ones(3).add_(x))(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x: t.ones(3).copy_(x))(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x: x.requires_grad_())(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x: t.nonzero(x))(t.arange(3.0))),
    (RuntimeError, lambda t: t.vmap(lambda x, m: x[m])(t.ones(2, 2), t.tensor([[True, False], [True, True]]))),
], ids=range(22))
def test_wrong_calls_are_refused_as_by_the_peer(error, call):
    with pytest.raises(error):
        call(torch)
    with pytest.raises(error):
        call(cygrad)


class TestRandomNumbers:
    """Draw different or equal numbers for entries; the stream continues as if they were drawn outside."""

    @staticmethod
    def drawn(randomness, func, *args, **options):
        cygrad.manual_seed(3)
        found = cygrad.vmap(func, randomness=randomness, **options)(*args)
        return found, cygrad.rand(1).item()

    def test_different_ones_are_those_of_a_tensor_with_the_batch_in_front(self):
        found, after = self.drawn("different", lambda x: cygrad.rand(3) + 0 * x, cygrad.zeros(4))
        cygrad.manual_seed(3)
        assert (found == cygrad.rand(4, 3)).all()
        assert after == cygrad.rand(1).item()

    def test_the_same_ones_are_drawn_once(self):
        found, after = self.drawn("same", lambda x: cygrad.rand(3) + 0 * x, cygrad.zeros(4))
        cygrad.manual_seed(3)
        assert (found == cygrad.rand(3)).all()
        assert after == cygrad.rand(1).item()

    @pytest.mark.parametrize("draw", [
        lambda x: cygrad.randn(50), lambda x: cygrad.randint(100, (50,)), lambda x: cygrad.rand_like(x),
        lambda x: cygrad.randn_like(x), lambda x: cygrad.bernoulli(x), lambda x: cygrad.normal(x, 1.0),
        lambda x: cygrad.empty_like(x).uniform_(), lambda x: cygrad.empty_like(x).normal_(),
        lambda x: cygrad.empty_like(x).bernoulli_(0.5), lambda x: cygrad.nn.functional.dropout(x),
        lambda x: cygrad.randperm(50), lambda x: cygrad.nn.functional.rrelu(x - 1, training=True),
    ], ids=range(12))
    def test_entries_differ_or_agree(self, draw):
        x = cygrad.full((3, 50), 0.5)
        found, _ = self.drawn("different", draw, x)
        assert not (found[0] == found[1]).all() and not (found[1] == found[2]).all()
        found, _ = self.drawn("same", draw, x)
        assert (found[0] == found[1]).all() and (found[1] == found[2]).all()

    @pytest.mark.parametrize("drop", [
        cygrad.nn.functional.dropout, cygrad.nn.functional.dropout1d,
        lambda x: cygrad.nn.functional.alpha_dropout(x, training=True),
        lambda x: cygrad.nn.functional.rrelu(-x, training=True)], ids=range(4))
    @pytest.mark.parametrize("batched", [False, True])
    def test_noise_for_what_is_the_same_for_all(self, drop, batched):
        x = cygrad.ones(30, 20)
        found, _ = self.drawn("different", lambda _, x: drop(x), cygrad.ones(2), x.expand(2, 30, 20) if batched else x,
                              in_dims=(0, 0 if batched else None))
        assert found.shape == (2, 30, 20) and not (found[0] == found[1]).all()

    def test_weights_of_their_own(self):
        weights = cygrad.eye(3, 50)
        found, _ = self.drawn("different", lambda x: cygrad.multinomial(x, 4, replacement=True), weights)
        assert found.tolist() == [[0] * 4, [1] * 4, [2] * 4]
        with pytest.raises(RuntimeError, match="multinomial"):
            self.drawn("same", lambda x: cygrad.multinomial(x, 4, replacement=True), weights)

    def test_nested(self):
        def inner(x):
            return cygrad.vmap(lambda y: cygrad.rand(()) + 0 * (x + y), randomness="different")(cygrad.zeros(3))
        found, _ = self.drawn("different", inner, cygrad.zeros(2))
        assert found.shape == (2, 3) and len(set(found.reshape(-1).tolist())) == 6
        found, _ = self.drawn("same", inner, cygrad.zeros(2))
        assert found.shape == (2, 3) and (found[0] == found[1]).all() and len(set(found[0].tolist())) == 3

    def test_chunks_draw_their_own(self):
        found, _ = self.drawn("different", lambda x: cygrad.rand(()) + 0 * x, cygrad.zeros(6), chunk_size=4)
        assert len(set(found.tolist())) == 6


def test_a_condition_that_all_entries_agree_on_is_one():
    """Unlike in PyTorch, values that do not depend on the entry are available."""
    found = cygrad.vmap(lambda x: x * 2 if (x > 0).all() else -x)(cygrad.ones(3, 2))
    assert (found == 2).all()


def test_tensors_under_vmap_look_like_entries():
    def look(x):
        assert (tuple(x.shape), x.ndim, x.dtype, len(x)) == ((4, 2), 2, cygrad.float32, 4)
        assert x.size(0) == 4 and x.numel() == 8 and x.stride() == (2, 1) and x.is_contiguous()
        assert x.device == cygrad.device("cpu") and not x.is_meta and "Batched" in repr(x)
        return x
    assert cygrad.vmap(look)(cygrad.ones(3, 4, 2)).shape == (3, 4, 2)


def test_an_empty_batch_gives_empty_results():
    found = cygrad.vmap(lambda x: (x.sin(), x.sum(), cygrad.median(x)))(cygrad.ones(0, 3))
    assert [tuple(part.shape) for part in found] == [(0, 3), (0,), (0,)]


def test_threads_have_batches_of_their_own():
    from tests.tools import in_threads
    found = in_threads(2, lambda i: cygrad.vmap(lambda x: x.sum() * i)(cygrad.ones(50 + i, 3)))
    assert [tuple(part.shape) for part in found] == [(50,), (51,)] and (found[1] == 3).all()
    np.testing.assert_array_equal(found[0].numpy(), np.zeros(50))


def test_results_whose_out_dim_is_none_need_not_be_tensors():
    x = cygrad.arange(6.0).reshape(2, 3)
    assert cygrad.vmap(lambda row: "text", out_dims=None)(x) == "text"
    doubled, name, nothing = cygrad.vmap(lambda row: (row * 2, "text", None), out_dims=(0, None, None))(x)
    assert doubled.tolist() == (x * 2).tolist() and (name, nothing) == ("text", None)
    chunked = cygrad.vmap(lambda row: (row * 2, "text"), out_dims=(0, None), chunk_size=1)(x)
    assert chunked[0].tolist() == (x * 2).tolist() and chunked[1] == "text"
    with pytest.raises(ValueError, match="got type <class 'str'>"):
        cygrad.vmap(lambda row: "text")(x)
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        cygrad.vmap(lambda row: row, out_dims=None)(x)


def test_out_dims_of_a_single_result_may_be_a_tuple():
    x = cygrad.arange(6.0).reshape(2, 3)
    assert cygrad.vmap(lambda row: row + 1, out_dims=(1,))(x).tolist() == (x + 1).t().tolist()
    assert cygrad.vmap(lambda row: row + 1, out_dims=(1,), chunk_size=1)(x).tolist() == (x + 1).t().tolist()
    with pytest.raises(ValueError, match="not compatible"):
        cygrad.vmap(lambda row: row + 1, out_dims=(1, 0))(x)


@pytest.mark.parametrize("draw", ["random_", "normal_", "cauchy_", "exponential_", "log_normal_", "uniform_"])
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_the_stream_of_pytorch_is_the_same_under_vmap(draw, randomness):
    x = cygrad.zeros(4, 40)
    given = x if randomness == "different" else x[0].clone()
    expected = getattr(given, draw)(generator=cygrad.Generator(algorithm="mt19937").manual_seed(3)).clone()
    generator = cygrad.Generator(algorithm="mt19937").manual_seed(3)
    found = cygrad.vmap(lambda row: getattr(row.clone(), draw)(generator=generator), randomness=randomness)(x)
    assert found.tolist() == expected.expand(4, 40).tolist()


@pytest.mark.parametrize("draw", [
    lambda x, generator: x + cygrad.randn(3, generator=generator),
    lambda x, generator: x + cygrad.poisson(cygrad.full((3,), 9.0), generator=generator),
    lambda x, generator: cygrad.vmap(lambda y: y + cygrad.randn((), generator=generator), randomness="different")(x)])
@pytest.mark.parametrize("algorithm", ["pcg64", "mt19937", None])
def test_all_chunks_draw_the_same_numbers_with_randomness_same(draw, algorithm):
    x = cygrad.zeros(5, 3)
    generator = None if algorithm is None else cygrad.Generator(algorithm=algorithm).manual_seed(4)
    cygrad.manual_seed(4)
    whole = cygrad.vmap(lambda row: draw(row, generator), randomness="same")(x)
    after = cygrad.rand(2, generator=generator).tolist()
    assert all(row == whole[0].tolist() for row in whole.tolist())
    if generator is not None:
        generator.manual_seed(4)
    cygrad.manual_seed(4)
    chunked = cygrad.vmap(lambda row: draw(row, generator), randomness="same", chunk_size=2)(x)
    assert chunked.tolist() == whole.tolist() and cygrad.rand(2, generator=generator).tolist() == after


def test_chunks_draw_different_numbers_with_randomness_different():
    chunked = cygrad.vmap(lambda row: row + cygrad.randn(3), randomness="different", chunk_size=2)(cygrad.zeros(5, 3))
    assert len({tuple(row) for row in chunked.tolist()}) == 5


@pytest.mark.parametrize("method", ["poisson", "binomial"])
def test_counts_of_the_stream_of_pytorch_are_the_same_under_vmap(method):
    given = (cygrad.full((40,), 9.0), cygrad.full((40,), 0.4))[:1 + (method == "binomial")]
    draw = getattr(cygrad, method)
    expected = draw(*given, generator=cygrad.Generator(algorithm="mt19937").manual_seed(3))
    generator = cygrad.Generator(algorithm="mt19937").manual_seed(3)
    found = cygrad.vmap(lambda row: draw(*given, generator=generator) + row, randomness="same")(cygrad.zeros(2))
    assert found.tolist() == [expected.tolist()] * 2
    with pytest.raises(RuntimeError, match="does not support randomness='different'"):
        cygrad.vmap(lambda row: draw(*given) + row, randomness="different")(cygrad.zeros(2))


def test_a_batch_in_the_first_dimension_is_passed_and_returned_without_a_view():
    x = cygrad.ones(2, 3)
    assert cygrad.vmap(lambda row: row)(x) is x
    assert cygrad.vmap(lambda row: row.add_(1))(x) is x and x.tolist() == [[2] * 3] * 2
