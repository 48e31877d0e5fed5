"""Transformers compared with PyTorch: values and gradients."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from tests.reference import torch
from tests.twins import agree, both, gradients_agree, twins

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")      # PyTorch's fast path
RANDOM = np.random.default_rng(0)
OPTIONS = [{}, {"norm_first": True}, {"activation": "gelu", "bias": False}, {"batch_first": True}]
PADDING = np.array([[False, False, False, True], [False] * 4])
each = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")


def array(*shape, options=()):
    """Random numbers (steps, batch, features), or with the batch first."""
    return RANDOM.standard_normal((shape[1], shape[0], shape[2]) if "batch_first" in options else shape)


def causal(size):
    return np.where(np.tri(size, dtype=bool), 0, -np.inf)


def compare(ours, theirs, inputs, **masks):
    """The same call of both."""
    masks = {name: both(mask, False) if isinstance(mask, np.ndarray) else (mask, mask) for name, mask in masks.items()}
    found, expected = (module(*(pair[i] for pair in inputs), **{name: pair[i] for name, pair in masks.items()})
                       for i, module in enumerate((ours, theirs)))
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), inputs)


@each
@pytest.mark.parametrize("masks", [
    {}, {"src_mask": causal(4)}, {"src_mask": causal(4), "is_causal": True}, {"src_key_padding_mask": PADDING},
], ids=lambda masks: "-".join(masks) or "plain")
def test_encoder_layer(options, masks):
    ours, theirs = twins("TransformerEncoderLayer", 6, 2, 8, dropout=0.0, **options)
    compare(ours, theirs, [both(array(4, 2, 6, options=options))], **masks)


@each
@pytest.mark.parametrize("masks", [
    {}, {"tgt_mask": causal(3), "memory_mask": RANDOM.standard_normal((3, 4))},
    {"tgt_mask": causal(3), "tgt_is_causal": True, "memory_key_padding_mask": PADDING},
], ids=lambda masks: "-".join(masks) or "plain")
def test_decoder_layer(options, masks):
    ours, theirs = twins("TransformerDecoderLayer", 6, 2, 8, dropout=0.0, **options)
    compare(ours, theirs, [both(array(3, 2, 6, options=options)), both(array(4, 2, 6, options=options))], **masks)


def test_one_sequence_without_batch():
    compare(*twins("TransformerEncoderLayer", 6, 2, 8, dropout=0.0), [both(RANDOM.standard_normal((4, 6)))])


def stacks(which, *, norm):
    """A stack of two layers in both libraries, with weights that differ from layer to layer."""
    made = []
    for library in (cygrad.nn, torch.nn):
        layer = getattr(library, f"Transformer{which}Layer")(6, 2, 8, dropout=0.0)
        made.append(getattr(library, f"Transformer{which}")(layer, 2, library.LayerNorm(6) if norm else None).double())
    ours, theirs = made
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(0, 0.5)
    ours.load_state_dict({key: cygrad.from_numpy(value.numpy()) for key, value in theirs.state_dict().items()})
    return ours, theirs


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("mask", [None, causal(4), ~np.tri(4, dtype=bool), RANDOM.standard_normal((4, 4))],
                         ids=["none", "causal", "bool", "any"])
def test_encoder(norm, mask):
    compare(*stacks("Encoder", norm=norm), [both(array(4, 2, 6))], mask=mask)


@pytest.mark.parametrize("mask", [None, causal(3)], ids=["none", "causal"])
def test_decoder(mask):
    compare(*stacks("Decoder", norm=True), [both(array(3, 2, 6)), both(array(4, 2, 6))], tgt_mask=mask)


@each
def test_encoder_and_decoder(options):
    ours, theirs = twins("Transformer", 6, 2, 2, 2, 8, dropout=0.0, **options)
    inputs = [both(array(4, 2, 6, options=options)), both(array(3, 2, 6, options=options))]
    compare(ours, theirs, inputs, tgt_mask=causal(3), src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)


def test_parts_and_repr():
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=cygrad.tanh)
    assert layer.activation is cygrad.tanh
    assert [name for name, _ in layer.named_children()] == [
        "self_attn", "linear1", "dropout", "linear2", "norm1", "norm2", "dropout1", "dropout2"]
    encoder = nn.TransformerEncoder(layer, 3)
    assert len(encoder.layers) == 3
    assert encoder.layers[0].linear1.weight is not layer.linear1.weight
    assert (encoder.layers[2].linear1.weight == layer.linear1.weight).all().item()
    custom = nn.Transformer(4, 2, custom_encoder=encoder, num_decoder_layers=1)
    assert custom.encoder is encoder
    assert nn.Transformer.generate_square_subsequent_mask(2).tolist() == [[0, -np.inf], [0, 0]]


def test_dropout_in_training_only():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    x = cygrad.randn(3, 1, 4)
    assert not (layer(x) == layer(x)).all().item()
    layer.eval()
    assert (layer(x) == layer(x)).all().item()


def test_errors():
    model = nn.Transformer(4, 2, 1, 1, 8)
    with pytest.raises(RuntimeError, match="the same batch size"):
        model(cygrad.ones(3, 2, 4), cygrad.ones(3, 1, 4))
    with pytest.raises(RuntimeError, match="d_model features"):
        model(cygrad.ones(3, 2, 5), cygrad.ones(3, 2, 5))
    with pytest.raises(RuntimeError, match="relu/gelu, not sine"):
        nn.TransformerEncoderLayer(4, 2, activation="sine")


@pytest.mark.parametrize("stack", [nn.TransformerEncoder, nn.TransformerDecoder])
def test_stacks_are_of_modules(stack):
    with pytest.raises(TypeError, match=r"the layer must be a Module \(got float"):
        stack(1.0, 10**30)


@pytest.mark.parametrize("count", [2**31, 2**63])
def test_more_layers_than_memory_holds_are_refused(count):
    layer = nn.TransformerEncoderLayer(4, 2, 4)
    for make in (lambda: nn.TransformerEncoder(layer, count), lambda: nn.Transformer(4, 2, count, 1, 4),
                 lambda: nn.LSTM(2, 3, num_layers=count), lambda: nn.GRU(2, 3, num_layers=count)):
        with pytest.raises(ValueError, match="too many layers"):
            make()
