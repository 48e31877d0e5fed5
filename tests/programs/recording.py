"""Generate lines about recording: modes, hooks, detach, backward, custom functions."""

from tests.programs.chooser import is_floating, is_neat, is_tame, name_of, shape


def wants_grad(value):
    """Requires grad."""
    return value.requires_grad


def is_result(value):
    """Requires grad and is no leaf."""
    return wants_grad(value) and not value.is_leaf


def mode(c):
    """A block begins or ends."""
    return c.of(
        (
            "m.leave()",
            "m.enter('no_grad')",
            "m.leave()",
            "m.enter('enable_grad')",
            "m.enter('inference')",
            "m.leave()",
            "m.enter('saved')",
        )
    )


def hook(c):
    """A hook is registered or removed."""
    x = c.value(wants_grad)
    if x is None:
        return None
    kind = c.of(("read", "double", "accumulated", "node", "prenode", "read", "free", "raise"))
    if kind == "raise" and not c.rare():
        kind = "read"
    if c.chance(8):
        return f"m.remove({c.number()})"
    if kind == "accumulated":
        x = c.value(wants_grad, lambda value: value.is_leaf)
    elif kind.endswith("node"):
        x = c.value(is_result)
    return None if x is None else f"m.hook(v[{x}], {kind!r})"


def toggle(c):
    """Return whether something is recorded for a tensor from now on."""
    x = c.value(is_floating)
    if x is None:
        return None
    y = c.value(is_result)
    if c.machine.library.is_inference_mode_enabled():  # torch's detach_ does nothing there
        return f"v[{x}].detach()"
    return c.of(
        (
            f"v[{x}].requires_grad_()",
            f"v[{x}].requires_grad_(False)",
            f"v[{x}].detach()",
            f"v[{x}].detach_()",
            f"v[{y}].retain_grad()",
            f"v[{x}].retain_grad()",
            f"v[{y}].detach_()",
            f"v[{x}].detach()",
        )
    )


def backward(c):
    """A pass backward in between."""
    x = c.value(is_result, is_tame)
    if x is None or c.machine.library.is_inference_mode_enabled():  # torch would make inference gradients
        return None
    y = c.value(wants_grad)
    return c.of(
        (
            f"m.backward(v[{x}], retain_graph=True)",
            f"m.grad(v[{x}], [v[{y}]], retain_graph=True)",
            f"m.grad(v[{x}], [v[{y}]], create_graph=True)",
            f"m.backward(v[{x}])",
            # Where there are several outputs, torch gives none of them its own gradient.
            f"m.backward(v[{x}], {f'inputs=[v[{y}]], ' if y != x else ''}retain_graph=True)",
            f"v[{x}].backward()",
            f"m.grad(v[{x}], [v[{y}]])",
        )
    )


def custom(c):
    """A custom function."""
    x = c.value(is_floating, is_neat)
    if x is None or not c.machine.library.is_grad_enabled():  # whether inputs they return are views is open
        return None
    first = c.machine.values[x]
    y = c.value(is_floating, is_neat, lambda value: shape(value) == shape(first) and value.dtype == first.dtype)
    name = c.of(("Cube", "Identity", "Doubled", "Flat", "Pair"))
    return f"m.call('{name}', v[{x}]{f', v[{y}]' if name == 'Pair' else ''})"


def exchanged(c):
    """
    Other memory below a new tensor; or a collection.

    Not below one that is used already: PyTorch's formulas read arguments as they are when backward runs, ours the
    memory that they had.
    """
    x = c.value(is_result)
    if c.chance(6):
        return "m.collect()"
    if x is None or c.chance(3):
        y = c.value(is_floating)
        return None if y is None else f"m.over('leaf', None, v[{y}])"
    kind, first = c.of(("result", "part")), c.machine.values[x]
    sizes = shape(first) if kind == "result" else (*shape(first)[:-1], 1)
    y = c.value(lambda other: shape(other) == sizes and name_of(other.dtype) == name_of(first.dtype))
    return f"m.over({kind!r}, v[{x}], v[{y}])"


WRITERS = (mode, hook, toggle, backward, custom, hook, exchanged)
