"""Recurrent layers and cells compared with PyTorch: values, states and gradients."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.nn.utils.rnn import pack_padded_sequence
from tests.reference import torch
from tests.twins import agree, both, gradients_agree, twins

RANDOM = np.random.default_rng(0)
LAYERS = [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("LSTM", {}), ("LSTM", {"proj_size": 2}), ("GRU", {})]
OPTIONS = [{}, {"bidirectional": True}, {"num_layers": 2, "bias": False}, {"num_layers": 2, "bidirectional": True},
           {"batch_first": True}]
each_layer = pytest.mark.parametrize(("name", "options"), LAYERS, ids=lambda value: str(value))


def states(name, options, batch):
    """Arrays of initial states, in a tuple."""
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    sizes = [options.get("proj_size") or 4] + [4] * (name == "LSTM")
    return [RANDOM.standard_normal((count, batch, size) if batch else (count, size)) for size in sizes]


def packed_up(values):
    return tuple(values) if len(values) > 1 else values[0]


@pytest.mark.parametrize("more", OPTIONS, ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["state", "zeros"])
@each_layer
def test_layers(name, options, more, given):
    options = options | more
    ours, theirs = twins(name, 3, 4, **options)
    assert repr(ours) == repr(theirs)
    inputs = [both(RANDOM.standard_normal((5, 2, 3)))]
    batch = 5 if options.get("batch_first") else 2
    arguments = [], []
    if given:
        hx = [both(state) for state in states(name, options, batch)]
        inputs += hx
        arguments = [packed_up([pair[0] for pair in hx])], [packed_up([pair[1] for pair in hx])]
    found = ours(inputs[0][0], *arguments[0])
    expected = theirs(inputs[0][1], *arguments[1])
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), inputs)


@each_layer
def test_one_sequence_without_batch(name, options):
    ours, theirs = twins(name, 3, 4, bidirectional=True, **options)
    inputs = [both(RANDOM.standard_normal((5, 3)))]
    inputs += [both(state) for state in states(name, options | {"bidirectional": True}, 0)]
    found = ours(inputs[0][0], packed_up([pair[0] for pair in inputs[1:]]))
    expected = theirs(inputs[0][1], packed_up([pair[1] for pair in inputs[1:]]))
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), inputs)


@pytest.mark.parametrize("lengths", [[5, 5, 3, 1], [2, 5, 1, 4], [3, 3, 3, 3]], ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["state", "zeros"])
@each_layer
def test_packed_sequences(name, options, lengths, given):
    options = options | {"num_layers": 2, "bidirectional": True}
    ours, theirs = twins(name, 3, 4, **options)
    inputs = [both(RANDOM.standard_normal((5, 4, 3)))]
    packed = pack_padded_sequence(inputs[0][0], lengths, enforce_sorted=False)
    other = torch.nn.utils.rnn.pack_padded_sequence(inputs[0][1], lengths, enforce_sorted=False)
    arguments = [], []
    if given:
        hx = [both(state) for state in states(name, options, 4)]
        inputs += hx
        arguments = [packed_up([pair[0] for pair in hx])], [packed_up([pair[1] for pair in hx])]
    output, state = ours(packed, *arguments[0])
    expected, expected_state = theirs(other, *arguments[1])
    agree([output.data, output.batch_sizes, output.sorted_indices], [expected.data, expected.batch_sizes,
                                                                     expected.sorted_indices])
    agree(state, expected_state)
    gradients_agree(((output.data, state), ours), ((expected.data, expected_state), theirs), inputs)


@pytest.mark.parametrize("shape", [(2, 3), (3,)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("given", [True, False], ids=["state", "zeros"])
@pytest.mark.parametrize(("name", "options"), [
    ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {})], ids=str)
def test_cells(name, options, bias, shape, given):
    ours, theirs = twins(name, 3, 4, bias=bias, **options)
    assert repr(ours) == repr(theirs)
    inputs, arguments = [both(RANDOM.standard_normal(shape))], ([], [])
    if given:
        hx = [both(RANDOM.standard_normal((*shape[:-1], 4))) for _ in range(1 + (name == "LSTMCell"))]
        inputs += hx
        arguments = [packed_up([pair[0] for pair in hx])], [packed_up([pair[1] for pair in hx])]
    found, expected = ours(inputs[0][0], *arguments[0]), theirs(inputs[0][1], *arguments[1])
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), inputs)


@each_layer
def test_derivatives_against_differences(name, options):
    layer = getattr(nn, name)(2, 3, bidirectional=True, dtype=cygrad.float64, **options)
    input = cygrad.randn(3, 1, 2, dtype=cygrad.float64, requires_grad=True)
    names, values = zip(*layer.named_parameters(), strict=True)

    def function(input, *values):
        output, state = nn.utils.stateless.functional_call(layer, dict(zip(names, values, strict=True)), (input,))
        return output, *(state if name == "LSTM" else (state,))

    assert gradcheck(function, (input, *values), fast_mode=True)
    assert gradgradcheck(function, (input, *values), fast_mode=True)


def test_no_sequences_and_long_ones():
    output, state = nn.GRU(3, 4)(cygrad.ones(2, 0, 3))
    assert output.shape == (2, 0, 4)
    assert state.shape == (1, 0, 4)
    layer = nn.RNN(1, 2)
    layer(cygrad.ones(20_000, 1, 1))[0].sum().backward()
    assert layer.weight_hh_l0.grad.shape == (2, 2)


def test_dropout_between_layers():
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    input = cygrad.randn(5, 2, 3)
    cygrad.manual_seed(0)
    first = layer(input)[0]
    assert not (first == layer(input)[0]).all().item()
    cygrad.manual_seed(0)
    assert (first == layer(input)[0]).all().item()
    layer.eval()
    assert (layer(input)[0] == layer(input)[0]).all().item()
    with pytest.warns(UserWarning, match="dropout is applied between layers"):
        nn.LSTM(3, 4, dropout=0.5)


def test_starting_values():
    layer = nn.LSTM(20, 25, num_layers=2)
    for weight in layer.parameters():
        assert weight.abs().max().item() <= 0.2
        assert weight.std().item() == pytest.approx(0.2 / 3 ** 0.5, rel=0.2)
    assert [len(weights) for weights in layer.all_weights] == [4, 4]
    assert layer.all_weights[1][0] is layer.weight_ih_l1
    layer.flatten_parameters()


@pytest.mark.parametrize(("error", "match", "build"), [
    (ValueError, "hidden_size must be greater", lambda: nn.LSTM(3, 0)),
    (ValueError, "num_layers must be greater", lambda: nn.LSTM(3, 4, num_layers=0)),
    (ValueError, "dropout should be a number in range", lambda: nn.LSTM(3, 4, dropout=2)),
    (TypeError, "bias should be of type bool, got: int", lambda: nn.GRU(3, 4, bias=1)),
    (TypeError, "batch_first should be of type bool, got: str", lambda: nn.LSTM(3, 4, batch_first="yes")),
    (ValueError, "proj_size has to be smaller than hidden_size", lambda: nn.LSTM(3, 4, proj_size=4)),
    (ValueError, "proj_size should be a positive integer or zero", lambda: nn.LSTM(3, 4, proj_size=-1)),
    (ValueError, "Unknown nonlinearity", lambda: nn.RNN(3, 4, nonlinearity="sin")),
    (TypeError, "hidden_size should be of type int", lambda: nn.GRU(3, 4.5)),
    (RuntimeError, "expected input with input_size", lambda: nn.LSTM(3, 4)(cygrad.ones(2, 3, 4))),
    (ValueError, "2D or 3D, got 1D", lambda: nn.LSTM(3, 4)(cygrad.ones(3))),
    (RuntimeError, r"Expected hidden\[0\] size \(1, 3, 4\), got \(1, 2, 4\)",
     lambda: nn.LSTM(3, 4)(cygrad.ones(2, 3, 3), (cygrad.ones(1, 2, 4), cygrad.ones(1, 3, 4)))),
    (RuntimeError, "Expected hidden size", lambda: nn.GRU(3, 4)(cygrad.ones(2, 3, 3), cygrad.ones(1, 3, 5))),
    (RuntimeError, "unbatched 2-D input", lambda: nn.GRU(3, 4)(cygrad.ones(2, 3), cygrad.ones(1, 1, 4))),
    (RuntimeError, "pair of hidden state and cell",
     lambda: nn.LSTM(3, 4)(cygrad.ones(2, 3, 3), cygrad.ones(1, 3, 4))),
    (ValueError, "does not match weight dtype", lambda: nn.GRU(3, 4)(cygrad.ones(2, 2, 3, dtype=cygrad.float64))),
    (RuntimeError, "at least one step", lambda: nn.GRU(3, 4)(cygrad.ones(0, 2, 3))),
    (ValueError, "1D or 2D, got 3D", lambda: nn.GRUCell(3, 4)(cygrad.ones(2, 3, 3))),
    (RuntimeError, "got 4 expected 3", lambda: nn.LSTMCell(3, 4)(cygrad.ones(2, 4))),
    (RuntimeError, "hidden state has the wrong shape", lambda: nn.GRUCell(3, 4)(cygrad.ones(2, 3), cygrad.ones(4))),
    (RuntimeError, "Unknown nonlinearity: sin", lambda: nn.RNNCell(3, 4, nonlinearity="sin")(cygrad.ones(3))),
])
def test_errors(error, match, build):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_same_bits_for_any_number_of_threads(name):
    layer = getattr(nn, name)(64, 128)
    input = cygrad.randn(6, 150, 64)
    found = []
    for threads in (1, 2, 3):
        with cygrad.threads(threads):
            layer.zero_grad()
            output = layer(input)[0]
            output.sum().backward()
            found.append([output.detach(), *(weight.grad.clone() for weight in layer.parameters())])
    for other in found[1:]:
        assert all(cygrad.equal(mine, theirs) for mine, theirs in zip(found[0], other, strict=True))


def test_forward_mode_through_a_layer():
    layer = nn.LSTM(2, 3, dtype=cygrad.float64)
    input, direction = (cygrad.randn(4, 1, 2, dtype=cygrad.float64) for _ in range(2))
    with cygrad.autograd.forward_ad.dual_level():
        output = layer(cygrad.autograd.forward_ad.make_dual(input, direction))[0]
        found = cygrad.autograd.forward_ad.unpack_dual(output).tangent
    step = 1e-6
    with cygrad.no_grad():
        expected = (layer(input + step * direction)[0] - layer(input - step * direction)[0]) / (2 * step)
    np.testing.assert_allclose(found.detach().numpy(), expected.numpy(), rtol=1e-6, atol=1e-9)
