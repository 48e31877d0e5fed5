"""Samples: distances, margin losses and density losses."""

import cygrad

from .sample import Sample, call, fails, integers, only_floating, only_real

REDUCTIONS = ("mean", "sum", "none")


def reduced(*shapes, **kwargs):
    """One builder for each reduction."""
    return [call(*shapes, reduction=reduction, **kwargs) for reduction in REDUCTIONS]


def with_target(shapes, target, reductions=REDUCTIONS, low=-2, high=2, **kwargs):
    """Random tensors, then a target with these elements, of the type of the others unless they are integers."""

    def builder(reduction):
        def build(make, dtype):
            values = target if isinstance(target, cygrad.Tensor) else cygrad.tensor(target, dtype=dtype)
            weight = {"weight": make((shapes[0][-1],), 0.5, 2)} if kwargs.get("weight") else {}
            return Sample((*(make(shape, low, high) for shape in shapes), values), {**kwargs, **weight,
                                                                                    "reduction": reduction})

        return build

    return [builder(reduction) for reduction in reductions]


SIGNS = [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]]

SAMPLES = {
    "pairwise_distance": [
        call((2, 3), (2, 3)), call((3,), (3,), keepdim=True), call((2, 1, 3), (4, 3), p=1.0), call((2, 3), (3,), p=3.0),
        call((0, 3), (0, 3)),
    ],
    "cosine_similarity": only_real([
        *only_floating([call((2, 3), (2, 3)), call((2, 3), (2, 3), dim=0), call((2, 1, 3), (4, 3), dim=-1)]),
        lambda make, dtype: Sample((integers([[1, 2]]), integers([[1, 2]])), error=RuntimeError,
                                   match="expected real floating"),
    ]),
    "bilinear": only_floating([
        call((2, 3), (2, 4), (5, 3, 4), (5,)), call((2, 2, 3), (2, 2, 2), (1, 3, 2)), call((3,), (2,), (2, 3, 2), (2,)),
        call((0, 3), (0, 2), (2, 3, 2)),
        fails(RuntimeError, "must have equal shapes", (2, 3), (3, 4), (5, 3, 4)),
        fails(RuntimeError, "does not match weight", (2, 3), (2, 5), (5, 3, 4)),
    ]),
    "hinge_embedding_loss": only_floating([
        *with_target([(2, 3)], SIGNS), *with_target([(2, 3)], SIGNS, margin=0.3), call((2, 3), (2, 3)),
    ]),
    "soft_margin_loss": only_floating([*with_target([(2, 3)], SIGNS), call((3,), (3,), low=-20, high=20)]),
    "margin_ranking_loss": only_floating([
        *with_target([(3,), (3,)], SIGNS[0]), *with_target([(2, 3), (2, 1)], SIGNS, margin=0.4),
        fails(RuntimeError, "the same number of dimensions", (2,), (2, 3), (2,)),
    ]),
    "cosine_embedding_loss": only_floating([
        *with_target([(3, 4), (3, 4)], SIGNS[0]), *with_target([(3, 4), (3, 4)], SIGNS[1], margin=0.2),
        *with_target([(4,), (4,)], 1.0),
        fails(RuntimeError, "0D or 1D target", (3, 4), (3, 4), (3, 1)),
    ]),
    "triplet_margin_loss": [
        *reduced((3, 4), (3, 4), (3, 4)), *reduced((3, 4), (3, 4), (3, 4), margin=0.5, p=1, swap=True),
        call((4,), (4,), (4,)),
        fails(RuntimeError, "the same number of dimensions", (3, 4), (3, 4), (4,)),
        fails(ValueError, "margin must be positive", (3, 4), (3, 4), (3, 4), margin=0.0),
    ],
    "triplet_margin_with_distance_loss": [
        *reduced((3, 4), (3, 4), (3, 4)), *reduced((3, 4), (3, 4), (3, 4), swap=True),
    ],
    "multi_margin_loss": only_floating([
        *with_target([(3, 4)], integers([1, 3, 0])), *with_target([(3, 4)], integers([1, 3, 0]), p=2, margin=0.6),
        *with_target([(4,)], integers(2)),
        lambda make, dtype: Sample((make((2, 3)), integers([0, 2]), 1, 1.0, make((3,), 0.5, 2)), fixed=(4,)),
        lambda make, dtype: Sample((make((2, 3)), integers([0, 3])), error=RuntimeError, match="out of range"),
        lambda make, dtype: Sample((make((2, 3)), integers([0])), error=RuntimeError, match="inconsistent target"),
        lambda make, dtype: Sample((make((2, 3)), integers([0, 1]), 3), error=ValueError, match="p must be 1 or 2"),
    ]),
    "multilabel_margin_loss": only_floating([
        *with_target([(2, 4)], integers([[3, 0, -1, 1], [-1, 0, 1, 2]])), *with_target([(3,)], integers([0, 2, 1])),
        lambda make, dtype: Sample((make((2, 3)), integers([[0, 3, 1], [0, 1, 2]])), error=RuntimeError,
                                   match="out of range"),
    ]),
    "multilabel_soft_margin_loss": [
        *with_target([(2, 3)], [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        lambda make, dtype: Sample((make((2, 3)), make((2, 3), 0, 1), make((3,), 0.5, 2))),
    ],
    "poisson_nll_loss": [
        *reduced((2, 3), (2, 3)), *reduced((2, 3), (2, 3), low=0.5, high=4, log_input=False),
        *(lambda make, dtype, reduction=reduction: Sample(
            (make((2, 3)), make((2, 3), 0, 5)), {"full": True, "reduction": reduction}, fixed=(1,))
          for reduction in REDUCTIONS),
    ],
    "gaussian_nll_loss": only_floating([
        *(lambda make, dtype, shape=shape, options=options: Sample(
            (make((2, 3)), make((2, 3)), make(shape, 0.5, 2)), options)
          for shape, options in (((2, 3), {}), ((2,), {"full": True}), ((2, 1), {"reduction": "sum"}),
                                 ((1, 3), {"reduction": "none"}))),
        lambda make, dtype: Sample((make((2, 3)), make((2, 3)), 0.7)),
        lambda make, dtype: Sample((make((2, 3)), make((2, 3)), -0.7), error=ValueError, match="negative"),
        lambda make, dtype: Sample((make((2, 3)), make((2, 3)), make((3,), 1, 2)), error=ValueError, match="incorrect"),
    ]),
}
