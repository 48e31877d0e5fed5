"""Errors of layers have PyTorch's classes; state dicts of early versions load."""

import pickle

import pytest

import cygrad

pytestmark = pytest.mark.guarantee("L2")

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")


class Options:
    """The forward part of a function that takes more by name."""

    @staticmethod
    def forward(ctx, x, **options):
        """A copy."""
        return x.clone()


def with_option(t):
    return type("WithOption", (Options, t.autograd.Function), {}).apply(t.ones(1), scale=2)


def log_probs(t):
    return t.full((5, 1, 3), 1 / 3).log()


CALLS = {
    "conv of None": lambda t, n, f: n.Conv2d(1, 1, 1)(None),
    "same with stride": lambda t, n, f: n.Conv2d(1, 1, 3, padding="same", stride=2),
    "bag out of range": lambda t, n, f: f.embedding_bag(t.tensor([[9]]), t.ones(3, 2)),
    "weights of another dtype": lambda t, n, f: f.embedding_bag(
        t.tensor([[0]]), t.ones(3, 2), per_sample_weights=t.ones(1, 1, dtype=t.float64), mode="sum"),
    "ctc of float lengths": lambda t, n, f: f.ctc_loss(
        log_probs(t), t.tensor([[1, 2]]), t.tensor([5.0]), t.tensor([2])),
    "reflect without channels": lambda t, n, f: f.pad(t.ones(1, 0, 3, 3), (1, 1, 1, 1), mode="reflect"),
    "replicate without channels": lambda t, n, f: f.pad(t.ones(1, 0, 3), (1, 1), mode="replicate"),
    "replicate without height": lambda t, n, f: f.pad(t.ones(1, 2, 0, 3), (1, 1, 1, 1), mode="replicate"),
    "infinite scale": lambda t, n, f: f.interpolate(t.ones(1, 1, 2, 2), scale_factor=float("inf")),
    "nll of other sizes": lambda t, n, f: f.nll_loss(t.rand(2, 3, 4), t.tensor([0, 1])),
    "nll of rows": lambda t, n, f: f.nll_loss(t.rand(2, 3), t.tensor([[0], [1]])),
    "nll of another batch": lambda t, n, f: f.nll_loss(t.rand(2, 3), t.tensor([0, 1, 2])),
    "insert a number": lambda t, n, f: n.Sequential(n.ReLU()).insert(0, 3),
    "projections of an RNN": lambda t, n, f: n.RNN(2, 2, proj_size=1),
    "of a GRU": lambda t, n, f: n.GRU(2, 2, proj_size=1),
    "to with a bool": lambda t, n, f: n.Linear(1, 1).to("cpu", True),
    "adaptive of a vector": lambda t, n, f: f.adaptive_avg_pool2d(t.ones(2, 2), 2),
    "a table of one dimension": lambda t, n, f: f.embedding(t.tensor([0]), t.ones(3)),
    "items deleted": lambda t, n, f: t.ones(2).__delitem__(0),
    "no index for a number": lambda t, n, f: t.tensor(1.0).index_put((), t.tensor(2.0)),
    "indices of 32 bits": lambda t, n, f: t.take_along_dim(t.ones(2, 2), t.zeros(2, 2, dtype=t.int32), 1),
    "a shape of fractions": lambda t, n, f: t.unravel_index(t.tensor([1]), (2.0, 2)),
    "nothing to check": lambda t, n, f: t.autograd.gradcheck(t.sin, t.ones(1).double(), check_backward_ad=False),
    "batched without forward": lambda t, n, f: t.autograd.gradcheck(
        t.sin, t.ones(1).double().requires_grad_(), check_batched_forward_grad=True),
    "no second order": lambda t, n, f: t.autograd.gradgradcheck(
        t.sin, t.ones(1).double().requires_grad_(), check_rev_over_rev=False),
    "no index for rows": lambda t, n, f: t.ones(2, 3).index_put((), t.tensor(2.0)),
    "rows of None": lambda t, n, f: n.LayerNorm(2)(None),
    "classes of None": lambda t, n, f: f.cross_entropy(None, None),
    "scores of None": lambda t, n, f: f.cross_entropy(None, t.ones(2, 2)),
    "patches of None": lambda t, n, f: f.unfold(None, 2), "blocks of None": lambda t, n, f: f.fold(None, 2, 1),
    "points of None": lambda t, n, f: f.grid_sample(None, t.ones(1, 1, 1, 2), align_corners=False),
    "pixels of None": lambda t, n, f: f.pixel_shuffle(None, 1), "channels of None": lambda t, n, f: f.channel_shuffle(
        None, 1), "dropout of None": lambda t, n, f: f.alpha_dropout(None),
    "ctc of listed fractions": lambda t, n, f: f.ctc_loss(log_probs(t), t.tensor([[1, 2]]), (5.0,), (2,)),
    "requires_grad of a number": lambda t, n, f: setattr(t.ones(1), "requires_grad", 1),
    "debug of the older checkpoint": lambda t, n, f: t.utils.checkpoint.checkpoint(
        t.sin, t.ones(1, requires_grad=True), use_reentrant=True, debug=True),
    "an option by name": lambda t, n, f: with_option(t),
    "stride 0": lambda t, n, f: t.autograd.gradcheck(t.sin, t.ones(1).double().expand(2).requires_grad_()),
}


