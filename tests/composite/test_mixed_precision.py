"""Result dtypes of composite functions and recurrent layers under autocast."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")

rng = np.random.default_rng(0)
FULL = rng.standard_normal((8, 10)).astype("f4")
# Of f, in float32, and h, in bfloat16.
COMPOSED = {
    "hinge": "F.hinge_embedding_loss(h, lib.ones(8, 10))",
    "multi margin": "F.multi_margin_loss(h, lib.ones(8, dtype=lib.int64))",
    "multilabel margin": "F.multilabel_margin_loss(h, lib.ones(8, 10, dtype=lib.int64))",
    "ctc": "F.ctc_loss(F.log_softmax(h[:, None], -1), lib.ones(1, 2, dtype=lib.int64), lib.tensor([8]), "
           "lib.tensor([2]))",
    "grid sample": "F.grid_sample(h[None, None], f[:2, :8].reshape(1, 2, 4, 2), align_corners=False)",
    "bilinear": "F.bilinear(f, f, f.reshape(1, 8, 10)[:, :2].reshape(2, 1, 10).expand(2, 10, 10).contiguous())",
    "average": "F.avg_pool3d(h[None, None], (1, 2, 2))",
    "adaptive average": "F.adaptive_avg_pool3d(h[None, None], (1, 2, 2))",
    "adaptive average in two dimensions": "F.adaptive_avg_pool2d(h[None], (2, 2))",
    "maximum": "F.max_pool3d(h[None, None], (1, 2, 2))",
    "adaptive maximum": "F.adaptive_max_pool3d(h[None, None], (1, 2, 2))",
    "trace": "h[:, :8].trace()", "prelu": "F.prelu(h, lib.full((1,), 0.25))",
    "baddbmm": "lib.baddbmm(f[None, :, :8], f[None], f.T[None])", "addbmm": "lib.addbmm(f[:, :8], f[None], h.T[None])",
}


def both(program):
    """The types of a program's results in both libraries, and their values."""
    for lib in (cygrad, torch):
        f = lib.tensor(FULL, requires_grad=True)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            result = program(lib, f, lib.tensor(FULL).bfloat16())
        yield str(result.dtype).rpartition(".")[2], result.detach().float().numpy()


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_follow_the_lists(name):
    def program(lib, f, h):
        return eval(COMPOSED[name], {"lib": lib, "F": lib.nn.functional, "f": f, "h": h})

    (ours, value), (theirs, expected) = both(program)
    assert ours == theirs
    np.testing.assert_allclose(value, expected, rtol=2e-2, atol=2e-2)


def test_packed_sequences_and_the_block_afterwards():
    layer = cygrad.nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)
    packed = cygrad.nn.utils.rnn.pack_sequence([cygrad.ones(3, 3), cygrad.ones(2, 3)])
    with cygrad.autocast("cpu", dtype=cygrad.bfloat16):
        output, (hidden, cell) = layer(packed)
        assert {output.data.dtype, hidden.dtype, cell.dtype} == {cygrad.bfloat16}
        assert (cygrad.ones(2, 2) @ cygrad.ones(2, 2)).dtype is cygrad.bfloat16
        with pytest.raises(RuntimeError, match="input_size"):
            layer(cygrad.ones(2, 1, 5))
        assert cygrad.is_autocast_enabled()
    assert layer(packed)[0].data.dtype is cygrad.float32
