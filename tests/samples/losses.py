"""Samples: losses."""


from .sample import Sample, at, call, integers, only_floating, only_real


def reduced(*shapes, **kwargs):
    """One builder for each reduction."""
    bounds = {key: kwargs.pop(key) for key in ("low", "high") if key in kwargs}
    return [call(*shapes, **bounds, reduction=reduction, **kwargs) for reduction in ("mean", "sum", "none")]


def classes(shape, target, with_weight=False, reductions=("mean", "sum", "none"), **kwargs):
    """Scores of this shape and the classes that are right."""

    def builder(reduction):
        def build(make, dtype):
            arguments, fixed = dict(kwargs, reduction=reduction), ()
            if with_weight:
                number = shape[1] if len(shape) > 1 else shape[0]
                arguments["weight"] = make((number,), 0.5, 2)
                fixed = ("weight",)
            return Sample((make(shape), integers(target)), arguments, fixed=fixed)

        return build

    return [builder(reduction) for reduction in reductions]


def probabilities(**kwargs):
    def build(make, dtype):
        return Sample((make((2, 3)), make((2, 3), 0.1, 0.9)), kwargs)

    return build


def alignments(targets, steps, lengths, **kwargs):
    """Log-probabilities of four classes at five steps."""
    return lambda make, dtype: Sample((make((5, len(steps), 4), -3, 0), integers(targets), steps, lengths), kwargs)


CLASS_CASES = [
    *classes((2, 3), [0, 2]),
    *classes((2, 3), [0, 2], with_weight=True),
    *classes((2, 3), [0, -100]),
    *classes((3,), 1),
    *classes((2, 3, 2), [[0, 1], [2, 2]], with_weight=True),
    *classes((3, 2), [0, 1, 1], ignore_index=1),
]


def bad_class(make, dtype):
    return Sample((make((2, 3)), integers([0, 3])), error=(IndexError, RuntimeError), match="[Tt]arget|class")


SAMPLES = {
    "mse_loss": [*reduced((2, 3), (2, 3)), *reduced((), ()), *reduced((0,), (0,))],
    "l1_loss": [*reduced((2, 3), (2, 3)), at([[1.0, 2.0], [1.0, 3.0]], [0.0, -1.0], [0.0, 1.0], reduction="sum")],
    "smooth_l1_loss": [
        *reduced((2, 3), (2, 3)),
        *reduced((2, 3), (2, 3), beta=0.5),
        *reduced((2, 3), (2, 3), beta=0.0),
    ],
    "huber_loss": [*reduced((2, 3), (2, 3)), *reduced((2, 3), (2, 3), delta=0.5)],
    "kl_div": [
        *reduced((2, 3), (2, 3), low=0.1, high=0.9),
        call((2, 3), (2, 3), low=0.1, high=0.9, reduction="batchmean"),
    ],
    "binary_cross_entropy": [*reduced((2, 3), (2, 3), low=0.1, high=0.9), call((), (), low=0.1, high=0.9)],
    "binary_cross_entropy_with_logits": [
        *reduced((2, 3), (2, 3), low=0.1, high=0.9),
        lambda make, dtype: Sample((make((2, 3)), make((2, 3), 0.1, 0.9)), {"pos_weight": make((3,), 0.5, 2)}),
    ],
    "nll_loss": [*CLASS_CASES, bad_class],
    "cross_entropy": [
        *CLASS_CASES,
        *classes((2, 3), [0, 2], label_smoothing=0.1, with_weight=True),
        *(probabilities(reduction=reduction) for reduction in ("mean", "sum", "none")),
        probabilities(label_smoothing=0.1),
        bad_class,
    ],
    "ctc_loss": only_real(only_floating([
        alignments([[1, 1], [2, 3]], [5, 3], [2, 1]), alignments([2, 3, 1], [4, 5], [1, 2], reduction="none"),
        alignments([[1], [2]], [5, 1], [0, 1], reduction="sum"), alignments([[0]], [2], [1], blank=3),
    ])),
}
COMPLEX = set()
HELPERS = {
    "alignment_states": "ctc_loss",
    "alignment_scores": "ctc_loss",
    "alignment_recurrence": "ctc_loss",
    "logit_loss_slope": "binary_cross_entropy_with_logits",
    "mse_elementwise": "mse_loss",
    "l1_elementwise": "l1_loss",
    "smooth_l1_elementwise": "smooth_l1_loss",
    "smooth_l1_backward": "smooth_l1_loss",
    "huber_elementwise": "huber_loss",
    "huber_backward": "huber_loss",
    "kl_div_elementwise": "kl_div",
    "binary_cross_entropy_elementwise": "binary_cross_entropy",
    "binary_cross_entropy_with_logits_unweighted": "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_elementwise": "binary_cross_entropy_with_logits",
    "nll_loss_backward": "nll_loss",
    "cross_entropy_backward": "cross_entropy",
}
BEYOND = {"ctc_loss"}                    # PyTorch's gradient is that of probabilities that add up to one
