"""Attention: the function, the module, and their rows."""

import math

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn
from cygrad.autograd import gradcheck, gradgradcheck
from tests.reference import torch
from tests.twins import agree, both, gradients_agree, twins

RANDOM = np.random.default_rng(0)
FLOAT_MASK = np.where(RANDOM.random((4, 5)) < 0.3, -np.inf, RANDOM.standard_normal((4, 5)))
BOOL_MASK = RANDOM.random((4, 5)) < 0.6
BOOL_MASK[2] = False                       # a query that sees nothing


def attention_by_numpy(query, key, value, mask=None, causal=False, scale=None):
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(highest), 0, highest))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ value


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("options", [
    {}, {"scale": 0.3}, {"is_causal": True}, {"attn_mask": FLOAT_MASK}, {"attn_mask": BOOL_MASK},
    {"attn_mask": BOOL_MASK[:1]}, {"attn_mask": BOOL_MASK, "is_causal": True}], ids=lambda options: "-".join(options))
def test_values_and_gradients(batch, options):
    arrays = [RANDOM.standard_normal((*batch, *shape)) for shape in ((4, 3), (5, 3), (5, 6))]
    ours = [cygrad.from_numpy(array).requires_grad_() for array in arrays]
    mask = options.get("attn_mask")
    found = F.scaled_dot_product_attention(
        *ours, **options | ({"attn_mask": cygrad.from_numpy(mask)} if mask is not None else {}))
    expected = attention_by_numpy(*arrays, mask, options.get("is_causal", False), options.get("scale"))
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    if len(options) > 1:
        return                          # PyTorch takes both only where it need not differentiate
    theirs = [torch.from_numpy(array).requires_grad_() for array in arrays]
    other = torch.nn.functional.scaled_dot_product_attention(
        *theirs, **options | ({"attn_mask": torch.from_numpy(mask)} if mask is not None else {}))
    gradients_agree((found, None), (other, None), list(zip(ours, theirs, strict=True)))


@pytest.mark.parametrize("mask", [None, BOOL_MASK, np.zeros((4, 5))], ids=["none", "bool", "float"])
@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_against_differences(mask, causal):
    inputs = [cygrad.randn(*shape, dtype=cygrad.float64, requires_grad=True) for shape in ((4, 3), (5, 3), (5, 2))]
    mask = None if mask is None else cygrad.from_numpy(mask)
    if mask is not None and mask.is_floating_point():
        inputs.append(mask.clone().requires_grad_())

    def function(query, key, value, mask=mask):
        return F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)

    assert gradcheck(function, inputs, fast_mode=True)
    assert gradgradcheck(function, inputs, fast_mode=True)


def test_float_mask_gets_its_gradient_where_it_was_broadcast():
    query, key = both(RANDOM.standard_normal((2, 4, 3))), both(RANDOM.standard_normal((2, 5, 3)))
    mask = both(RANDOM.standard_normal((4, 1)))
    found, expected = (module.scaled_dot_product_attention(query[i], key[i], key[i], mask[i].expand(4, 5))
                       for i, module in enumerate((F, torch.nn.functional)))
    gradients_agree((found, None), (expected, None), [query, key, mask])


def test_masks_of_any_layout():
    query = cygrad.randn(2, 3, 4, 6, dtype=cygrad.float64)
    mask = cygrad.randn(5, 4, dtype=cygrad.float64)
    key = cygrad.randn(2, 3, 5, 6, dtype=cygrad.float64)
    expected = F.scaled_dot_product_attention(query, key, key, mask.t().contiguous())
    for other in (mask.t(), mask.t().flip(0).flip(0), mask.t().expand(2, 3, 4, 5)):
        assert (F.scaled_dot_product_attention(query, key, key, other) == expected).all().item()


def test_single_precision_masks_are_good_enough():
    query = both(RANDOM.standard_normal((2, 4, 3)), False)
    mask = both(RANDOM.standard_normal((4, 4)).astype(np.float32), False)
    agree(*(module.scaled_dot_product_attention(query[i], query[i], query[i], mask[i])
            for i, module in enumerate((F, torch.nn.functional))))
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0).double(), 1)
    x = cygrad.randn(4, 1, 6, dtype=cygrad.float64)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert model(x, mask, is_causal=False).dtype == cygrad.float64
    assert cygrad.allclose(model(x, mask, is_causal=False), model(x, mask))


