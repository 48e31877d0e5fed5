"""Samples: steps of recurrent networks."""

from .sample import Sample, at, fails


def cell(gates, batch=(2,), features=3, units=2, bias=True, pair=False):
    """Return a cell with this number of blocks of logits."""

    def build(make, dtype):
        if dtype.is_complex or not dtype.is_floating_point:
            return None
        state = make((*batch, units), -1, 1)
        if pair:
            state = (state, make((*batch, units), -1, 1))
        weights = [make((gates * units, size), -1, 1) for size in (features, units)]
        if bias:
            weights += [make((gates * units,), -1, 1) for _ in range(2)]
        return Sample((make((*batch, features)), state, *weights))

    return build


def cells(gates, **options):
    return [
        cell(gates, **options),
        cell(gates, bias=False, **options),
        cell(gates, batch=(1,), **options),
        cell(gates, batch=(0,), **options),
        cell(gates, units=1, **options),
    ]


SAMPLES = {
    "lstm_cell": [
        *cells(4, pair=True),
        lambda make, dtype: Sample((make((2, 3)), (make((2, 2)), make((2, 2))), make((6, 3)), make((8, 2))),
                                   error=RuntimeError, match="4 rows for each unit"),
        lambda make, dtype: Sample((make((2, 3)), (make((2, 2)), make((2, 1))), make((8, 3)), make((8, 2))),
                                   error=RuntimeError, match="does not match the state"),
    ],
    "gru_cell": [
        *cells(3),
        fails(RuntimeError, "batch size", (2, 3), (1, 2), (6, 3), (6, 2)),
    ],
    "rnn_tanh_cell": [*cells(1), fails(RuntimeError, "1 rows for each unit", (2, 3), (2, 2), (3, 3), (2, 2))],
    "rnn_relu_cell": [
        *cells(1),
        at([[[0.0]], [[1.0]], [[0.0]], [[0.0]]], [[0.0]], [[0.0]], [[0.0]], [[0.0]]),
    ],
}
HELPERS = {
    "block": "lstm_cell",
    "lstm_gates": "lstm_cell",
    "lstm_gates_backward": "lstm_cell",
    "gru_gates": "gru_cell",
    "gru_gates_backward": "gru_cell",
    "linear_in_panels": "lstm_cell",
}