@pytest.mark.parametrize("name", CALLS)
def test_refusals(name):
    classes = []
    for library in (cygrad, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (whichever it is)
            CALLS[name](library, library.nn, library.nn.functional)
        classes.append(caught.type)
    assert issubclass(*classes)


def test_what_is_no_tensor_is_named():
    with pytest.raises(TypeError, match=r"batch_norm: argument 'input' must be a Tensor \(got NoneType\)"):
        cygrad.nn.functional.batch_norm(None, None, None, training=True)


def test_tables_of_integers():
    table = cygrad.nn.Embedding.from_pretrained(cygrad.tensor([[1, 2], [3, 4]]))
    assert table(cygrad.tensor([1])).tolist() == [[3, 4]] and not table.weight.requires_grad


def test_places_wrap_around():
    for places in ([5, 7, 8], [-1, -2]):
        ours, theirs = (library.unravel_index(library.tensor(places), (2, 2)) for library in (cygrad, torch))
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_gradients_of_indices_from_the_end():
    x = cygrad.rand(2, 3, requires_grad=True)
    cygrad.take_along_dim(x, cygrad.tensor([[-1], [0]]), 1).sum().backward()
    assert x.grad.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_states_of_early_batch_norms():
    module = cygrad.nn.BatchNorm1d(2)
    module.num_batches_tracked += 3
    state = module.state_dict()
    assert state._metadata[""]["version"] == 2
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        cygrad.nn.BatchNorm1d(2).load_state_dict(state)
    state._metadata[""]["version"] = 1
    for old in (state, dict(state)):                 # a plain dict does not say its version
        cygrad.nn.BatchNorm1d(2).load_state_dict(old)


def test_states_of_early_spectral_norms():
    module = cygrad.nn.utils.spectral_norm(cygrad.nn.Linear(3, 4))
    module(cygrad.ones(1, 3))
    state = module.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    old = dict(state)
    del old["weight_v"]
    old["weight"] = module.weight.detach().clone()
    other = cygrad.nn.utils.spectral_norm(cygrad.nn.Linear(3, 4))
    other.load_state_dict(old)
    assert cygrad.allclose(other.eval()(cygrad.eye(3)), module.eval()(cygrad.eye(3)), atol=1e-5)


def test_results_are_pickled_without_their_graph():
    x = pickle.loads(pickle.dumps(cygrad.ones(2, requires_grad=True) * 2))
    assert x.is_leaf and x.requires_grad and x.tolist() == [2, 2]
    with pytest.warns(FutureWarning):
        module = cygrad.nn.utils.weight_norm(cygrad.nn.Linear(2, 2))
    again = pickle.loads(pickle.dumps(module))
    assert cygrad.equal(again(cygrad.ones(1, 2)), module(cygrad.ones(1, 2)))
