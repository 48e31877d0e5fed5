"""Samples: attention."""

import cygrad

from .sample import Sample, only_floating


def heads(queries, keys, features=3, **kwargs):
    """Query, key and value, of the same size of features."""

    def build(make, dtype):
        return Sample((make((*queries, features)), make((*keys, features)), make((*keys, features))), kwargs)

    return build


def masked(make, dtype):
    mask = cygrad.tensor([[True, False, True], [False, True, True]])
    return Sample((make((2, 4)), make((3, 4)), make((3, 4)), mask))


SAMPLES = {
    "scaled_dot_product_attention": only_floating([
        heads((2,), (3,)),
        heads((2, 2, 2), (2, 2, 3)),
        heads((2, 3), (2, 2), is_causal=True),
        heads((2,), (2,), scale=0.5),
        lambda make, dtype: Sample((make((2, 4)), make((3, 4)), make((3, 4)), make((2, 3)))),
        masked,
        heads((0,), (2,)),
    ]),
}
HELPERS = {"attention_weights": "scaled_dot_product_attention"}