def test_shared_heads():
    query, key = both(RANDOM.standard_normal((2, 6, 4, 3))), both(RANDOM.standard_normal((2, 2, 5, 3)))
    value = both(RANDOM.standard_normal((2, 3, 5, 3)))
    found, expected = (module.scaled_dot_product_attention(query[i], key[i], value[i], enable_gqa=True)
                       for i, module in enumerate((F, torch.nn.functional)))
    gradients_agree((found, None), (expected, None), [query, key, value])


def test_nothing_to_attend_to():
    query = cygrad.randn(2, 3, requires_grad=True)
    empty = cygrad.ones(0, 3)
    result = F.scaled_dot_product_attention(query, empty, empty)
    assert result.tolist() == [[0, 0, 0], [0, 0, 0]]
    result.sum().backward()
    assert query.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    masked = F.scaled_dot_product_attention(query, query, query, cygrad.zeros(2, 2, dtype=cygrad.bool))
    assert masked.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert F.scaled_dot_product_attention(cygrad.ones(0, 2, 3), cygrad.ones(0, 4, 3),
                                          cygrad.ones(0, 4, 3)).shape == (0, 2, 3)


@pytest.mark.parametrize("keys", [1, 7, 33, 130])
@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
def test_a_nan_score_makes_its_row_nan_though_all_others_are_masked(keys, dtype):
    query, key = cygrad.ones(2, 3, dtype=dtype), cygrad.ones(keys, 3, dtype=dtype)
    for at in {0, keys // 2, keys - 1}:
        mask = cygrad.full((2, keys), -math.inf, dtype=dtype)
        mask[0, at] = math.nan
        found = F.scaled_dot_product_attention(query, key, key, mask)
        assert found[0].isnan().all()
        assert (found[1] == 0).all()


@pytest.mark.parametrize("mask", [None, (5, 3, 256, 256), (5, 1, 1, 256), (1, 3, 256, 256), (256, 256), (3, 256, 1)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("batch", [5, 1])
def test_scores_of_many_heads_in_chunks_are_bit_identical_to_those_of_a_graph(mask, causal, batch):
    query, key, value = (cygrad.randn(batch, 15 // batch, 256, 8) for _ in range(3))
    if batch == 1 and mask is not None:
        mask = tuple(15 if size == 3 else 1 if size == 5 else size for size in mask)
    mask = None if mask is None else cygrad.randn(mask) > -1 if causal else cygrad.randn(mask)
    in_chunks = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
    whole = F.scaled_dot_product_attention(query.requires_grad_(), key, value, mask, is_causal=causal)
    assert whole.requires_grad
    assert cygrad.equal(in_chunks, whole.detach())


def test_dropout_of_weights():
    cygrad.manual_seed(0)
    x = cygrad.randn(2, 8, 4)
    assert (F.scaled_dot_product_attention(x, x, x, dropout_p=1.0) == 0).all().item()
    mean = sum(F.scaled_dot_product_attention(x, x, x, dropout_p=0.3) for _ in range(2000)) / 2000
    assert (mean - F.scaled_dot_product_attention(x, x, x)).abs().max().item() < 0.1


ONE, BOTH = cygrad.ones(3), cygrad.ones(2, 3)


@pytest.mark.parametrize(("match", "arguments"), [
    ("at least two dimensions", (ONE, ONE, ONE)),
    ("the same dtype", (BOTH, BOTH, BOTH.double())),
    ("must be bool or of the type of the query", (BOTH, BOTH, BOTH, cygrad.ones(2, 2, dtype=cygrad.int64))),
    ("must be bool or of the type of the query", (BOTH, BOTH, BOTH, cygrad.ones(2, 2, dtype=cygrad.float64))),
    ("does not broadcast", (BOTH, BOTH, BOTH, cygrad.ones(3, 2, dtype=cygrad.bool))),
    ("from 0 to 1", (BOTH, BOTH, BOTH, None, 1.5)),
    ("a multiple", (cygrad.ones(3, 2, 2), cygrad.ones(2, 2, 2), cygrad.ones(2, 2, 2), None, 0.0, False, None, True)),
])
def test_errors(match, arguments):
    with pytest.raises(RuntimeError, match=match):
        F.scaled_dot_product_attention(*arguments)
    with pytest.raises(NotImplementedError, match="float32 or float64"):
        F.scaled_dot_product_attention(BOTH.long(), BOTH.long(), BOTH.long())


# ---- several heads

ATTENTION_MASK = RANDOM.random((4, 5)) < 0.3
ATTENTION_MASK[:, 0] = False
PADDING = np.array([[False, False, False, True, True], [False] * 5])


def float_mask(mask):
    return np.where(mask, -np.inf, 0.5)


@pytest.mark.parametrize("call", [
    {}, {"need_weights": False}, {"average_attn_weights": False},
    {"attn_mask": ATTENTION_MASK}, {"attn_mask": float_mask(ATTENTION_MASK), "key_padding_mask": float_mask(PADDING)},
    {"key_padding_mask": PADDING}, {"attn_mask": ATTENTION_MASK, "key_padding_mask": PADDING, "need_weights": False},
    {"attn_mask": np.repeat(ATTENTION_MASK[None], 4, 0)},
], ids=lambda call: "-".join(call) or "plain")
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"kdim": 3, "vdim": 7}, {"add_bias_kv": True, "add_zero_attn": True}, {"batch_first": True},
    {"kdim": 3, "bias": False, "batch_first": True, "add_bias_kv": True},
], ids=lambda options: "-".join(options) or "plain")
def test_heads(options, call):
    ours, theirs = twins("MultiheadAttention", 6, 2, **options)
    shapes = (4, 2, 6), (5, 2, options.get("kdim", 6)), (5, 2, options.get("vdim", 6))
    inputs = [both(RANDOM.standard_normal(shape)) for shape in shapes]
    arguments = [[tensor.transpose(0, 1) if options.get("batch_first") else tensor for tensor in side]
                 for side in zip(*inputs, strict=True)]
    masks = {name: both(value, False) for name, value in call.items() if isinstance(value, np.ndarray)}
    found = ours(*arguments[0], **call | {name: pair[0] for name, pair in masks.items()})
    expected = theirs(*arguments[1], **call | {name: pair[1] for name, pair in masks.items()})
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), inputs)


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("same", ["all", "key and value"])
def test_one_tensor_in_several_places(options, same):
    """Equal inputs are projected together."""
    ours, theirs = twins("MultiheadAttention", 6, 3, **options)
    first, second = both(RANDOM.standard_normal((4, 4, 6))), both(RANDOM.standard_normal((4, 4, 6)))
    source = first if same == "all" else second
    found, expected = (module(first[i], source[i], source[i]) for i, module in enumerate((ours, theirs)))
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), {id(pair): pair for pair in (first, source)}.values())


