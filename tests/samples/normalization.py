"""Samples: normalization of channels, rows, groups and neighbors."""


from .sample import Sample, call, fails


def training(shape, affine=True, **kwargs):
    """A batch with or without factors and summands, its own statistics."""

    def build(make, dtype):
        if affine:
            kwargs.update(weight=make((shape[1],), 0.5, 2), bias=make((shape[1],)))
        return Sample((make(shape), None, None), dict(kwargs, training=True))

    return build


def evaluation(shape, affine=True):
    """A batch with given statistics."""

    def build(make, dtype):
        channels = (shape[1],)
        parameters = {"weight": make(channels, 0.5, 2), "bias": make(channels)} if affine else {}
        return Sample((make(shape), make(channels), make(channels, 0.5, 2)), parameters, fixed=(1, 2))

    return build


def rows(shape, normalized, name="layer_norm", affine=True, **kwargs):
    def build(make, dtype):
        parameters = dict(kwargs)
        if affine:
            parameters["weight"] = make(normalized, 0.5, 2)
            if name == "layer_norm":
                parameters["bias"] = make(normalized)
        return Sample((make(shape), normalized), parameters)

    return build


def groups(shape, number, affine=True, **kwargs):
    def build(make, dtype):
        parameters = dict(kwargs)
        if affine:
            parameters.update(weight=make((shape[1],), 0.5, 2), bias=make((shape[1],)))
        return Sample((make(shape), number), parameters)

    return build


def instances(shape, affine=True):
    def build(make, dtype):
        parameters = {"weight": make((shape[1],), 0.5, 2), "bias": make((shape[1],))} if affine else {}
        return Sample((make(shape),), parameters)

    return build


def wrong(error, match, shape, *arguments, **kwargs):
    """A refused call whose further arguments are tuples that mean themselves."""
    return lambda make, dtype: Sample((make(shape), *arguments), kwargs, error=error, match=match)


def short_weight(make, dtype):
    return Sample((make((2, 3, 4)), None, None, make((2,))), {"training": True}, error=RuntimeError,
                  match="weight should contain 3 elements")


SAMPLES = {
    "batch_norm": [
        training((4, 3)),
        training((2, 3, 5)),
        training((3, 2, 2, 3), affine=False, eps=0.1),
        training((2, 2, 2, 2, 2)),
        training((0, 3, 2), affine=False),
        evaluation((2, 3, 2)),
        evaluation((2, 3), affine=False),
        short_weight,
        fails(RuntimeError, "batch_norm: expected input with at least two", (3,), None, None, training=True),
        fails(RuntimeError, "needs running_mean and running_var", (3, 2), None, None),
        fails(ValueError, "Expected more than 1 value per channel", (1, 3), None, None, training=True),
    ],
    "layer_norm": [
        rows((2, 3, 4), (4,)),
        rows((2, 3, 4), (3, 4)),
        rows((5,), (5,), affine=False, eps=0.1),
        rows((2, 20), (20,)),
        rows((0, 4), (4,)),
        wrong(RuntimeError, "layer_norm: given normalized_shape=\\[3\\]", (2, 4), (3,)),
        wrong(RuntimeError, "at least one dimension", (2, 4), ()),
        lambda make, dtype: Sample((make((2, 4)), (4,), make((3,))), error=RuntimeError, match="weight must have"),
    ],
    "rms_norm": [
        rows((2, 3, 4), (4,), "rms_norm"),
        rows((2, 3, 4), (3, 4), "rms_norm", affine=False, eps=0.1),
        wrong(RuntimeError, "rms_norm: given normalized_shape", (2, 4), (3,)),
    ],
    "group_norm": [
        groups((2, 4, 3), 2),
        groups((2, 6), 3),
        groups((3, 4, 2, 2), 1, affine=False, eps=0.1),
        groups((3, 4, 2, 2), 4),
        fails(RuntimeError, "num_groups must divide", (2, 4, 3), 3),
        fails(RuntimeError, "num_groups must divide", (2, 4, 3), 0),
        fails(RuntimeError, "at least two dimensions", (4,), 2),
        fails(ValueError, "xpected more than 1", (1, 2), 2),
    ],
    "instance_norm": [
        instances((2, 3, 4)),
        instances((2, 2, 3, 2), affine=False),
        fails(ValueError, "Expected more than 1 spatial element", (2, 3, 1)),
        fails(RuntimeError, "needs running_mean", (2, 3, 2), use_input_stats=False),
    ],
    "local_response_norm": [
        call((2, 5, 3), 3, 0.5),
        call((2, 4, 2, 2), 2, alpha=0.5, beta=1.5, k=2.0),
        fails(ValueError, "at least three dimensions", (2, 3), 2),
    ],
}
HELPERS = {"normalize_backward": "layer_norm", "normalize_sums": "batch_norm"}