def test_one_sequence_without_batch():
    for batch_first in (False, True):
        ours, theirs = twins("MultiheadAttention", 6, 2, batch_first=batch_first)
        x = both(RANDOM.standard_normal((5, 6)))
        padding = both(PADDING[0], False)
        found, expected = (module(x[i], x[i], x[i], key_padding_mask=padding[i], average_attn_weights=False)
                           for i, module in enumerate((ours, theirs)))
        agree(found, expected)
        gradients_agree((found, ours), (expected, theirs), [x])


def test_causal_hint():
    ours, theirs = twins("MultiheadAttention", 6, 2)
    x, mask = both(RANDOM.standard_normal((4, 2, 6))), nn.Transformer.generate_square_subsequent_mask(4)
    expected, _ = theirs(x[1], x[1], x[1], attn_mask=torch.nn.Transformer.generate_square_subsequent_mask(4).double())
    for need_weights in (True, False):
        agree(ours(x[0], x[0], x[0], attn_mask=mask.double(), is_causal=True, need_weights=need_weights)[0], expected)


def test_static_keys_and_values():
    ours, theirs = twins("MultiheadAttention", 6, 2)
    x = both(RANDOM.standard_normal((4, 3, 6)), False)
    static = [both(RANDOM.standard_normal((6, 5, 3)), False) for _ in range(2)]

    def run(functional, module, i):
        return functional.multi_head_attention_forward(
            x[i], x[i], x[i], 6, 2, module.in_proj_weight, module.in_proj_bias, None, None, False, 0.0,
            module.out_proj.weight, module.out_proj.bias, static_k=static[0][i], static_v=static[1][i])

    agree(run(F, ours, 0), run(torch.nn.functional, theirs, 1))


def test_starting_values():
    module = nn.MultiheadAttention(64, 4, add_bias_kv=True)
    bound = (6 / (4 * 64)) ** 0.5
    assert bound * 0.95 < module.in_proj_weight.abs().max().item() <= bound
    assert (module.in_proj_bias == 0).all().item()
    assert (module.out_proj.bias == 0).all().item()
    assert module.bias_k.shape == (1, 1, 64)
    dropped = nn.MultiheadAttention(8, 2, dropout=0.9)
    x = cygrad.randn(4, 1, 8)
    assert not (dropped(x, x, x)[0] == dropped(x, x, x)[0]).all().item()
    dropped.eval()
    assert (dropped(x, x, x)[0] == dropped(x, x, x)[0]).all().item()


X = cygrad.ones(4, 2, 6)


@pytest.mark.parametrize(("error", "match", "run"), [
    (AssertionError, "num_heads must divide", lambda: nn.MultiheadAttention(6, 4)),
    (ValueError, "must be positive", lambda: nn.MultiheadAttention(0, 4)),
    (AssertionError, "two dimensions, or three", lambda: nn.MultiheadAttention(6, 2)(X[0, 0], X, X)),
    (AssertionError, "the same number of dimensions", lambda: nn.MultiheadAttention(6, 2)(X, X[0], X[0])),
    (AssertionError, r"got \(3, 4, 4\), expected \(2, 4, 4\)",
     lambda: nn.MultiheadAttention(6, 2)(X[:, 0], X[:, 0], X[:, 0], attn_mask=cygrad.ones(3, 4, 4))),
    (AssertionError, "must have the same shape", lambda: nn.MultiheadAttention(6, 2)(X, X, X[:2])),
    (AssertionError, "embedding dimension of 6", lambda: nn.MultiheadAttention(6, 2)(X[..., :4], X, X)),
    (RuntimeError, "should be", lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=cygrad.ones(3, 4))),
    (AssertionError, "not supported", lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=cygrad.ones(4))),
    (AssertionError, "bool and floating",
     lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=cygrad.ones(4, 4, dtype=cygrad.int64))),
    (AssertionError, "key_padding_mask to be 2-D",
     lambda: nn.MultiheadAttention(6, 2)(X, X, X, key_padding_mask=cygrad.ones(4))),
    (RuntimeError, "is_causal hint", lambda: nn.MultiheadAttention(6, 2)(X, X, X, is_causal=True)),
])
def test_errors_of_heads(error, match, run):
    with pytest.raises(error, match=match):
        run()


def test_same_bits_for_any_number_of_threads():
    query, mask = cygrad.randn(2, 4, 100, 32, requires_grad=True), cygrad.randn(100, 100)
    found = []
    for threads in (1, 2, 3):
        with cygrad.threads(threads):
            query.grad = None
            output = F.scaled_dot_product_attention(query, query, query, mask, is_causal=True)
            output.sum().backward()
            found.append([output.detach(), query.grad.clone()])
    for other in found[1:]:
        assert all(cygrad.equal(mine, theirs) for mine, theirs in zip(found[0], other, strict=True))


@pytest.mark.parametrize(("dtype", "epsilon"), [(cygrad.float16, 2.0**-11), (cygrad.bfloat16, 2.0**-8)])
def test_attention_of_short_floats_is_rounded_once(dtype, epsilon):
    generator = np.random.default_rng(5)
    parts = [cygrad.tensor(generator.uniform(0, 3, (2, 4, 32, 16)), dtype=dtype) for _ in range(3)]
    exact = F.scaled_dot_product_attention(*[part.double() for part in parts])
    found = F.scaled_dot_product_attention(*parts)
    assert found.dtype is dtype
    assert ((found.double() - exact).abs() <= 1.01 * epsilon * exact).all()
